//! The row that a trigger fired for, and tuple slots.

use crate::pg::error::raise;
use pgrx::itemptr::item_pointer_get_both;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The row that a trigger fired for.
#[derive(Clone, Copy)]
pub struct FiredRow {
    pub table: pg_sys::Relation,
    pub slot: *mut pg_sys::TupleTableSlot,
    /// The version that an UPDATE replaced.
    pub old: Option<*mut pg_sys::TupleTableSlot>,
}

impl FiredRow {
    /// Returns the row of a call.
    ///
    /// # Errors
    /// ERROR unless called as an AFTER INSERT OR UPDATE trigger for each row.
    ///
    /// # Safety
    /// `fcinfo` is that of the running call.
    pub unsafe fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: vouched for by the caller; a trigger's context is its data.
        unsafe {
            let data = (*fcinfo).context.cast::<pg_sys::TriggerData>();
            let data = match data.as_ref() {
                Some(data) if data.type_ == pg_sys::NodeTag::T_TriggerData => data,
                _ => not_so("near_dup_guard was not called as a trigger"),
            };
            let timing = pg_sys::TRIGGER_EVENT_TIMINGMASK | pg_sys::TRIGGER_EVENT_ROW;
            if data.tg_event & timing != pg_sys::TRIGGER_EVENT_AFTER | pg_sys::TRIGGER_EVENT_ROW {
                not_so("near_dup_guard was not fired after each row");
            }
            match data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK {
                pg_sys::TRIGGER_EVENT_INSERT => Self {
                    table: data.tg_relation,
                    slot: data.tg_trigslot,
                    old: None,
                },
                pg_sys::TRIGGER_EVENT_UPDATE => Self {
                    table: data.tg_relation,
                    slot: data.tg_newslot,
                    old: Some(data.tg_trigslot),
                },
                _ => not_so("near_dup_guard was fired by another event than INSERT or UPDATE"),
            }
        }
    }
}

fn not_so(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        message,
        "Use it as CREATE TRIGGER ... AFTER INSERT OR UPDATE ON ... FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8').",
    )
}

/// Returns the value of a column; None for NULL.
///
/// # Safety
/// The slot holds a row with that column.
pub unsafe fn get(slot: *mut pg_sys::TupleTableSlot, column: i16) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    // SAFETY: vouched for by the caller.
    let value = unsafe { pg_sys::slot_getattr(slot, i32::from(column), &mut is_null) };
    (!is_null).then_some(value)
}

/// A row's place in its table: block and offset.
pub type Tid = (pg_sys::BlockNumber, pg_sys::OffsetNumber);

/// Returns the tid of the row that a slot holds.
///
/// # Safety
/// The slot holds a row of a table.
pub unsafe fn tid(slot: *mut pg_sys::TupleTableSlot) -> Tid {
    // SAFETY: vouched for by the caller.
    item_pointer_get_both(unsafe { (*slot).tts_tid })
}

/// A slot for rows of a table.
pub struct Slot(*mut pg_sys::TupleTableSlot);

impl Slot {
    /// # Safety
    /// The table is open, and stays so as long as the slot.
    pub unsafe fn new(table: pg_sys::Relation) -> Self {
        // SAFETY: vouched for by the caller.
        Self(unsafe { pg_sys::table_slot_create(table, std::ptr::null_mut()) })
    }

    pub fn as_ptr(&self) -> *mut pg_sys::TupleTableSlot {
        self.0
    }

    /// Fetches the newest version of the row that has a version at `tid`, as this transaction and
    /// earlier ones left it. Returns whether there is one.
    ///
    /// # Safety
    /// The slot is one of that table. The version was visible to this transaction at one time.
    pub unsafe fn fetch_newest(&self, table: pg_sys::Relation, tid: Tid) -> bool {
        let mut tid = tid;
        // SAFETY: vouched for by the caller; the rows of a table are heap tuples.
        unsafe {
            loop {
                let mut pointer = pg_sys::ItemPointerData::default();
                pgrx::itemptr::item_pointer_set_all(&mut pointer, tid.0, tid.1);
                let any = &raw mut pg_sys::SnapshotAnyData;
                if !pg_sys::table_tuple_fetch_row_version(table, &mut pointer, any, self.0) {
                    return false;
                }
                if is_current(table, self.0) {
                    return true;
                }
                let tuple = pg_sys::ExecFetchSlotHeapTuple(self.0, false, std::ptr::null_mut());
                let next = item_pointer_get_both((*(*tuple).t_data).t_ctid);
                // Deleted, or moved to another partition.
                if next == tid || next.0 == pg_sys::InvalidBlockNumber {
                    return false;
                }
                tid = next;
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // After an ERROR its buffer is released with the resource owner.
        if !std::thread::panicking() {
            // SAFETY: `new` made it, and nobody else drops it.
            unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.0) };
        }
    }
}

/// Returns whether the version of a row that a slot holds is the newest that this transaction and
/// those before it have left.
///
/// # Safety
/// The slot holds a stored row of the open table.
pub unsafe fn is_current(table: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: vouched for by the caller.
    unsafe {
        pg_sys::table_tuple_satisfies_snapshot(table, slot, &raw mut pg_sys::SnapshotSelfData)
    }
}

/// Returns whether one command of one transaction wrote both rows.
///
/// # Safety
/// The slots hold stored rows of heap tables.
pub unsafe fn is_of_same_command(
    a: *mut pg_sys::TupleTableSlot,
    b: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: vouched for by the caller; the header of a stored tuple has both fields set.
    let [a, b] = [a, b].map(|slot| unsafe {
        let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, std::ptr::null_mut());
        let fields = &(*(*tuple).t_data).t_choice.t_heap;
        (fields.t_xmin, fields.t_field3.t_cid)
    });
    a == b
}
