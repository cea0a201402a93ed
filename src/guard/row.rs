//! Rows that a statement wrote: their places, tables and versions.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::{Slot, Tid, is_heap_only};
use crate::pg::error::raise;
use crate::pg::relation::Relation;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CString;

/// A row that a statement wrote, as its trigger saw it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub root: pg_sys::Oid,
    pub table: pg_sys::Oid,
    pub trigger: pg_sys::Oid,
    /// The version that was written, None if the row was deleted.
    pub new: Option<Tid>,
    /// The version that was replaced or deleted.
    pub old: Option<Tid>,
}

/// Raises the ERROR of a trigger function that was not called as intended.
pub fn protocol_violation(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        message,
        "Use it as CREATE TRIGGER ... AFTER INSERT OR UPDATE ON ... FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8').",
    )
}

/// A table with a trigger that fired for rows.
pub struct Source {
    pub table: Relation,
    pub trigger: pg_sys::Oid,
    pub name: CString,
    pub columns: GuardColumns,
}

/// A row and the version that it replaced.
pub struct Row<'r> {
    pub source: &'r Source,
    /// Its newest version. Triggers may have changed the row after its own trigger fired.
    pub slot: *mut pg_sys::TupleTableSlot,
    /// The version that an UPDATE replaced.
    pub old: Option<*mut pg_sys::TupleTableSlot>,
    /// True if an index entry leads to a version with the values of the newest one.
    pub is_indexed: bool,
}

impl Source {
    /// Calls `work` with the row at a place, as it is now. Returns its result, or None if the row no longer exists.
    ///
    /// # Safety
    /// The place belongs to the running statement and to the table.
    pub unsafe fn with_row<R>(&self, place: &Place, work: impl FnOnce(&Row<'_>) -> R) -> Option<R> {
        let table = self.table.as_ptr();
        let written = self.version(place.new)?;
        let newest = Slot::new(table);
        newest.fetch_newest(table, place.new?).then(|| {
            let old = self.version(place.old);
            let [written, slot] = [&written, &newest].map(Slot::as_ptr);
            work(&Row {
                source: self,
                slot,
                old: old.as_ref().map(Slot::as_ptr),
                is_indexed: !is_heap_only(slot)
                    || !is_heap_only(written) && self.columns.are_same(written, slot),
            })
        })
    }

    /// Returns a version of a row, visible or not, or None if it does not exist. The table cannot have been rewritten
    /// since: the statement has it open, or triggers that have not fired forbid it.
    ///
    /// # Safety
    /// As for [`Self::with_row`].
    pub unsafe fn version(&self, tid: Option<Tid>) -> Option<Slot> {
        let (table, tid) = (self.table.as_ptr(), tid?);
        let slot = Slot::new(table);
        slot.fetch(table, tid).then_some(slot)
    }
}
