//! PostgreSQL's own sort over values of any type that has an order.

use crate::pg::error::raise;
use crate::pg::value::{Keys, copy_value};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CStr;
use std::ptr::NonNull;

/// Sorts values, each with a number.
pub struct ValueSort {
    state: NonNull<pg_sys::Tuplesortstate>,
    descriptor: pg_sys::TupleDesc,
    put_slot: *mut pg_sys::TupleTableSlot,
    order: *mut pg_sys::TypeCacheEntry,
}

impl ValueSort {
    /// # Errors
    /// ERROR `undefined_function` if values of that type have no order.
    pub fn begin(value_type: pg_sys::Oid) -> Self {
        let order = order_of(value_type);
        // SAFETY: plain calls into PostgreSQL; what they allocate lives as long as the call.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(2);
            let column = |number, name: &CStr, column_type| {
                pg_sys::TupleDescInitEntry(descriptor, number, name.as_ptr(), column_type, -1, 0);
            };
            column(1, c"value", value_type);
            column(2, c"number", pg_sys::INT8OID);
            let state = pg_sys::tuplesort_begin_heap(
                descriptor,
                1,
                &mut 1,
                &mut (*order).lt_opr,
                &mut (*order).typcollation,
                &mut false,
                pg_sys::work_mem,
                std::ptr::null_mut(),
                0,
            );
            Self {
                state: NonNull::new(state).expect("a sort has a state"),
                descriptor,
                put_slot: pg_sys::MakeSingleTupleTableSlot(descriptor, &pg_sys::TTSOpsVirtual),
                order,
            }
        }
    }

    pub fn put(&mut self, value: pg_sys::Datum, number: i64) {
        // SAFETY: the sort is open; the slot is virtual and has two columns of these types.
        unsafe {
            let slot = self.put_slot;
            pg_sys::ExecClearTuple(slot);
            *(*slot).tts_values = value;
            *(*slot).tts_values.add(1) = pg_sys::Datum::from(number);
            *(*slot).tts_isnull = false;
            *(*slot).tts_isnull.add(1) = false;
            pg_sys::ExecStoreVirtualTuple(slot);
            pg_sys::tuplesort_puttupleslot(self.state.as_ptr(), slot);
        }
    }

    /// Appends the distinct values to `keys`, ascending, and visits every number with the place of
    /// its value among them.
    pub fn for_each(self, keys: &mut Keys, visit: &mut dyn FnMut(u32, i64)) {
        // SAFETY: the sort is open, and everything has been put; the slot is made for its tuples.
        unsafe {
            pg_sys::tuplesort_performsort(self.state.as_ptr());
            let slot =
                pg_sys::MakeSingleTupleTableSlot(self.descriptor, &pg_sys::TTSOpsMinimalTuple);
            let mut last = None;
            while pg_sys::tuplesort_gettupleslot(
                self.state.as_ptr(),
                true,
                false,
                slot,
                std::ptr::null_mut(),
            ) {
                pg_sys::slot_getallattrs(slot);
                let value = *(*slot).tts_values;
                if last.is_none_or(|last| !self.same(last, value)) {
                    keys.push(Some(value));
                    self.hold(value, &mut last);
                }
                let number = (*(*slot).tts_values.add(1)).value() as i64;
                visit(keys.len() as u32 - 1, number);
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
    }

    /// Copies a value to compare the next ones with, instead of the one before.
    fn hold(&self, value: pg_sys::Datum, held: &mut Option<pg_sys::Datum>) {
        // SAFETY: values are of the type of the sort; the one before was copied here.
        unsafe {
            let (by_value, length) = ((*self.order).typbyval, (*self.order).typlen);
            let before = held.replace(copy_value(value, by_value, length));
            if let Some(before) = before.filter(|_| !by_value) {
                pg_sys::pfree(before.cast_mut_ptr());
            }
        }
    }

    fn same(&self, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
        // SAFETY: both are of the type whose comparison function this is.
        let order = unsafe {
            let function = &mut (*self.order).cmp_proc_finfo;
            pg_sys::FunctionCall2Coll(function, (*self.order).typcollation, a, b)
        };
        order.value() as i32 == 0
    }
}

fn order_of(value_type: pg_sys::Oid) -> *mut pg_sys::TypeCacheEntry {
    // SAFETY: raises an ERROR if there is no such type; cache entries are never freed.
    let (order, ordered) = unsafe {
        let wanted = pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_CMP_PROC_FINFO;
        let order = pg_sys::lookup_type_cache(value_type, wanted as i32);
        (order, (*order).lt_opr != pg_sys::InvalidOid)
    };
    if !ordered {
        raise(
            PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
            "keys of this type have no order",
            "Valid are types with a default B-tree operator class.",
        );
    }
    order
}

impl Drop for ValueSort {
    fn drop(&mut self) {
        // After an ERROR the sort goes with its memory context, its files with the statement.
        if !std::thread::panicking() {
            // SAFETY: the sort is open, and not used again.
            unsafe { pg_sys::tuplesort_end(self.state.as_ptr()) };
        }
    }
}
