//! `near_dup_refresh`: brings clusters up to date.

use crate::live::access::{check_tables, lock, rights_for};
use crate::live::create::renew_links;
use crate::live::leaves::{Leaf, Unnoted};
use crate::live::neighborhood::repaired;
use crate::live::rows::{After, TrackedRows};
use crate::live::shape::Shape;
use crate::live::state::State;
use crate::live::tracker::{Tracker, TriggerFunctions};
use crate::live::write::{self, Written};
use crate::live::{queries, rebuild};
use crate::pg::call::Call;
use crate::pg::error::OrRaise;
use crate::pg::names;
use crate::pg::rights::check_owner;
use crate::pg::settings::Settings;
use crate::pg::statement::{Connection, Snapshot};
use neardup::cluster::live::{Ceased, ClusterNumbers, Event, Move, number};
use neardup::memory::{Grow, filled};
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
    let clusters = pg_sys::Oid::from(call.argument(0, "clusters").value() as u32);
    let functions = TriggerFunctions::beside(call.function());
    let rebuild = call.argument(1, "rebuild").value() != 0;
    let connection = Connection::open();
    let tracker = Tracker::of_clusters(&functions, &connection, clusters);
    connection.close();
    check_owner(tracker.relation);
    let changes = refresh(tracker, rebuild);
    call.rows().put(changes.map(IntoDatum::into_datum));
}

/// The numbers of rows that a refresh has looked at, and of its events: created, joined, left, merged, split, new
/// canonical row.
type Changes = [i64; 7];

fn changes_of(rows: i64, events: &[Event]) -> Changes {
    let mut changes = [rows, 0, 0, 0, 0, 0, 0];
    for event in events {
        changes[match event {
            Event::Created { .. } => 1,
            Event::Joined { .. } => 2,
            Event::Left { .. } => 3,
            Event::Merged { .. } => 4,
            Event::Split { .. } => 5,
            Event::NewCanonical { .. } => 6,
        }] += 1;
    }
    changes
}

/// Brings the clusters of a tracker up to date.
pub fn refresh(tracker: Tracker, wants_rebuild: bool) -> Changes {
    let started = Instant::now();
    check_tables(&tracker);
    let rights = rights_for(tracker.relation);
    let mut connection = Connection::open();
    lock(&connection, &tracker);
    // Before the snapshot, which sees all rows of these.
    let leaves = Leaf::all_of(&tracker);
    connection.read_under(Snapshot::take());
    let (state, unnoted) = State::begin(&connection, &tracker, leaves);
    let mut queued = Queued::of(&connection, &tracker);
    let changes = if queued.is_nothing() && unnoted == Unnoted::None && !wants_rebuild {
        state.write(&connection, &tracker, started, 0);
        [0; 7]
    } else {
        let refresh = Refresh {
            connection: &connection,
            shape: &Shape::of(&connection, tracker),
            state,
            started,
        };
        if let Unnoted::Some { new, are_gone } = &unnoted
            && !wants_rebuild
        {
            refresh.note(new, *are_gone);
            queued = Queued::of(&connection, &refresh.shape.tracker);
        }
        let is_known = !wants_rebuild && unnoted != Unnoted::All;
        let repaired = match is_known && !queued.is_large(refresh.state.rows) {
            true => refresh.repair(queued.keys),
            false => None,
        };
        repaired.unwrap_or_else(|| refresh.rebuild(true))
    };
    connection.close();
    rights.resign();
    changes
}

/// Rows that a refresh always searches around rather than compute anew.
const FEW: i64 = 1000;

/// The time to search around a row, as a number of rows computed anew: 4 to 10, more with rows near it.
const SEARCH: i64 = 7;

