//! The dependence of a tracker's objects on its table of clusters.

use crate::live::tracker::Tracker;
use crate::pg::statement::Connection;
use pgrx::{IntoDatum, pg_sys};

/// Notes that tables and triggers go with the table of clusters when that is dropped. A dump does not
/// contain this.
pub fn renew(connection: &Connection, tracker: &Tracker) {
    let clusters = tracker.tables.clusters;
    let mut dependents: Vec<(pg_sys::Oid, pg_sys::Oid)> = Vec::new();
    let others = tracker
        .tables
        .all()
        .into_iter()
        .filter(|table| *table != clusters);
    dependents.extend(others.map(|table| (pg_sys::RelationRelationId, table)));
    let triggers = connection.prepare(
        "SELECT DISTINCT objid FROM pg_catalog.pg_depend
         WHERE classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass
             AND refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND refobjid = $1",
        &[pg_sys::OIDOID],
    );
    triggers.run(None, &[clusters.into_datum()], &mut |row| {
        let trigger = row.get::<pg_sys::Oid>(1);
        dependents.extend(trigger.map(|trigger| (pg_sys::TriggerRelationId, trigger)));
    });
    let address = |class, object| pg_sys::ObjectAddress {
        classId: class,
        objectId: object,
        objectSubId: 0,
    };
    let behavior = pg_sys::DependencyType::DEPENDENCY_AUTO;
    for (class, object) in dependents {
        // SAFETY: the objects exist; a dependency that is noted already is not noted again.
        unsafe {
            pg_sys::deleteDependencyRecordsForSpecific(
                class,
                object,
                behavior as std::ffi::c_char,
                pg_sys::RelationRelationId,
                clusters,
            );
            let referenced = address(pg_sys::RelationRelationId, clusters);
            pg_sys::recordDependencyOn(&address(class, object), &referenced, behavior);
        }
    }
}
