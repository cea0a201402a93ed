//! Values of any type, copied and kept.

use crate::pg::error::OrRaise;
use neardup::memory::Grow;
use pgrx::pg_sys;

/// Copies a value into the current memory context.
///
/// # Safety
/// `value` is of a type that is passed by value or not, and of that length.
pub unsafe fn copy_value(value: pg_sys::Datum, by_value: bool, length: i16) -> pg_sys::Datum {
    if by_value {
        return value;
    }
    // SAFETY: a value by reference is a varlena, a string or of fixed length.
    unsafe {
        match length {
            -1 => pg_sys::pg_detoast_datum_copy(value.cast_mut_ptr()).into(),
            -2 => pg_sys::pstrdup(value.cast_mut_ptr()).into(),
            length => {
                let copy = pg_sys::palloc(length as usize).cast::<u8>();
                std::ptr::copy_nonoverlapping(value.cast_mut_ptr(), copy, length as usize);
                copy.into()
            }
        }
    }
}

/// Copies of values of one type, by number.
pub struct Keys {
    values: Vec<Option<pg_sys::Datum>>,
    by_value: bool,
    length: i16,
}

impl Keys {
    pub fn new(key_type: pg_sys::Oid) -> Self {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: plain catalog lookup.
        unsafe { pg_sys::get_typlenbyval(key_type, &mut length, &mut by_value) };
        Self {
            values: Vec::new(),
            by_value,
            length,
        }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Appends a copy, in the memory context of the transaction: that of the query will be gone.
    pub fn push(&mut self, key: Option<pg_sys::Datum>) {
        // SAFETY: the datum is of the key's type; the contexts outlive the copy.
        let copy = key.map(|key| unsafe {
            let current = pg_sys::MemoryContextSwitchTo(pg_sys::CurTransactionContext);
            let copy = copy_value(key, self.by_value, self.length);
            pg_sys::MemoryContextSwitchTo(current);
            copy
        });
        self.values.try_push(copy).or_raise();
    }

    pub fn get(&self, row: u32) -> Option<pg_sys::Datum> {
        self.values[row as usize]
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if self.by_value || std::thread::panicking() {
            return;
        }
        for key in self.values.iter().flatten() {
            // SAFETY: `push` allocated it, and nobody else holds it.
            unsafe { pg_sys::pfree(key.cast_mut_ptr()) };
        }
    }
}
