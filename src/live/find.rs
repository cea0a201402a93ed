//! Finds trackers by their tables.

use crate::live::tables::open_state;
use crate::live::tracker::{Tracker, TrackerTable, note_function};
use crate::pg::prelude::*;
use crate::pg::rights::{OwnerRights, check_owner};

/// Finds the tables whose triggers depend on table `$1` and whose owner owns `$1`.
const TRACKED: &str = "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_trigger t ON t.oid OPERATOR(pg_catalog.=) d.objid
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
    JOIN pg_catalog.pg_class o ON o.oid OPERATOR(pg_catalog.=) d.refobjid
        AND o.relowner OPERATOR(pg_catalog.=) c.relowner
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.refobjid OPERATOR(pg_catalog.=) $1 AND t.tgparentid OPERATOR(pg_catalog.=) 0";

impl Tracker {
    /// Returns the trackers of `table`, or none if the table no longer exists.
    pub fn all_of_table(
        note: pg_sys::Oid,
        connection: &Connection,
        table: pg_sys::Oid,
    ) -> Vec<Self> {
        let Some(table) = Relation::try_open_table(table) else {
            return Vec::new();
        };
        let own = table.triggers().iter().filter(|trigger| {
            let is_update = trigger.tgtype as u32 & pg_sys::TRIGGER_TYPE_UPDATE != 0;
            trigger.tgfoid == note && is_update && !trigger.tgisclone
        });
        let found = own.filter_map(|trigger| Self::of_trigger(note, &table, trigger));
        found
            .filter(|tracker| tracker.is_linked(connection))
            .collect()
    }

    /// Returns whether all tables of the tracker belong to the owner of the tracked table, and the state does not name
    /// a different table. The state of an altered state table is not read.
    fn is_linked(&self, connection: &Connection) -> bool {
        let is_own = |&table: &pg_sys::Oid| names::owner(table) == Some(self.owner);
        if !self.tables.all().iter().all(is_own) {
            return false;
        }
        // `OpenTables` reports alterations.
        let Ok(_state) = open_state(self) else {
            return true;
        };
        let rights = OwnerRights::assume(self.owner);
        let state = self.table(TrackerTable::State);
        let sql = format!("SELECT s.relation::pg_catalog.oid FROM {state} s");
        let linked = connection.prepare(&sql, &[]).oids(&[]);
        rights.resign();
        linked.iter().all(|&linked| linked == self.relation)
    }

    /// Returns the tracker whose clusters table is the first argument of `call`.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if there is no such tracker, or two or more tables have its triggers;
    /// `insufficient_privilege` unless the caller owns the tracked table.
    pub fn of_argument(call: &Call) -> Self {
        let clusters = call.oid(0, "clusters");
        let note = note_function(call.function());
        let connection = Connection::open();
        let tables = connection.prepare_kept(TRACKED, &[pg_sys::OIDOID]);
        let tables = tables.oids(&[clusters.into_datum()]).into_iter();
        let trackers = tables.flat_map(|table| Self::all_of_table(note, &connection, table));
        let of_clusters = |tracker: &Self| tracker.tables.get(TrackerTable::Clusters) == clusters;
        let mut trackers: Vec<_> = trackers.filter(of_clusters).collect();
        connection.close();
        let name = names::relation(clusters);
        let Some(tracker) = trackers.pop() else {
            not_ready(
                &format!("{name} is not maintained by near_dup_track"),
                "The view near_dup_tracked lists the tables that are; all tables of a tracker must have the owner of the tracked table.",
            );
        };
        if let Some(other) = trackers.first() {
            let [first, second] =
                [other, &tracker].map(|tracker| names::relation(tracker.relation));
            let found = match first == second {
                true => format!("{first} has the triggers of {name} twice"),
                false => format!("{first} and {second} both have the triggers of {name}"),
            };
            let hint = "Drop the triggers that near_dup_track did not create.";
            not_ready(&found, hint);
        }
        check_owner(tracker.relation);
        tracker
    }
}
