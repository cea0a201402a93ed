//! The tables whose rows pass, and the rows at their places.

use crate::guard::check::Row;
use crate::guard::columns::GuardColumns;
use crate::guard::row::{Place, Slot, Tid};
use crate::pg::relation::{Relation, blocks};
use pgrx::pg_sys;
use std::ffi::CString;

/// A table with a trigger that has noted rows.
pub struct Source {
    pub table: Relation,
    pub trigger: pg_sys::Oid,
    pub name: CString,
    pub columns: GuardColumns,
    /// The number of its guard.
    pub guard: usize,
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
            let old = old.as_ref().map(Slot::as_ptr);
            let [noted, newest] = [noted.as_ptr(), newest.as_ptr()];
            work(&Row::new(table, &source.columns, noted, newest, old))
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

/// Returns the result of some work, and frees the values of PostgreSQL's that it leaves behind.
pub fn in_memory_of_its_own<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: after an ERROR the memory is freed with the one that it is part of.
    unsafe {
        let before = pg_sys::CurrentMemoryContext;
        let own = pg_sys::AllocSetContextCreateExtended(
            before,
            c"near_dup_guard".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        pg_sys::MemoryContextSwitchTo(own);
        let result = work();
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(own);
        result
    }
}
