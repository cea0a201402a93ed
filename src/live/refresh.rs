//! `near_dup_refresh`: brings clusters up to date.

use crate::live::budget::Budget;
use crate::live::create::renew_links;
use crate::live::neighborhood::repaired;
use crate::live::rows::{After, TrackedRows};
use crate::live::state::State;
use crate::live::tables::OpenTables;
use crate::live::tracker::{Tracker, TrackerTable};
use crate::live::triggers::noted;
use crate::live::{rebuild, write};
use crate::pg::prelude::*;
use crate::pg::rights::OwnerRights;
use crate::pg::settings::Settings;
use crate::pg::statement::Snapshot;
use neardup::cluster::live::number;
use pgrx::prelude::*;
use std::time::Instant;

/// Implements `near_dup_refresh(clusters, rebuild)`.
///
/// # Errors
/// `object_not_in_prerequisite_state` for a table that no tracker keeps, or whose tracker was altered,
/// `read_only_sql_transaction`, `insufficient_privilege` unless the caller owns the tracked table,
/// `wrong_object_type` if other tables inherit from that table, `feature_not_supported` if it has row-level security,
/// `unique_violation` if two rows have the same key,
/// `not_null_violation` if a key is NULL, `invalid_parameter_value` if signatures have different parameters.
#[pg_extern(sql = false)]
fn near_dup_refresh(call: Call) {
    check_writable();
    let tracker = Tracker::of_argument(&call);
    let wants_rebuild: bool = call.get(1, "rebuild");
    let rights = rights_for(tracker.relation);
    let mut connection = Connection::open();
    // Locks are taken on the table and its partitions first, then on the tracker.
    let table = names::relation(tracker.relation);
    let lock = format!("LOCK TABLE {table} IN ACCESS SHARE MODE");
    connection.prepare_kept(&lock, &[]).execute(&[]);
    let own = OpenTables::open_for_refresh(&tracker);
    let mut refresh = Refresh::begin(&mut connection, &tracker);
    let repaired = (refresh.is_certain && !wants_rebuild).then(|| refresh.repair());
    let changes = repaired.flatten().unwrap_or_else(|| refresh.rebuild(true));
    refresh.end(changes[0]);
    // A trigger or a child may have come to them: creating one does not wait for the lock under which they are open.
    drop(own);
    drop(OpenTables::open_for_refresh(&tracker));
    connection.close();
    rights.resign();
    call.rows().put(changes.map(IntoDatum::into_datum));
}

/// Assumes the rights of the owner of `relation`, with the settings of a refresh.
///
/// # Errors
/// ERROR `wrong_object_type` if other tables inherit from the table, `feature_not_supported` if it has row-level
/// security.
pub fn rights_for(relation: pg_sys::Oid) -> OwnerRights {
    let table = Relation::open_table(relation);
    if table.kind() == pg_sys::RELKIND_RELATION && table.has_children() {
        let table = names::relation(relation);
        raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            &format!("near_dup_track cannot track table with children {table}"),
            "Tables and partitioned tables can be tracked; changes of other tables that inherit from them are not noted.",
        );
    }
    // SAFETY: the table is open.
    if unsafe { (*(*table.as_ptr()).rd_rel).relrowsecurity } {
        let table = names::relation(relation);
        unsupported(
            &format!("clusters would show rows that row-level security of table {table} hides"),
            "Copy keys and signatures into a separate table with a trigger, track that table, and let a policy look up the rows: CREATE POLICY own_rows ON its_clusters AS RESTRICTIVE USING (EXISTS (SELECT FROM this_table WHERE id = key)).",
        );
    }
    let rights = OwnerRights::assume(table.owner());
    // Values survive the conversion to text and back.
    rights.set(c"datestyle", c"ISO");
    rights.set(c"intervalstyle", c"postgres");
    rights.set(c"extra_float_digits", c"3");
    // The penalty costs of disabled plans would trigger JIT compilation.
    rights.set(c"jit", c"off");
    rights
}

/// Checks that the transaction can write.
///
/// # Errors
/// ERROR `read_only_sql_transaction`.
fn check_writable() {
    // SAFETY: reads variables of the backend.
    let place = match unsafe { (pg_sys::RecoveryInProgress(), pg_sys::XactReadOnly) } {
        (true, _) => "on a standby",
        (_, true) => "in a read-only transaction",
        _ => return,
    };
    raise(
        PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
        &format!("near_dup_refresh cannot write {place}"),
        "Refresh on the primary server, in a transaction that writes; standbys get the clusters from there.",
    )
}

/// The number of rows examined, then the number of events of each kind.
type Changes = [i64; 7];

/// A refresh of a locked tracker.
pub struct Refresh<'a> {
    connection: &'a Connection,
    tracker: &'a Tracker,
    state: State,
    /// True if every change since the last refresh was noted.
    is_certain: bool,
    started: Instant,
}

