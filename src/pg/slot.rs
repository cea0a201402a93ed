//! Versions of rows in slots.

use crate::pg::error::check_interrupts;
use crate::pg::value::Layout;
use pgrx::itemptr::{item_pointer_get_both, item_pointer_set_all};
use pgrx::pg_sys;
use std::ffi::CStr;

/// Returns the value of a column, or None for NULL.
///
/// # Safety
/// The slot holds a row with that column.
pub unsafe fn get(slot: *mut pg_sys::TupleTableSlot, column: i16) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    let value = pg_sys::slot_getattr(slot, i32::from(column), &mut is_null);
    (!is_null).then_some(value)
}

/// Returns the text form of a value, allocated in the current memory context.
///
/// # Safety
/// The value is of type `type_`.
pub unsafe fn as_text<'v>(type_: pg_sys::Oid, value: pg_sys::Datum) -> &'v CStr {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    pg_sys::getTypeOutputInfo(type_, &mut function, &mut is_varlena);
    CStr::from_ptr(pg_sys::OidOutputFunctionCall(function, value))
}

/// Returns whether two values have the same bits. TOAST pointers are followed.
///
/// # Safety
/// The values are of type `type_`.
pub unsafe fn are_same(type_: pg_sys::Oid, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
    let layout = Layout::of(type_);
    pg_sys::datum_image_eq(a, b, layout.by_value, layout.length.into())
}

/// Returns whether each of `columns` has the same bits in two versions of a row, or is NULL in both.
///
/// # Safety
/// The slots hold rows of a table with these columns.
pub unsafe fn have_same_bits(
    a: *mut pg_sys::TupleTableSlot,
    b: *mut pg_sys::TupleTableSlot,
    columns: &[i16],
) -> bool {
    columns
        .iter()
        .all(|&column| match (get(a, column), get(b, column)) {
            (Some(value), Some(other)) => {
                let type_ = pg_sys::SPI_gettypeid((*a).tts_tupleDescriptor, column.into());
                are_same(type_, value, other)
            }
            (value, other) => value.is_none() && other.is_none(),
        })
}

/// A row's place in its table: block and offset.
pub type Tid = (pg_sys::BlockNumber, pg_sys::OffsetNumber);

/// Returns the tid of the row that a slot holds.
///
/// # Safety
/// The slot holds a row of a table.
pub unsafe fn tid(slot: *mut pg_sys::TupleTableSlot) -> Tid {
    item_pointer_get_both((*slot).tts_tid)
}

/// A row's table and its place there.
pub type RowPlace = (u32, Tid);

/// Returns the place of the row that a slot holds.
///
/// # Safety
/// The requirements of [`tid`].
pub unsafe fn row_place(slot: *mut pg_sys::TupleTableSlot) -> RowPlace {
    ((*slot).tts_tableOid.to_u32(), tid(slot))
}

fn pointer_to((block, offset): Tid) -> pg_sys::ItemPointerData {
    let mut pointer = pg_sys::ItemPointerData::default();
    item_pointer_set_all(&mut pointer, block, offset);
    pointer
}

/// A slot for rows of a table.
pub struct Slot(*mut pg_sys::TupleTableSlot);

impl Slot {
    /// Returns a slot for rows of `table`.
    ///
    /// # Safety
    /// The table is open, and stays open while the slot exists.
    pub unsafe fn new(table: pg_sys::Relation) -> Self {
        Self(pg_sys::table_slot_create(table, std::ptr::null_mut()))
    }

    pub fn as_ptr(&self) -> *mut pg_sys::TupleTableSlot {
        self.0
    }

    /// Fetches the version of a row at `tid` into the slot, visible or not. Returns whether it exists.
    ///
    /// # Safety
    /// The slot belongs to the table, and the table has that block.
    pub unsafe fn fetch(&self, table: pg_sys::Relation, tid: Tid) -> bool {
        let mut pointer = pointer_to(tid);
        let any = &raw mut pg_sys::SnapshotAnyData;
        pg_sys::table_tuple_fetch_row_version(table, &mut pointer, any, self.0)
    }

    /// Locks the version of a row at `tid` FOR SHARE, after waiting for any transaction that is changing it. Returns
    /// whether it is still the newest version.
    ///
    /// # Safety
    /// The requirements of [`Self::fetch`]; the table is locked, and another transaction wrote the version.
    pub unsafe fn lock(&self, table: pg_sys::Relation, tid: Tid) -> bool {
        let mut pointer = pointer_to(tid);
        let mut failure = pg_sys::TM_FailureData::default();
        let result = pg_sys::table_tuple_lock(
            table,
            &mut pointer,
            pg_sys::GetActiveSnapshot(),
            self.0,
            pg_sys::GetCurrentCommandId(true),
            pg_sys::LockTupleMode::LockTupleShare,
            pg_sys::LockWaitPolicy::LockWaitBlock,
            0,
            &mut failure,
        );
        result == pg_sys::TM_Result::TM_Ok
    }

