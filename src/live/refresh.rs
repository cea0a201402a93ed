//! `near_dup_refresh`: brings clusters up to date.

use crate::live::access::{OwnTables, rights_for};
use crate::live::budget::Budget;
use crate::live::create::renew_links;
use crate::live::neighborhood::repaired;
use crate::live::rows::TrackedRows;
use crate::live::state::{self, State};
use crate::live::tracker::Tracker;
use crate::live::triggers::noted;
use crate::live::{rebuild, write};
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
/// `insufficient_privilege` unless the caller owns the tracked table, `unique_violation` for a key of two rows,
/// `invalid_parameter_value` where a signature was made with other parameters than the signatures before it.
#[pg_extern(sql = false)]
fn near_dup_refresh(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    let tracker = Tracker::of_argument(&call);
    let wants_rebuild = call.argument(1, "rebuild").value() != 0;
    let started = Instant::now();
    let rights = rights_for(tracker.relation);
    let mut connection = Connection::open();
    // The table and its partitions before the tracker.
    let table = names::relation(tracker.relation);
    let lock = format!("LOCK TABLE {table} IN ACCESS SHARE MODE");
    connection.prepare_kept(&lock, &[]).execute(&[]);
    let own = OwnTables::open_for_refresh(&tracker);
    state::lock(&connection, &tracker);
    // Before the snapshot, which sees all rows of these files.
    let noted = noted(&connection, &tracker);
    connection.read_under(Snapshot::take());
    let mut state = State::read(&connection, &tracker);
    let is_certain = state.take_noted(noted) && !wants_rebuild;
    let mut refresh = Refresh {
        connection: &connection,
        tracker: &tracker,
        state,
        started,
    };
    let queued = refresh.queued().filter(|_| is_certain);
    let changes = match queued {
        Some(0) => [0; 7],
        Some(changed) => refresh
            .repair(changed)
            .unwrap_or_else(|| refresh.rebuild(true)),
        None => refresh.rebuild(true),
    };
    refresh.end(changes[0]);
    drop(own);
    connection.close();
    rights.resign();
    call.rows().put(changes.map(IntoDatum::into_datum));
}

/// The numbers of rows that a refresh has looked at, and of its events by their kinds.
type Changes = [i64; 7];

/// A refresh of a locked tracker.
pub struct Refresh<'a> {
    pub connection: &'a Connection,
    pub tracker: &'a Tracker,
    pub state: State,
    pub started: Instant,
}

impl Refresh<'_> {
    /// Returns the number of keys in the queue; None if any row may have changed.
    fn queued(&self) -> Option<i64> {
        let sql = format!(
            "SELECT pg_catalog.count(*), pg_catalog.bool_or(q.key IS NULL) FROM (SELECT DISTINCT key FROM {}) q",
            self.tracker.queue()
        );
        let mut queued = None;
        let count = self.connection.prepare_kept(&sql, &[]);
        count.run(&[], &mut |row| {
            queued = row.get(1).filter(|_| row.get(2) != Some(true));
        });
        queued
    }

    /// Repairs the clusters around the changed rows. Returns the changes; None where computing anew is cheaper, or a
    /// row has changed that is not in the queue.
    fn repair(&mut self, changed: i64) -> Option<Changes> {
        let rows = self.state.rows.max(changed);
        // Reading half of the rows takes as long as computing all clusters anew.
        let anew = self.state.anew.filter(|_| changed <= FEW.max(rows / 2))?;
        let settings = settings_of_lookups();
        let budget = Budget::new(anew * rows as f64);
        let repaired = repaired(self.connection, self.tracker, &budget);
        let changes = repaired.map(|(rows, order)| {
            let (numbers, changes) = self.write(&rows, &order, true);
            write::canonicals(self.connection, self.tracker, &rows, &numbers);
            changes
        });
        settings.restore();
        changes
    }

    /// Computes all clusters anew.
    pub fn rebuild(&mut self, is_logged: bool) -> Changes {
        let started = Instant::now();
        let (rows, order) = rebuild::run(self.connection, self.tracker);
        let computed = started.elapsed();
        let (_, changes) = self.write(&rows, &order, is_logged);
        let started = Instant::now();
        write::all_canonicals(self.connection, self.tracker);
        let seconds = (computed + started.elapsed()).as_secs_f64();
        self.state.anew = Some(seconds / order.len().max(1) as f64);
        renew_links(self.connection, self.tracker);
        changes
    }

    /// Numbers the clusters of the rows in `order`, one after another, and writes clusters, and the log if
    /// `is_logged`. Returns the numbers of the clusters, and the counts of changes that the refresh reports.
    fn write(
        &mut self,
        rows: &TrackedRows,
        order: &[u32],
        is_logged: bool,
    ) -> (ClusterNumbers, Changes) {
        let mut changes = [order.len() as i64, 0, 0, 0, 0, 0, 0];
        let mut log = is_logged.then(|| write::Log::new(self.connection, self.tracker, rows));
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
        let numbers = numbers.or_raise();
        self.state.rows += write::clusters(self.connection, self.tracker, rows, &numbers);
        self.state.next_cluster = numbers.next;
        (numbers, changes)
    }

    /// Deletes from the queue the entries that have been read, and writes the state.
    pub fn end(&self, looked_at: i64) {
        let delete = format!("DELETE FROM {}", self.tracker.queue());
        self.connection.prepare_kept(&delete, &[]).execute(&[]);
        self.state
            .write(self.connection, self.tracker, self.started, looked_at);
    }
}

/// Returns settings under which rows near others are looked up, until they are restored. Nobody knows how many rows are
/// in the queue and near each other: what PostgreSQL assumes must not lead to a scan of the table, nor of another index
/// with a look at every signature.
pub fn settings_of_lookups() -> Settings {
    let settings = Settings::begin();
    for (setting, value) in [
        (c"enable_seqscan", c"off"),
        (c"enable_hashjoin", c"off"),
        (c"enable_mergejoin", c"off"),
        (c"cpu_operator_cost", c"0.25"),
    ] {
        settings.set(setting, value);
    }
    settings
}

/// Rows that a refresh always begins to search around.
const FEW: i64 = 1000;

pgrx::extension_sql_file!("../../sql/live/refresh.sql", name = "live_refresh");