impl<'a> Refresh<'a> {
    /// Locks `tracker`, and takes the snapshot under which the refresh reads.
    pub fn begin(connection: &'a mut Connection, tracker: &'a Tracker) -> Self {
        let started = Instant::now();
        let mut state = State::lock(connection, tracker);
        // Called before the snapshot is taken, so that the snapshot sees all rows of the files that `noted` describes.
        let noted = noted(connection, tracker);
        connection.read_under(Snapshot::take());
        let is_certain = noted.is_some() && noted == state.noted;
        // A snapshot taken at the start of the transaction may not see all rows of a new file.
        state.noted = noted.filter(|_| is_certain || !Snapshot::is_of_transaction());
        Self {
            is_certain,
            connection,
            tracker,
            state,
            started,
        }
    }

    /// Repairs the clusters around the changed rows. Returns the changes, or None if recomputing all clusters is
    /// cheaper, if the time for it is not known, or if rows that are not in the queue changed.
    fn repair(&mut self) -> Option<Changes> {
        let rebuild_seconds = self.state.rebuild_seconds_per_row? * self.state.rows as f64;
        // Rows near others are looked up in the index. The planner cannot know how many rows are near each other, and
        // its guess must not lead to a scan of the whole table or another index.
        let settings = Settings::begin();
        for setting in [c"enable_seqscan", c"enable_hashjoin", c"enable_mergejoin"] {
            settings.set(setting, c"off");
        }
        settings.set(c"cpu_operator_cost", c"0.25");
        let budget = Budget::new(rebuild_seconds);
        let repaired = repaired(self.connection, self.tracker, &budget);
        let changes = repaired.map(|(rows, order)| {
            let changes = self.write(&rows, &order, true);
            let touched = rows.iter().filter(|(number, row)| {
                let (was, is) = (row.was_canonical(*number), row.is_canonical(*number));
                row.after != After::Same && (was != is || row.is_changed && is)
            });
            let keys = collected(touched.map(|(number, _)| rows.key(number))).or_raise();
            write::canonicals(self.connection, self.tracker, &keys);
            changes
        });
        settings.restore();
        changes
    }

    /// Recomputes all clusters, and returns the changes. Writes the changes to the log if `is_logged`.
    pub fn rebuild(&mut self, is_logged: bool) -> Changes {
        let started = Instant::now();
        let (rows, order) = rebuild::run(self.connection, self.tracker);
        let computing = started.elapsed();
        // This is not timed, because a search would write the same changes.
        let changes = self.write(&rows, &order, is_logged);
        let comparing = write::all_canonicals(self.connection, self.tracker);
        let seconds = (computing + comparing).as_secs_f64();
        self.state.rebuild_seconds_per_row = Some(seconds / order.len().max(1) as f64);
        renew_links(self.connection, self.tracker);
        changes
    }

    /// Numbers the clusters of the rows in `order`, and writes the clusters and, if `is_logged`, their log. Returns the
    /// counts that the refresh reports.
    fn write(&mut self, rows: &TrackedRows, order: &[u32], is_logged: bool) -> Changes {
        // Deletes the queue entries that the snapshot shows, before the clusters are written: a trigger on those may
        // change rows, whose keys stay in the queue for the next refresh.
        let delete = format!("DELETE FROM {}", self.tracker.table(TrackerTable::Queue));
        self.connection.prepare_kept(&delete, &[]).execute(&[]);
        let mut changes = [order.len() as i64, 0, 0, 0, 0, 0, 0];
        let mut events = Vec::new();
        let moves = order.iter().map(|&row| rows.change(row));
        let kept = |canonical: u32| rows.lasting_cluster(canonical);
        let numbers = number(moves, self.state.next_cluster, &kept, &mut |event| {
            // Kinds are numbered like the columns of the result.
            changes[1 + event.kind as usize] += 1;
            events.try_extend(is_logged.then_some(event)).or_raise();
        });
        let numbers = numbers.or_raise();
        write::log(self.connection, self.tracker, rows, events);
        self.state.rows += write::clusters(self.connection, self.tracker, rows, &numbers);
        self.state.next_cluster = numbers.next;
        changes
    }

    /// Writes the state of a refresh that examined `looked_at` rows.
    pub fn end(&mut self, looked_at: i64) {
        // A partition or child that came in the meantime may have been read, and can be gone before the next refresh.
        let now = || noted(self.connection, self.tracker);
        let is_other = |before: &mut String| now().as_ref() != Some(&*before);
        self.state.noted.take_if(is_other);
        self.state
            .write(self.connection, self.tracker, self.started, looked_at);
    }
}

pgrx::extension_sql_file!("../../sql/live/refresh.sql", name = "live_refresh");