    /// Fetches the newest version, committed or written by this transaction, of the row that has a version at `tid`.
    /// Returns whether there is one.
    ///
    /// # Safety
    /// The slot belongs to the table. The version was visible to this transaction at some point.
    pub unsafe fn fetch_newest(&self, table: pg_sys::Relation, tid: Tid) -> bool {
        let mut tid = tid;
        while self.fetch(table, tid) {
            let newest = &raw mut pg_sys::SnapshotSelfData;
            if pg_sys::table_tuple_satisfies_snapshot(table, self.0, newest) {
                return true;
            }
            let next = item_pointer_get_both((*header(self.0)).t_ctid);
            // Deleted, or moved to another partition.
            if next == tid || next.0 == pg_sys::InvalidBlockNumber {
                return false;
            }
            tid = next;
        }
        false
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // After an ERROR its buffer is released with the resource owner.
        if !std::thread::panicking() {
            // SAFETY: `new` created it, and nothing else drops it.
            unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.0) };
        }
    }
}

/// A reader of versions of rows, given their index entries, as a snapshot sees them.
pub struct Versions {
    snapshot: pg_sys::Snapshot,
    table: *mut pg_sys::IndexFetchTableData,
    slot: *mut pg_sys::TupleTableSlot,
}

/// Visits a version of a row, given the snapshot; a dirty one tells which running transactions wrote or deleted the
/// version. Returns whether to continue.
pub type VisitVersion<'v> =
    dyn FnMut(*mut pg_sys::TupleTableSlot, &pg_sys::SnapshotData) -> bool + 'v;

impl Versions {
    /// Returns a reader of rows of `table` as `snapshot` sees them.
    ///
    /// # Safety
    /// The table is open and the snapshot valid until [`Self::close`], or an ERROR.
    pub unsafe fn open(table: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Self {
        Self {
            snapshot,
            table: index_fetch_begin(table),
            slot: pg_sys::table_slot_create(table, std::ptr::null_mut()),
        }
    }

    /// Calls `visit` for the versions that the snapshot sees of the row of an index entry, until `visit` returns false.
    /// Returns the last result of `visit`, or None if the snapshot sees no version.
    pub fn visit(
        &mut self,
        mut tid: pg_sys::ItemPointerData,
        visit: &mut VisitVersion<'_>,
    ) -> Option<bool> {
        check_interrupts();
        let (mut again, mut has_more, mut all_dead, mut goes_on) = (true, false, false, None);
        // SAFETY: table and slot are open.
        unsafe {
            while again
                && pg_sys::table_index_fetch_tuple(
                    self.table,
                    &mut tid,
                    self.snapshot,
                    self.slot,
                    &mut has_more,
                    &mut all_dead,
                )
            {
                goes_on = Some(visit(self.slot, &*self.snapshot));
                again = has_more && goes_on == Some(true);
            }
        }
        goes_on
    }

    /// Returns the version that the snapshot sees of the row of an index entry, or None if it sees none. Valid until
    /// the next call.
    pub fn seen(&mut self, tid: pg_sys::ItemPointerData) -> Option<*mut pg_sys::TupleTableSlot> {
        let seen = self.visit(tid, &mut |_, _| false);
        seen.map(|_| self.slot)
    }

    /// Drops the slot, and ends the fetch.
    pub fn close(self) {
        // SAFETY: slot and fetch are open, and not used again.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::table_index_fetch_end(self.table);
        }
    }
}

/// Returns whether the same command wrote both rows.
///
/// # Safety
/// The slots hold stored rows of heap tables.
pub unsafe fn is_of_same_command(
    a: *mut pg_sys::TupleTableSlot,
    b: *mut pg_sys::TupleTableSlot,
) -> bool {
    let [a, b] = [a, b].map(|slot| {
        let fields = &(*header(slot)).t_choice.t_heap;
        (fields.t_xmin, fields.t_field3.t_cid)
    });
    a == b
}

/// Returns whether the running transaction wrote the version in a slot.
///
/// # Safety
/// The slot holds a stored row of a heap table.
pub unsafe fn is_own(slot: *mut pg_sys::TupleTableSlot) -> bool {
    let inserter = (*header(slot)).t_choice.t_heap.t_xmin;
    pg_sys::TransactionIdIsCurrentTransactionId(inserter)
}

/// Returns whether the version in a slot was written by an INSERT, or by an UPDATE that moved it from another
/// partition.
///
/// # Safety
/// The slot holds a stored row of a heap table.
pub unsafe fn is_inserted(slot: *mut pg_sys::TupleTableSlot) -> bool {
    u32::from((*header(slot)).t_infomask) & pg_sys::HEAP_UPDATED == 0
}

/// Returns whether no index has an entry for the version in a slot.
///
/// # Safety
/// The slot holds a stored row of a heap table.
pub unsafe fn is_heap_only(slot: *mut pg_sys::TupleTableSlot) -> bool {
    u32::from((*header(slot)).t_infomask2) & pg_sys::HEAP_ONLY_TUPLE != 0
}

/// Returns the header of a tuple.
///
/// # Safety
/// The slot holds a stored row of a heap table.
unsafe fn header(slot: *mut pg_sys::TupleTableSlot) -> *mut pg_sys::HeapTupleHeaderData {
    let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, std::ptr::null_mut());
    (*tuple).t_data
}

/// Begins to fetch rows of a table by their places; see `table_index_fetch_begin`.
///
/// # Safety
/// The table is open until the fetch is ended.
unsafe fn index_fetch_begin(table: pg_sys::Relation) -> *mut pg_sys::IndexFetchTableData {
    #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18"))]
    return pg_sys::table_index_fetch_begin(table);
    #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18")))]
    pg_sys::table_index_fetch_begin(table, pg_sys::ScanOptions::SO_NONE)
}
