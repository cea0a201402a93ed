//! Index, privileges and dependencies of a tracker's tables.

use crate::index::kind::scope_class;
use crate::live::tracker::{Tracker, TrackerTable};
use crate::live::triggers;
use crate::pg::catalog::depend;
use crate::pg::prelude::*;

/// Creates the index that finds canonical rows near a value.
pub fn create_index(connection: &Connection, tracker: &Tracker) {
    let measure = &tracker.measure;
    let class = scope_class(measure.schema);
    let scope = tracker.of_scope(|number, _| format!("scope{number} {class}, "));
    connection.execute(&format!(
        "CREATE INDEX ON {} USING neardup ({scope}kept {})",
        tracker.table(TrackerTable::Canonical),
        measure.bound.operator_class(measure.schema)
    ));
}

/// Grants SELECT on the clusters and the log to all roles that may read the tracked table. Creates policies that hide
/// both from a role once row-level security of the tracked table applies to the role.
pub fn share(connection: &Connection, tracker: &Tracker) {
    let table = names::literal(&names::relation(tracker.relation));
    let readers = connection.prepare(READERS, &[pg_sys::OIDOID]);
    let mut roles = None;
    let relation = [tracker.relation.into_datum()];
    readers.run(&relation, &mut |row| roles = row.name(1));
    for readable in [TrackerTable::Clusters, TrackerTable::Log] {
        let readable = tracker.table(readable);
        connection.execute(&format!(
            "ALTER TABLE {readable} ENABLE ROW LEVEL SECURITY;
             CREATE POLICY near_dup_track ON {readable} USING ((SELECT NOT
                 pg_catalog.row_security_active({table}::pg_catalog.regclass::pg_catalog.oid)))"
        ));
        if let Some(roles) = &roles {
            connection.execute(&format!("GRANT SELECT ON {readable} TO {roles}"));
        }
    }
}

/// Lists the roles that may read table `$1`, except its owner. NULL if there are none.
const READERS: &str = "SELECT pg_catalog.string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
        ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END, ', ')
    FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
    WHERE c.oid = $1 AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner";

/// Records dependencies of a tracker. Its other tables and its triggers are dropped with the clusters table, its other
/// triggers also with the trigger for updates, and its policies with the tracked table. A dump does not contain these
/// dependencies.
pub fn renew_links(connection: &Connection, tracker: &Tracker) {
    let tables = &tracker.tables;
    let relation = |table| (pg_sys::RelationRelationId, table);
    let [clusters, others @ ..] = tables.own.map(relation);
    for table in others {
        depend(table, clusters);
    }
    let tracked = Relation::open_table(tracker.relation);
    let trigger = |trigger: &pg_sys::Trigger| (pg_sys::TriggerRelationId, trigger.tgoid);
    let updates = triggers::for_updates(tracker.note, &tracked, tables).map(trigger);
    for table in [tracker.relation].into_iter().chain(tables.exceptions) {
        let table = Relation::open_table(table);
        for noting in triggers::noting(tracker.note, &table, tables).map(trigger) {
            depend(noting, clusters);
            if let Some(updates) = updates.filter(|updates| *updates != noting) {
                depend(noting, updates);
            }
        }
    }
    let find = connection.prepare(POLICIES, &[pg_sys::OIDOID; 2]);
    let readable =
        [TrackerTable::Clusters, TrackerTable::Log].map(|table| tables.get(table).into_datum());
    find.run(&readable, &mut |row| {
        if let Some(policy) = row.get(1).zip(row.get(2)) {
            depend(policy, relation(tracker.relation));
        }
    });
}

/// Finds the policies that [`share`] created on the tables `$1` and `$2`.
const POLICIES: &str = "SELECT p.tableoid, p.oid FROM pg_catalog.pg_policy p
    WHERE p.polrelid OPERATOR(pg_catalog.=) ANY (ARRAY[$1, $2])
        AND p.polname OPERATOR(pg_catalog.=) 'near_dup_track'::pg_catalog.name";