/// The contents of the queue.
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
        let mut queued = Self {
            keys: 0,
            is_unknown: false,
        };
        let count = connection.prepare_kept(&sql, &[]);
        count.run(&[], &mut |row| {
            queued = Self {
                keys: row.get(1).unwrap_or(0),
                is_unknown: row.get(2).unwrap_or(false),
            };
        });
        queued
    }

    fn is_nothing(&self) -> bool {
        self.keys == 0
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
    fn note(&self, leaves: &[pg_sys::Oid], are_gone: bool) {
        let of_leaf = |&leaf: &pg_sys::Oid| queries::all_of_leaf(self.shape, leaf);
        let gone = are_gone.then(|| queries::gone(self.shape));
        let queue = names::relation(self.shape.tracker.tables.queue);
        for query in leaves.iter().map(of_leaf).chain(gone) {
            let insert = format!("INSERT INTO {queue} {query}");
            let insert = self.connection.prepare(&insert, &[]);
            insert.run(&[], &mut |_| {});
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
        let Self {
            connection, shape, ..
        } = self;
        let most = FEW.max(self.state.rows / SEARCH);
        let repaired = repaired(connection, shape, changed, most as usize);
        let changes = repaired.map(|(rows, order)| {
            let numbers = self.numbers(&rows, &order);
            let written = write::clusters(connection, shape, &rows, &numbers);
            write::canonicals(connection, shape, &rows, &numbers);
            write::log(connection, shape, &rows, &numbers.events);
            self.end(&rows, &numbers, &written)
        });
        settings.restore();
        changes
    }

    /// Computes all clusters anew.
    pub fn rebuild(&self, is_logged: bool) -> Changes {
        let Self {
            connection, shape, ..
        } = self;
        let (rows, order) = rebuild::run(connection, shape);
        let numbers = self.numbers(&rows, &order);
        let written = write::clusters(connection, shape, &rows, &numbers);
        write::all_canonicals(connection, shape);
        renew_links(connection, &shape.tracker);
        if is_logged {
            write::log(connection, shape, &rows, &numbers.events);
        }
        self.end(&rows, &numbers, &written)
    }

    /// Returns the numbers of the clusters that the rows are in now.
    fn numbers(&self, rows: &TrackedRows, order: &[u32]) -> ClusterNumbers {
        let (mut moves, mut ceased) = (Vec::new(), Vec::new());
        for (number, row) in rows.iter() {
            let canonical = match row.after {
                After::Same => continue,
                After::Gone => None,
                After::In { canonical, .. } => Some(canonical),
            };
            let from = row.before.as_ref().map(|before| before.cluster);
            moves
                .try_push(Move {
                    row: number,
                    from,
                    canonical,
                })
                .or_raise();
            let stays = canonical == Some(number) && !row.is_changed;
            if let Some(cluster) = from.filter(|_| row.had_cluster(number) && !stays) {
                ceased
                    .try_push(Ceased {
                        cluster,
                        canonical: number,
                    })
                    .or_raise();
            }
        }
        let kept = |number: u32| {
            let row = rows.get(number);
            let stays = match row.after {
                After::Same => true,
                After::Gone => false,
                After::In { canonical, .. } => canonical == number,
            };
            let before = row.before.as_ref().filter(|_| row.had_cluster(number));
            before
                .filter(|_| stays && !row.is_changed)
                .map(|before| before.cluster)
        };
        let mut places = filled(u32::MAX, rows.len()).or_raise();
        for (place, &row) in (0..).zip(order) {
            places[row as usize] = place;
        }
        // Rows that stand alone or are gone have no place in the order: they follow by their keys.
        let place = |row: u32| (places[row as usize], &rows.get(row).key);
        let compare = |a, b| place(a).cmp(&place(b));
        moves.sort_unstable_by(|a, b| compare(a.row, b.row));
        number(&moves, &ceased, self.state.next_cluster, &kept, &compare).or_raise()
    }

    /// Writes the state, and deletes from the queue the entries that have been read.
    fn end(&self, rows: &TrackedRows, numbers: &ClusterNumbers, written: &Written) -> Changes {
        let Self {
            connection,
            shape,
            state,
            started,
        } = self;
        let queue = names::relation(shape.tracker.tables.queue);
        let delete = connection.prepare_kept(&format!("DELETE FROM {queue}"), &[]);
        delete.run(&[], &mut |_| {});
        let looked_at = rows
            .iter()
            .filter(|(_, row)| row.after != After::Same)
            .count();
        let state = State {
            next_cluster: numbers.next,
            rows: state.rows + written.added - written.removed,
            leaves: state.leaves.clone(),
        };
        state.write(connection, &shape.tracker, *started, looked_at as i64);
        changes_of(looked_at as i64, &numbers.events)
    }
}

pgrx::extension_sql_file!("../../sql/live/refresh.sql", name = "live_refresh");
