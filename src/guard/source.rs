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
    let (table, tid) = (source.table.as_ptr(), place.new?);
    // SAFETY: vouched for by the caller; versions that the running transaction has written stay in
    // the file.
    unsafe {
        if (*(*table).rd_rel).relfilenode != place.file || tid.0 >= blocks(table) {
            return None;
        }
        let [noted, newest, old] = [(); 3].map(|()| Slot::new(table));
        if !noted.fetch(table, tid) || !newest.fetch_newest(table, tid) {
            return None;
        }
        let old = (place.old)
            .filter(|&tid| old.fetch(table, tid))
            .map(|_| old.as_ptr());
        let [noted, newest] = [noted.as_ptr(), newest.as_ptr()];
        let row = Row::new(table, &source.columns, noted, newest, old);
        Some(work(&row))
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
    let table = source.table.as_ptr();
    // SAFETY: vouched for by the caller; as in `with_row`.
    unsafe {
        let [new, old] = [(); 2].map(|()| Slot::new(table));
        let is_there = |slot: &Slot, tid: Tid| {
            (*(*table).rd_rel).relfilenode == place.file
                && tid.0 < blocks(table)
                && slot.fetch(table, tid)
        };
        if !is_there(&old, place.old?) {
            return None;
        }
        let [new_version, old_version] = [new.as_ptr(), old.as_ptr()];
        let is_kept = place.new.is_some_and(|tid| {
            is_there(&new, tid) && source.columns.are_same_row(old_version, new_version)
        });
        (!is_kept).then(|| work(old_version))
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
