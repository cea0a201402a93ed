//! `near_dup_refresh`: brings clusters up to date.

use crate::live::access::{OwnTables, altered_hint, check_tables, lock, open_own, rights_for};
use crate::live::create::renew_links;
use crate::live::leaves::{LeafTable, Unnoted};
use crate::live::neighborhood::repaired;
use crate::live::rows::TrackedRows;
use crate::live::shape::Shape;
use crate::live::state::State;
use crate::live::tracker::Tracker;
use crate::live::{queries, rebuild, state, write};
use crate::pg::call::Call;
use crate::pg::error::OrRaise;
use crate::pg::names;
use crate::pg::settings::Settings;
use crate::pg::statement::{Connection, Snapshot};
use neardup::cluster::live::{ClusterNumbers, number};
use pgrx::prelude::*;
use std::time::Instant;

/// Implements `near_dup_refresh(clusters, rebuild)`.
///
/// # Errors
/// `object_not_in_prerequisite_state` for a table that is not kept, or cannot be any more,
/// `insufficient_privilege` unless the caller owns the tracked table, `invalid_parameter_value` where a
/// signature was made with other parameters than the signatures before it.
#[pg_extern(sql = false)]
fn near_dup_refresh(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    let tracker = Tracker::of_argument(&call);
    let changes = refresh(tracker, call.argument(1, "rebuild").value() != 0);
    call.rows().put(changes.map(IntoDatum::into_datum));
}

/// The numbers of rows that a refresh has looked at, and of its events by their kinds.
type Changes = [i64; 7];

/// Brings the clusters of a tracker up to date.
pub fn refresh(tracker: Tracker, wants_rebuild: bool) -> Changes {
    let started = Instant::now();
    check_tables(tracker.relation, &tracker.tables);
    let rights = rights_for(tracker.relation);
    let mut connection = Connection::open();
    let state = open_own(&tracker, tracker.tables.state, &state::columns(), &[1]);
    if let Err(altered) = state {
        altered.raise(&altered_hint(tracker.tables.clusters));
    }
    lock(&connection, &tracker);
    // Before the snapshot, which sees all rows of these.
    let leaves = LeafTable::all_of(&tracker);
    connection.read_under(Snapshot::take());
    let (state, unnoted) = State::begin(&connection, &tracker, leaves);
    let shape = Shape::of(&connection, tracker);
    let own = OwnTables::open(&shape);
    let tracker = &shape.tracker;
    let mut queued = Queued::of(&connection, tracker);
    let changes = if queued.keys == 0 && unnoted.is_nothing() && !wants_rebuild {
        state.write(&connection, tracker, started, 0);
        [0; 7]
    } else {
        let refresh = Refresh {
            connection: &connection,
            shape: &shape,
            state,
            started,
        };
        let is_known = !wants_rebuild && !unnoted.is_all;
        if is_known && !unnoted.is_nothing() {
            refresh.note(&unnoted);
            queued = Queued::of(&connection, &refresh.shape.tracker);
        }
        let repaired = match is_known && !queued.is_large(refresh.state.rows) {
            true => refresh.repair(queued.keys),
            false => None,
        };
        repaired.unwrap_or_else(|| refresh.rebuild(true))
    };
    drop(own);
    connection.close();
    rights.resign();
    changes
}

/// Rows that a refresh always searches around rather than compute anew.
const FEW: i64 = 1000;

/// The time to search around a row, as a number of rows computed anew: 4 to 10, more with rows near it.
const SEARCH: i64 = 7;

/// The contents of the queue.
#[derive(Default)]
struct Queued {
    keys: i64,
    /// A change without a key is noted: the table was emptied.
    is_unknown: bool,
}

impl Queued {
    fn of(connection: &Connection, tracker: &Tracker) -> Self {
        let sql = format!(
            "SELECT pg_catalog.count(*), pg_catalog.bool_or(q.key IS NULL)
             FROM (SELECT DISTINCT key FROM {}) q",
            names::relation(tracker.tables.queue)
        );
        let mut queued = Self::default();
        let count = connection.prepare_kept(&sql, &[]);
        count.run(&[], &mut |row| {
            queued = Self {
                keys: row.get(1).unwrap_or(0),
                is_unknown: row.get(2).unwrap_or(false),
            };
        });
        queued
    }

    /// Returns whether reading the changed rows alone takes as long as computing all clusters anew.
    fn is_large(&self, rows: i64) -> bool {
        self.is_unknown || self.keys > FEW.max(rows / 2)
    }
}

