//! Rows of the table, as a scan's snapshot sees them.

use super::hold;
use crate::pg::error::{check_interrupts, unless};
use crate::pg::relation::index_fetch_begin;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Reads versions of rows by their places in the table, as a snapshot sees them.
pub struct Versions {
    snapshot: pg_sys::Snapshot,
    table: *mut pg_sys::IndexFetchTableData,
    slot: *mut pg_sys::TupleTableSlot,
}

impl Versions {
    /// # Safety
    /// The table is open and the snapshot valid until [`Self::close`], or an ERROR.
    pub unsafe fn open(table: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            Self {
                snapshot,
                table: index_fetch_begin(table),
                slot: pg_sys::table_slot_create(table, std::ptr::null_mut()),
            }
        }
    }

    /// Returns the version at a place, valid until the next call; None if the snapshot sees none.
    pub fn seen(
        &mut self,
        mut tid: pg_sys::ItemPointerData,
    ) -> Option<*mut pg_sys::TupleTableSlot> {
        check_interrupts();
        let (mut goes_on, mut all_dead) = (false, false);
        // SAFETY: all is open.
        let is_seen = unsafe {
            pg_sys::table_index_fetch_tuple(
                self.table,
                &mut tid,
                self.snapshot,
                self.slot,
                &mut goes_on,
                &mut all_dead,
            )
        };
        is_seen.then_some(self.slot)
    }

    /// Releases its memory and its rows of the table.
    pub fn close(self) {
        // SAFETY: all is open, and not used again.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::table_index_fetch_end(self.table);
        }
    }
}

/// Reads the values that a row has in the columns of an index.
pub struct Fetch {
    versions: Versions,
    info: *mut pg_sys::IndexInfo,
    state: *mut pg_sys::EState,
    /// For each row anew: the memory of expressions.
    context: *mut pg_sys::ExprContext,
}

impl Fetch {
    /// # Safety
    /// Table, index and snapshot are there until [`Self::close`], or an ERROR; so is the current memory
    /// context.
    pub unsafe fn open(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
    ) -> Self {
        // SAFETY: table and index are open.
        unsafe {
            let state = pg_sys::CreateExecutorState();
            Self {
                versions: Versions::open(table, snapshot),
                info: pg_sys::BuildIndexInfo(index),
                state,
                context: pg_sys::MakePerTupleExprContext(state),
            }
        }
    }

    /// Calls `look` with the values of a row, valid during the call; None if the snapshot does not
    /// see the row.
    pub fn row<R>(
        &mut self,
        tid: pg_sys::ItemPointerData,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> Option<R> {
        let slot = self.versions.seen(tid)?;
        Some(self.look_at(slot, look))
    }

    /// Does [`Self::row`]; returns None also if values of the row are removed before they are read, as
    /// they may be under a snapshot of VACUUM.
    pub fn row_that_stays<R>(
        &mut self,
        tid: pg_sys::ItemPointerData,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> Option<R> {
        let slot = self.versions.seen(tid)?;
        hold::point("fetch_sees_row");
        // SAFETY: the slot has a row; the copy takes its place.
        unsafe {
            let (mut is_copy, descriptor) = (false, (*slot).tts_tupleDescriptor);
            let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, &mut is_copy);
            let fetched = unless(PgSqlErrorCode::ERRCODE_DATA_CORRUPTED, || {
                pg_sys::ffi::pg_guard_ffi_boundary(|| toast_flatten_tuple(tuple, descriptor))
            })?;
            pg_sys::ExecForceStoreHeapTuple(fetched, slot, true);
        }
        Some(self.look_at(slot, look))
    }

    fn look_at<R>(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> R {
        let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
        let mut is_null = [true; pg_sys::INDEX_MAX_KEYS as usize];
        // SAFETY: all is open; the arrays have room for every column.
        unsafe {
            pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            let before = pg_sys::MemoryContextSwitchTo((*self.context).ecxt_per_tuple_memory);
            (*self.context).ecxt_scantuple = slot;
            let (values, is_null) = (&mut values, &mut is_null);
            pg_sys::FormIndexDatum(
                self.info,
                slot,
                self.state,
                values.as_mut_ptr(),
                is_null.as_mut_ptr(),
            );
            let columns = (*self.info).ii_NumIndexAttrs as usize;
            let seen = look(&values[..columns], &is_null[..columns]);
            pg_sys::MemoryContextSwitchTo(before);
            seen
        }
    }

    /// Releases its memory and its rows of the table.
    pub fn close(self) {
        self.versions.close();
        // SAFETY: it is not used again.
        unsafe { pg_sys::FreeExecutorState(self.state) };
    }
}

unsafe extern "C-unwind" {
    /// Copies a row, with the values that its TOAST table has.
    fn toast_flatten_tuple(
        row: pg_sys::HeapTuple,
        descriptor: pg_sys::TupleDesc,
    ) -> pg_sys::HeapTuple;
}
