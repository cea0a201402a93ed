//! Values of any type, copied and kept.

use crate::pg::error::OrRaise;
use crate::pg::settings::work_mem_bytes;
use crate::pg::spool::Records;
use neardup::memory::{Grow, filled};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::CStr;

/// The layout of values of a type in memory.
#[derive(Clone, Copy)]
pub struct Layout {
    pub by_value: bool,
    pub length: i16,
}

impl Layout {
    pub fn of(type_: pg_sys::Oid) -> Self {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: raises an ERROR if there is no such type.
        unsafe { pg_sys::get_typlenbyval(type_, &mut length, &mut by_value) };
        Self { by_value, length }
    }

    /// Returns a copy of `value` in the current memory context.
    ///
    /// # Safety
    /// The value is of a type with this layout.
    pub unsafe fn copy(self, value: pg_sys::Datum) -> pg_sys::Datum {
        match (self.by_value, self.length) {
            (false, -1) => pg_sys::pg_detoast_datum_copy(value.cast_mut_ptr()).into(),
            (by_value, length) => pg_sys::datumCopy(value, by_value, length.into()),
        }
    }
}

/// Returns a new memory context within the current one.
///
/// # Safety
/// The current context is valid.
pub unsafe fn new_context(name: &'static CStr) -> pg_sys::MemoryContext {
    pg_sys::AllocSetContextCreateExtended(
        pg_sys::CurrentMemoryContext,
        name.as_ptr(),
        pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
        pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
        pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
    )
}

/// Returns the result of `work`, and frees the PostgreSQL values that `work` leaves behind.
pub fn in_memory_of_its_own<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: after an ERROR, the memory context is deleted with its parent.
    unsafe {
        let own = new_context(c"pg_neardup");
        let before = pg_sys::MemoryContextSwitchTo(own);
        let result = work();
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(own);
        result
    }
}

/// Copies of values of one type, by number. Values passed by reference go to a temporary file when they exceed a share
/// of work_mem.
pub struct Keys {
    len: usize,
    values: Values,
    length: i16,
}

enum Values {
    /// Values passed by value, and the numbers of the NULLs, in ascending order.
    Direct(Vec<u64>, Vec<usize>),
    /// Values passed by reference. A NULL has no bytes. The last two values read are held.
    Stored(RefCell<(Records, [Vec<u64>; 2])>),
}

impl Keys {
    pub fn new(key_type: pg_sys::Oid) -> Self {
        let Layout { by_value, length } = Layout::of(key_type);
        let values = if by_value {
            Values::Direct(Vec::new(), Vec::new())
        } else {
            let records = Records::new(work_mem_bytes() / 4);
            Values::Stored(RefCell::new((records, Default::default())))
        };
        Self {
            len: 0,
            values,
            length,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends a copy of `key`.
    pub fn push(&mut self, key: Option<pg_sys::Datum>) {
        self.len += 1;
        match &mut self.values {
            Values::Direct(values, nulls) => {
                if key.is_none() {
                    nulls.try_push(values.len()).or_raise();
                }
                let value = key.map_or(0, |key| key.value() as u64);
                values.try_push(value).or_raise();
            }
            Values::Stored(stored) => {
                let records = &mut stored.get_mut().0;
                match key {
                    // SAFETY: the datum is of the key's type, of that length.
                    Some(key) => unsafe { push_bytes(records, key, self.length) },
                    None => records.push(&[]),
                }
            }
        }
    }

    /// Returns the value with number `row`, or None for NULL.
    ///
    /// # Safety
    /// The value is used before two other values are read.
    pub unsafe fn get(&self, row: u32) -> Option<pg_sys::Datum> {
        let row = row as usize;
        match &self.values {
            Values::Direct(values, nulls) => {
                let is_null = nulls.binary_search(&row).is_ok();
                (!is_null).then(|| pg_sys::Datum::from(values[row]))
            }
            Values::Stored(stored) => {
                let (records, held) = &mut *stored.borrow_mut();
                held.swap(0, 1);
                read_aligned(records, row, &mut held[0])
            }
        }
    }
}

/// Appends the bytes of `value`, detoasted, to `records` as one record.
///
/// # Safety
/// `value` is of a type that is passed by reference and has this `length`.
unsafe fn push_bytes(records: &mut Records, value: pg_sys::Datum, length: i16) {
    let start = value.cast_mut_ptr::<u8>();
    let flat = match length {
        -1 => pg_sys::pg_detoast_datum(start.cast()).cast(),
        _ => start,
    };
    let size = pg_sys::datumGetSize(flat.into(), false, length.into());
    records.push(std::slice::from_raw_parts(flat, size));
    if flat != start {
        pg_sys::pfree(flat.cast());
    }
}

/// Reads record `number` into `aligned`, memory that is aligned for any type, and returns it as a datum. Returns None
/// if the record has no bytes.
fn read_aligned(
    records: &mut Records,
    number: usize,
    aligned: &mut Vec<u64>,
) -> Option<pg_sys::Datum> {
    let mut buffer = Vec::new();
    let bytes = records.read(number, &mut buffer);
    *aligned = filled(0, bytes.len().div_ceil(size_of::<u64>())).or_raise();
    let start = aligned.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room for the bytes, in memory of its own.
    unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    (!bytes.is_empty()).then(|| pg_sys::Datum::from(start))
}
