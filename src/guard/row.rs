//! Rows that guards check: the place where one was written, and the table that it is in.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::{Slot, Tid, is_heap_only};
use crate::pg::error::raise;
use crate::pg::relation::{Relation, blocks};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CString;

/// A row that a transaction has written, by its place.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub root: pg_sys::Oid,
    pub table: pg_sys::Oid,
    /// The table's file, which a place belongs to.
    pub file: pg_sys::Oid,
    pub trigger: pg_sys::Oid,
    /// The version that was written; None of a row that was deleted.
    pub new: Option<Tid>,
    /// The version that was replaced or deleted.
    pub old: Option<Tid>,
    pub subtransaction: pg_sys::SubTransactionId,
}

/// Raises the ERROR of a trigger function that was called in another way than it is made for.
pub fn not_so(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        message,
        "Use it as CREATE TRIGGER ... AFTER INSERT OR UPDATE ON ... FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8').",
    )
}

/// A table with a trigger that has noted rows.
pub struct Source {
    pub table: Relation,
    pub trigger: pg_sys::Oid,
    pub name: CString,
    pub columns: GuardColumns,
    /// The number of its guard.
    pub guard: usize,
}

/// A row that is checked.
pub struct Row<'r> {
    pub source: &'r Source,
    /// The version for which a trigger fired.
    pub noted: *mut pg_sys::TupleTableSlot,
    /// Its newest version, which may be another: other triggers and other statements may have changed it since.
    pub slot: *mut pg_sys::TupleTableSlot,
    /// The version that an UPDATE replaced.
    pub old: Option<*mut pg_sys::TupleTableSlot>,
    /// An entry of the row in an index leads to a version with the values of the newest one.
    pub is_indexed: bool,
}

/// Calls a function with the row at a place, as it is now. Returns its result; None if the row is gone.
///
/// # Safety
/// The place is one of the running transaction, in the table of the source.
pub unsafe fn with_row<R>(
    place: &Place,
    source: &Source,
    work: impl FnOnce(&Row<'_>) -> R,
) -> Option<R> {
    let table = source.table.as_ptr();
    // SAFETY: vouched for by the caller.
    unsafe {
        let noted = version(place, source, place.new)?;
        let newest = Slot::new(table);
        newest.fetch_newest(table, place.new?).then(|| {
            let old = version(place, source, place.old);
            let [noted, slot] = [&noted, &newest].map(Slot::as_ptr);
            work(&Row {
                source,
                noted,
                slot,
                old: old.as_ref().map(Slot::as_ptr),
                is_indexed: !is_heap_only(slot)
                    || !is_heap_only(noted) && source.columns.are_same(noted, slot),
            })
        })
    }
}

/// Calls a function with the version of a row that a deletion or a change of its key or of a column that the
/// guard reads has replaced. Returns its result; None if there is no such version.
///
/// # Safety
/// As for [`with_row`].
pub unsafe fn with_replaced<R>(
    place: &Place,
    source: &Source,
    work: impl FnOnce(*mut pg_sys::TupleTableSlot) -> R,
) -> Option<R> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let old = version(place, source, place.old)?;
        let is_kept = version(place, source, place.new)
            .is_some_and(|new| source.columns.are_same_row(old.as_ptr(), new.as_ptr()));
        (!is_kept).then(|| work(old.as_ptr()))
    }
}

/// Returns a version of the row at a place, visible or not; None if it is gone.
///
/// # Safety
/// As for [`with_row`].
unsafe fn version(place: &Place, source: &Source, tid: Option<Tid>) -> Option<Slot> {
    let (table, tid) = (source.table.as_ptr(), tid?);
    // SAFETY: vouched for by the caller; versions that the transaction has written stay in the file.
    unsafe {
        let is_there = (*(*table).rd_rel).relfilenode == place.file && tid.0 < blocks(table);
        let slot = is_there.then(|| Slot::new(table))?;
        slot.fetch(table, tid).then_some(slot)
    }
}
