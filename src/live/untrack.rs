//! `near_dup_untrack`: ends keeping clusters.

use crate::live::links;
use crate::live::tracker::{Tracker, TriggerFunctions};
use crate::pg::call::Call;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::{OwnerRights, check_owner};
use crate::pg::statement::Connection;
use pgrx::prelude::*;

/// Implements `near_dup_untrack(clusters)`: drops the triggers and all tables of a tracker but the clusters
/// and their log, which stay as they are.
///
/// # Errors
/// `object_not_in_prerequisite_state` for a table that is not kept, `insufficient_privilege` unless the
/// caller owns the tracked table.
#[pg_extern(sql = false)]
fn near_dup_untrack(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    let clusters = pg_sys::Oid::from(call.argument(0, "clusters").value() as u32);
    let functions = TriggerFunctions::beside(call.function());
    let connection = Connection::open();
    let tracker = Tracker::of_clusters(&functions, &connection, clusters);
    check_owner(tracker.relation);
    // The objects that the triggers name are dropped with the rights of the table's owner, whoever calls.
    let rights = OwnerRights::assume(Relation::open_table(tracker.relation).owner());
    let table = names::relation(tracker.relation);
    links::renew(&connection, &tracker);
    if let Some(trigger) = tracker.note_of_updates(&functions) {
        let trigger = names::identifier(&trigger);
        connection.execute(&format!("DROP TRIGGER {trigger} ON {table}"));
    }
    let tables = tracker.tables;
    for table in [tables.canonical, tables.queue, tables.state] {
        connection.execute(&format!("DROP TABLE {}", names::relation(table)));
    }
    connection.close();
    rights.resign();
}

pgrx::extension_sql_file!("../../sql/live/untrack.sql", name = "live_untrack");
