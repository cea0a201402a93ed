//! Rows that a statement has written: the place of each, the table that it is in, and its versions.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::{Slot, Tid, is_heap_only, tid};
use crate::pg::error::raise;
use crate::pg::relation::Relation;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CString;

/// A row that a transaction has written, by its place.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub root: pg_sys::Oid,
    pub table: pg_sys::Oid,
    pub trigger: pg_sys::Oid,
    /// The version that was written; None of a row that was deleted.
    pub new: Option<Tid>,
    /// The version that was replaced or deleted.
    pub old: Option<Tid>,
}

/// Raises the ERROR of a trigger function that was called in another way than it is made for.
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
    /// The number of its guard.
    pub guard: usize,
}

/// A row with the versions that matter.
pub struct Row<'r> {
    pub source: &'r Source,
    /// Its newest version: other triggers may have changed it since its own one fired.
    pub slot: *mut pg_sys::TupleTableSlot,
    pub tid: Tid,
    /// The version that an UPDATE replaced.
    pub old: Option<*mut pg_sys::TupleTableSlot>,
    /// True if an entry of the row in an index leads to a version with the values of the newest one.
    pub is_indexed: bool,
}

/// Calls a function with the row at a place, as it is now. Returns its result; None if the row is gone.
///
/// # Safety
/// The place is one of the running statement, in the table of the source.
pub unsafe fn with_row<R>(
    place: &Place,
    source: &Source,
    work: impl FnOnce(&Row<'_>) -> R,
) -> Option<R> {
    let table = source.table.as_ptr();
    let written = version(source, place.new)?;
    let newest = Slot::new(table);
    newest.fetch_newest(table, place.new?).then(|| {
        let old = version(source, place.old);
        let [written, slot] = [&written, &newest].map(Slot::as_ptr);
        work(&Row {
            source,
            slot,
            tid: tid(slot),
            old: old.as_ref().map(Slot::as_ptr),
            is_indexed: !is_heap_only(slot)
                || !is_heap_only(written) && source.columns.are_same(written, slot),
        })
    })
}

/// Returns a version of the row at a place, visible or not; None if there is no such version. The table still has the
/// file in which the statement wrote: it cannot be rewritten while it is open, or has triggers that have not fired.
///
/// # Safety
/// As for [`with_row`].
pub unsafe fn version(source: &Source, tid: Option<Tid>) -> Option<Slot> {
    let (table, tid) = (source.table.as_ptr(), tid?);
    // Versions that the transaction has written stay in the file.
    let slot = Slot::new(table);
    slot.fetch(table, tid).then_some(slot)
}
