//! PostgreSQL's own sort: within work_mem, spilling to temporary files, interruptible.

use crate::pg::error::{OrRaise, raise};
use crate::pg::progress::Progress;
use crate::pg::relation::ColumnType;
use crate::pg::value::{Keys, Layout};
use neardup::memory::filled;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cmp::Ordering;
use std::ffi::CStr;

/// A sort of bigints.
pub struct BigintSort(*mut pg_sys::Tuplesortstate);

impl BigintSort {
    pub fn begin() -> Self {
        // SAFETY: bigint and its operator < are built in; no coordination between workers.
        Self(unsafe {
            pg_sys::tuplesort_begin_datum(
                pg_sys::INT8OID,
                pg_sys::Int8LessOperator.into(),
                pg_sys::InvalidOid,
                false,
                pg_sys::work_mem,
                std::ptr::null_mut(),
                0,
            )
        })
    }

    pub fn put(&mut self, number: i64) {
        let datum = pg_sys::Datum::from(number);
        // SAFETY: the sort is open and takes bigint datums.
        unsafe { pg_sys::tuplesort_putdatum(self.0, datum, false) };
    }

    /// Sorts the numbers, and returns them in ascending order.
    pub fn sorted(self) -> impl Iterator<Item = i64> {
        // SAFETY: the sort is open, and everything has been put.
        unsafe { pg_sys::tuplesort_performsort(self.0) };
        std::iter::from_fn(move || self.next())
    }

    fn next(&self) -> Option<i64> {
        let (mut datum, mut is_null) = (pg_sys::Datum::null(), false);
        let no_abbreviation = std::ptr::null_mut();
        // SAFETY: the sort has been performed; bigint is passed by value, so nothing is copied.
        let found = unsafe {
            pg_sys::tuplesort_getdatum(
                self.0,
                true,
                #[cfg(not(feature = "pg15"))]
                false,
                &mut datum,
                &mut is_null,
                no_abbreviation,
            )
        };
        found.then_some(datum.value() as i64)
    }
}

impl Drop for BigintSort {
    fn drop(&mut self) {
        // After an ERROR the sort is freed with its memory context, and its files with the statement.
        if !std::thread::panicking() {
            // SAFETY: the sort is open, and not used again.
            unsafe { pg_sys::tuplesort_end(self.0) };
        }
    }
}

/// A sort of values of a type, each tagged with a number. Must be ended by [`PairSort::end`], unless an ERROR ends the
/// statement.
pub struct PairSort {
    state: *mut pg_sys::Tuplesortstate,
    slot: *mut pg_sys::TupleTableSlot,
    sorted_slot: *mut pg_sys::TupleTableSlot,
}

impl PairSort {
    /// Begins a sort of values of a type within `memory` kB: by value and, if `columns` is 2, then by number.
    ///
    /// # Errors
    /// ERROR `undefined_function` if values of that type have no order.
    pub fn begin(value_type: pg_sys::Oid, columns: usize, memory: i32) -> Self {
        let order = order_of(value_type);
        // SAFETY: the descriptor has both columns before it is used, and lives as long as the sort and the slots, at
        // most until the current memory context is reset. The arrays are only read.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(2);
            let column = |number, name: &CStr, type_| {
                pg_sys::TupleDescInitEntry(descriptor, number, name.as_ptr(), type_, -1, 0);
            };
            column(1, c"value", value_type);
            column(2, c"number", pg_sys::INT8OID);
            #[cfg(not(any(
                feature = "pg15",
                feature = "pg16",
                feature = "pg17",
                feature = "pg18"
            )))]
            pg_sys::TupleDescFinalize(descriptor);
            let state = pg_sys::tuplesort_begin_heap(
                descriptor,
                columns as i32,
                [1, 2].as_mut_ptr(),
                [(*order).lt_opr, pg_sys::Int8LessOperator.into()].as_mut_ptr(),
                [(*order).typcollation, pg_sys::InvalidOid].as_mut_ptr(),
                [false; 2].as_mut_ptr(),
                memory,
                std::ptr::null_mut(),
                0,
            );
            let slot = |operations| pg_sys::MakeSingleTupleTableSlot(descriptor, operations);
            Self {
                state,
                slot: slot(&raw const pg_sys::TTSOpsVirtual),
                sorted_slot: slot(&raw const pg_sys::TTSOpsMinimalTuple),
            }
        }
    }

    pub fn put(&mut self, value: pg_sys::Datum, number: i64) {
        // SAFETY: the sort is open; the slot is virtual and has two columns of these types.
        unsafe {
            let slot = self.slot;
            pg_sys::ExecClearTuple(slot);
            *(*slot).tts_values = value;
            *(*slot).tts_values.add(1) = pg_sys::Datum::from(number);
            *(*slot).tts_isnull = false;
            *(*slot).tts_isnull.add(1) = false;
            pg_sys::ExecStoreVirtualTuple(slot);
            pg_sys::tuplesort_puttupleslot(self.state, slot);
        }
    }

    /// Sorts the pairs. Must be called after the last [`Self::put`].
    pub fn sort(&mut self) {
        // SAFETY: the sort is open.
        unsafe { pg_sys::tuplesort_performsort(self.state) };
    }

    /// Returns the next value and its number, or None after the last one. The value is valid until the next call.
    pub fn next(&mut self) -> Option<(pg_sys::Datum, i64)> {
        // SAFETY: the sort has been performed; the slot is made for its tuples.
        unsafe {
            let (slot, no_abbreviation) = (self.sorted_slot, std::ptr::null_mut());
            if !pg_sys::tuplesort_gettupleslot(self.state, true, false, slot, no_abbreviation) {
                return None;
            }
            pg_sys::slot_getallattrs(slot);
            let number = (*(*slot).tts_values.add(1)).value() as i64;
            Some((*(*slot).tts_values, number))
        }
    }

    /// Frees the sort and its temporary files.
    pub fn end(self) {
        // SAFETY: the sort is open, and not used again.
        unsafe {
            let descriptor = (*self.slot).tts_tupleDescriptor;
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::ExecDropSingleTupleTableSlot(self.sorted_slot);
            pg_sys::tuplesort_end(self.state);
            pg_sys::FreeTupleDesc(descriptor);
        }
    }
}

