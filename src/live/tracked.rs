//! `near_dup_trackers`: all trackers, for the view `near_dup_tracked`.

use crate::live::access::open_own;
use crate::live::leaves::LeafTable;
use crate::live::state;
use crate::live::tracker::{Tracker, note_function};
use crate::pg::arrays::NewTexts;
use crate::pg::call::Call;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::OwnerRights;
use crate::pg::srf::ResultRows;
use crate::pg::statement::{Connection, server_text, text_datum};
use pgrx::prelude::*;

/// Returns the trackers of all tables that the caller may read, and the numbers of rows in their queues.
/// Leaves out a tracker if a table of its own belongs to another role than the tracked table.
#[pg_extern(sql = false)]
fn near_dup_trackers(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let mut rows = call.rows();
    let note = note_function(call.function());
    let connection = Connection::open();
    let tables = connection.prepare(TABLES, &[pg_sys::OIDOID]);
    for table in tables.oids(&[note.into_datum()]) {
        for tracker in Tracker::all_of_table(note, table) {
            put(&connection, &mut rows, &tracker);
        }
    }
    connection.close();
}

/// The tables that have triggers of a function and that the caller may read.
const TABLES: &str = "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_trigger t
    WHERE t.tgfoid OPERATOR(pg_catalog.=) $1 AND t.tgparentid OPERATOR(pg_catalog.=) 0
        AND pg_catalog.has_table_privilege(t.tgrelid, 'SELECT')";

fn put(connection: &Connection, rows: &mut ResultRows, tracker: &Tracker) {
    let mut others = tracker.tables.of_others(tracker.relation);
    if others.next().is_some() {
        return;
    }
    let state = open_own(tracker, tracker.tables.state, &state::columns(), &[1]);
    let Ok(state_table) = state else {
        return;
    };
    let owner = Relation::open_table(tracker.relation).owner();
    let rights = OwnerRights::assume(owner);
    let sql = format!(
        "SELECT (SELECT pg_catalog.count(*) FROM {queue}), s.refreshed_at, s.seconds, s.changed
         FROM (VALUES (1)) v LEFT JOIN {state} s ON true",
        queue = names::relation(tracker.tables.queue),
        state = names::relation(tracker.tables.state),
    );
    let cut = tracker.measure.shingling();
    let is_noted = LeafTable::all_of(tracker).iter().all(LeafTable::is_known);
    connection.prepare(&sql, &[]).run(&[], &mut |row| {
        let text = |text: &str| {
            let text = server_text(text);
            Some(text_datum(text.to_bytes()))
        };
        rows.put([
            tracker.relation.into_datum(),
            tracker.tables.clusters.into_datum(),
            text(&tracker.column),
            tracker.measure.threshold().into_datum(),
            text(&tracker.keep),
            NewTexts(tracker.scope.clone()).into_datum(),
            tracker.is_immediate.into_datum(),
            cut.and_then(|cut| (cut.k as i32).into_datum()),
            cut.and_then(|cut| text(&cut.unit.to_string())),
            cut.and_then(|cut| text(&cut.fold.to_string())),
            row.datum(1).filter(|_| is_noted),
            row.datum(2),
            row.datum(3),
            row.datum(4),
        ]);
    });
    rights.resign();
    drop(state_table);
}

pgrx::extension_sql_file!("../../sql/live/tracked.sql", name = "live_tracked");
