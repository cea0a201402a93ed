//! Dependencies: of a tracker's objects on its table of clusters, of its triggers on the trigger for updates,
//! which goes with a column that is dropped, and of its policies on the tracked table.

use crate::live::tracker::Tracker;
use crate::pg::catalog::depend;
use crate::pg::statement::Connection;
use pgrx::{IntoDatum, pg_sys};

/// Records that tables and triggers go with the table of clusters when that is dropped, triggers with the
/// trigger that notes updates, and policies with the tracked table. A dump does not contain this.
pub fn renew(connection: &Connection, tracker: &Tracker) {
    let clusters = tracker.tables.clusters;
    let on_clusters = (pg_sys::RelationRelationId, clusters);
    let tables = tracker.tables.all().into_iter();
    for table in tables.filter(|table| *table != clusters) {
        depend((pg_sys::RelationRelationId, table), on_clusters);
    }
    let find = connection.prepare(TRIGGERS, &[pg_sys::OIDOID]);
    let mut triggers = Vec::new();
    find.run(&[clusters.into_datum()], &mut |row| {
        triggers.extend(row.get::<pg_sys::Oid>(1));
    });
    for (number, &trigger) in triggers.iter().enumerate() {
        let trigger = (pg_sys::TriggerRelationId, trigger);
        depend(trigger, on_clusters);
        if number > 0 {
            depend(trigger, (pg_sys::TriggerRelationId, triggers[0]));
        }
    }
    let find = connection.prepare(POLICIES, &[pg_sys::OIDOID; 2]);
    let readable = [clusters, tracker.tables.log].map(IntoDatum::into_datum);
    find.run(&readable, &mut |row| {
        if let (Some(catalog), Some(policy)) = (row.get(1), row.get(2)) {
            let tracked = (pg_sys::RelationRelationId, tracker.relation);
            depend((catalog, policy), tracked);
        }
    });
}

/// The policies on clusters and log, with their catalog.
const POLICIES: &str = "SELECT p.tableoid, p.oid FROM pg_catalog.pg_policy p
    WHERE p.polrelid OPERATOR(pg_catalog.=) ANY (ARRAY[$1, $2])
        AND p.polname OPERATOR(pg_catalog.=) 'near_dup_track'::pg_catalog.name";

/// The triggers that name a table, the trigger that notes updates first.
const TRIGGERS: &str = "SELECT t.oid FROM pg_catalog.pg_trigger t
    WHERE t.tgparentid OPERATOR(pg_catalog.=) 0 AND t.oid OPERATOR(pg_catalog.=) ANY (
        SELECT d.objid FROM pg_catalog.pg_depend d
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
            AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) $1)
    ORDER BY t.tgdeferrable, t.tgtype OPERATOR(pg_catalog.&) 16::pg_catalog.int2 DESC";