/// The default order of the values of a type under a collation.
pub struct ValueOrder {
    type_: *mut pg_sys::TypeCacheEntry,
    collation: pg_sys::Oid,
}

impl ValueOrder {
    /// Returns the order under the type's own collation.
    ///
    /// # Errors
    /// ERROR `undefined_function` if values of that type have no order.
    pub fn of(value_type: pg_sys::Oid) -> Self {
        Self::of_column(ColumnType::plain(value_type))
    }

    /// Returns the order of the values of a column.
    ///
    /// # Errors
    /// The errors of [`Self::of`].
    pub fn of_column(column: ColumnType) -> Self {
        Self {
            type_: order_of(column.type_),
            collation: column.collation,
        }
    }

    /// Compares two values of the type.
    pub fn compare(&self, a: pg_sys::Datum, b: pg_sys::Datum) -> Ordering {
        // SAFETY: both are of the type whose comparison function this is.
        let order = unsafe {
            let function = &mut (*self.type_).cmp_proc_finfo;
            pg_sys::FunctionCall2Coll(function, self.collation, a, b)
        };
        (order.value() as i32).cmp(&0)
    }
}

/// A sort of values, each tagged with a number.
pub struct ValueSort {
    sort: PairSort,
    order: ValueOrder,
    value_type: pg_sys::Oid,
}

/// Marks a number for which no value was put.
pub const NO_PLACE: u32 = u32::MAX;

impl ValueSort {
    /// Begins a sort of values of a type.
    ///
    /// # Errors
    /// ERROR `undefined_function` if values of that type have no order.
    pub fn begin(value_type: pg_sys::Oid) -> Self {
        // SAFETY: reads a setting of the backend.
        let memory = unsafe { pg_sys::work_mem };
        Self {
            sort: PairSort::begin(value_type, 1, memory),
            order: ValueOrder::of(value_type),
            value_type,
        }
    }

    pub fn put(&mut self, value: pg_sys::Datum, number: usize) {
        self.sort.put(value, number as i64);
    }

    /// Returns the distinct values, in ascending order, and for each number below `count` the place of its value among
    /// them, or [`NO_PLACE`] if no value was put for the number.
    pub fn places(mut self, count: usize) -> (Keys, Vec<u32>) {
        let mut keys = Keys::new(self.value_type);
        let mut places = filled(NO_PLACE, count).or_raise();
        let mut progress = Progress::begin("sorting keys", count);
        self.sort.sort();
        let mut last = None;
        while let Some((value, number)) = self.sort.next() {
            progress.step();
            if last.is_none_or(|last| self.order.compare(last, value).is_ne()) {
                keys.push(Some(value));
                self.hold(value, &mut last);
            }
            places[number as usize] = keys.len() as u32 - 1;
        }
        self.sort.end();
        (keys, places)
    }

    /// Replaces `held` with a copy of `value`, to compare later values with.
    fn hold(&self, value: pg_sys::Datum, held: &mut Option<pg_sys::Datum>) {
        // SAFETY: values are of the type of the sort; the previous one was copied here.
        unsafe {
            let order = self.order.type_;
            let (by_value, length) = ((*order).typbyval, (*order).typlen);
            let layout = Layout { by_value, length };
            let before = held.replace(layout.copy(value));
            if let Some(before) = before.filter(|_| !by_value) {
                pg_sys::pfree(before.cast_mut_ptr());
            }
        }
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
            "Valid types have a default B-tree operator class.",
        );
    }
    order
}
