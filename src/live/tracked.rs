//! `near_dup_trackers` returns all trackers, for the view `near_dup_tracked`.

use crate::live::tables::OpenTables;
use crate::live::tracker::{Tracker, TrackerTable, note_function};
use crate::live::triggers::noted;
use crate::pg::arrays::NewTexts;
use crate::pg::prelude::*;
use crate::pg::rights::OwnerRights;
use crate::pg::srf::ResultRows;
use crate::pg::statement::{server_text, text_datum};
use pgrx::prelude::*;

/// Returns the trackers of all tables that the caller may read, with the lengths of their queues. If a table of a
/// tracker was altered, reports how.
#[pg_extern(sql = false)]
fn near_dup_trackers(call: Call) {
    let mut rows = call.rows();
    let note = note_function(call.function());
    let connection = Connection::open();
    let tables = connection.prepare(TABLES, &[pg_sys::OIDOID]);
    for table in tables.oids(&[note.into_datum()]) {
        for tracker in Tracker::all_of_table(note, &connection, table) {
            put(&connection, &mut rows, &tracker);
        }
    }
    connection.close();
}

/// Finds the tables that the caller may read and that have triggers with the function `$1`. Temporary tables cannot be
/// tracked, but any role can create one with such a trigger, and make the caller wait for its lock.
const TABLES: &str = "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
    WHERE t.tgfoid OPERATOR(pg_catalog.=) $1 AND t.tgparentid OPERATOR(pg_catalog.=) 0
        AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
        AND pg_catalog.has_table_privilege(t.tgrelid, 'SELECT')";

fn put(connection: &Connection, rows: &mut ResultRows, tracker: &Tracker) {
    let rights = OwnerRights::assume(tracker.owner);
    let opened = OpenTables::open(tracker);
    // Length of the queue; time, duration and rows of the last refresh.
    let mut last = [None; 4];
    if opened.is_ok() {
        let noted = noted(connection, tracker);
        let sql = format!(
            "SELECT (SELECT pg_catalog.count(*) FROM {queue}), s.refreshed_at, s.seconds, s.changed, s.noted
             FROM (VALUES (1)) v LEFT JOIN {state} s ON true",
            queue = tracker.table(TrackerTable::Queue),
            state = tracker.table(TrackerTable::State),
        );
        connection.prepare(&sql, &[]).run(&[], &mut |row| {
            last = [1, 2, 3, 4].map(|column| row.datum(column));
            last[0].take_if(|_| noted.is_none() || noted != row.name(5));
        });
    }
    let text = |text: &str| Some(text_datum(server_text(text).to_bytes()));
    let bare = |number| names::column(tracker.relation, number).unwrap_or_default();
    let scope = tracker.scope.iter().map(|column| bare(column.number));
    let cut = tracker.measure.shingling();
    let condition = tracker.condition.as_ref();
    rows.put([
        tracker.relation.into_datum(),
        tracker.tables.get(TrackerTable::Clusters).into_datum(),
        text(&bare(tracker.value.number)),
        tracker.measure.bound.number().into_datum(),
        text(&tracker.order.order_by_sql()),
        NewTexts(scope.collect()).into_datum(),
        text(&bare(tracker.key.number)),
        condition.and_then(|condition| text(&condition.sql)),
        tracker.tables.exceptions.into_datum(),
        cut.and_then(|cut| (cut.k as i32).into_datum()),
        cut.and_then(|cut| text(&cut.unit.to_string())),
        cut.and_then(|cut| text(&cut.fold.to_string())),
        last[0],
        last[1],
        last[2],
        last[3],
        opened.err().and_then(|altered| text(&altered.0)),
    ]);
    rights.resign();
}

pgrx::extension_sql_file!("../../sql/live/tracked.sql", name = "live_tracked");