/// A refresh of a locked tracker.
pub struct Refresh<'a> {
    pub connection: &'a Connection,
    pub shape: &'a Shape,
    pub state: State,
    pub started: Instant,
}

impl Refresh<'_> {
    /// Puts rows into the queue that have changed unnoted: all rows of some leaves, and the rows of the
    /// clusters that are gone.
    fn note(&self, unnoted: &Unnoted) {
        let of_leaf = |&leaf: &pg_sys::Oid| queries::all_of_leaf(self.shape, leaf);
        let gone = unnoted.are_gone.then(|| queries::gone(self.shape));
        let queue = names::relation(self.shape.tracker.tables.queue);
        for query in unnoted.new.iter().map(of_leaf).chain(gone) {
            self.connection
                .execute(&format!("INSERT INTO {queue} {query}"));
        }
    }

    /// Repairs the clusters around the changed rows. Returns the changes; None where too many rows are
    /// affected, or rows have changed that no trigger has seen.
    fn repair(&self, changed: i64) -> Option<Changes> {
        let settings = Settings::begin();
        // Nobody knows how many rows are in the queue and near each other: what PostgreSQL assumes
        // must not lead to a scan of the table, nor of another index with a look at every signature.
        for (setting, value) in [
            (c"enable_seqscan", c"off"),
            (c"enable_hashjoin", c"off"),
            (c"enable_mergejoin", c"off"),
            (c"cpu_operator_cost", c"0.25"),
        ] {
            settings.set(setting, value);
        }
        let (connection, shape) = (self.connection, self.shape);
        let most = FEW.max(self.state.rows / SEARCH);
        let repaired = repaired(connection, shape, changed, most as usize);
        let changes = repaired.map(|(rows, order)| {
            let (numbers, changes) = self.number(&rows, &order, true);
            let added = write::clusters(connection, shape, &rows, &numbers);
            write::canonicals(connection, shape, &rows, &numbers);
            self.end(numbers.next, added, changes[0]);
            changes
        });
        settings.restore();
        changes
    }

    /// Computes all clusters anew.
    pub fn rebuild(&self, is_logged: bool) -> Changes {
        let (connection, shape) = (self.connection, self.shape);
        let (rows, order) = rebuild::run(connection, shape);
        let (numbers, changes) = self.number(&rows, &order, is_logged);
        let added = write::clusters(connection, shape, &rows, &numbers);
        write::all_canonicals(connection, shape);
        renew_links(connection, &shape.tracker);
        self.end(numbers.next, added, changes[0]);
        changes
    }

    /// Numbers the clusters of the rows in `order`, one after another, and writes the log if `is_logged`. Returns
    /// the numbers of the clusters, and the counts of changes that the refresh reports.
    fn number(
        &self,
        rows: &TrackedRows,
        order: &[u32],
        is_logged: bool,
    ) -> (ClusterNumbers, Changes) {
        let mut changes = [order.len() as i64, 0, 0, 0, 0, 0, 0];
        let mut log = is_logged.then(|| write::Log::new(self.connection, self.shape, rows));
        let moves = order.iter().map(|&row| rows.change(row));
        let kept = |canonical: u32| rows.lasting_cluster(canonical);
        let numbers = number(moves, self.state.next_cluster, &kept, &mut |event| {
            // The kinds are numbered as the columns of the result are.
            changes[1 + event.kind as usize] += 1;
            if let Some(log) = &mut log {
                log.add(event);
            }
        });
        if let Some(log) = &mut log {
            log.write();
        }
        (numbers.or_raise(), changes)
    }

    /// Writes the state, with the number of rows `added` to the clusters, and deletes from the queue the entries that
    /// have been read.
    fn end(&self, next_cluster: i64, added: i64, looked_at: i64) {
        let (connection, shape, state) = (self.connection, self.shape, &self.state);
        let queue = names::relation(shape.tracker.tables.queue);
        let delete = connection.prepare_kept(&format!("DELETE FROM {queue}"), &[]);
        delete.execute(&[]);
        let state = State {
            next_cluster,
            rows: state.rows + added,
            leaves: state.leaves.clone(),
        };
        state.write(connection, &shape.tracker, self.started, looked_at);
    }
}

pgrx::extension_sql_file!("../../sql/live/refresh.sql", name = "live_refresh");
