//! PostgreSQL's own sort: within work_mem, spilling to temporary files, interruptible.

use crate::error::or_out_of_memory;
use pgrx::pg_sys;
use std::ptr::NonNull;

/// Sorts (key, row) pairs by key, then row, each packed into one bigint.
pub struct RowSort {
    state: NonNull<pg_sys::Tuplesortstate>,
}

impl RowSort {
    pub fn begin() -> Self {
        // SAFETY: bigint and its operator < are built in; no coordination between workers.
        let state = unsafe {
            pg_sys::tuplesort_begin_datum(
                pg_sys::INT8OID,
                pg_sys::Int8LessOperator.into(),
                pg_sys::InvalidOid,
                false,
                pg_sys::work_mem,
                std::ptr::null_mut(),
                0,
            )
        };
        Self {
            state: NonNull::new(state).expect("a sort has a state"),
        }
    }

    pub fn put(&mut self, key: u32, row: u32) {
        let packed = u64::from(key) << 32 | u64::from(row);
        let datum = pg_sys::Datum::from(packed as i64);
        // SAFETY: the sort is open and takes bigint datums.
        unsafe { pg_sys::tuplesort_putdatum(self.state.as_ptr(), datum, false) };
    }

    /// Calls `visit` for every key with its rows, ascending and distinct.
    pub fn for_each_group(mut self, visit: &mut dyn FnMut(u32, &[u32])) {
        // SAFETY: the sort is open, and everything has been put.
        unsafe { pg_sys::tuplesort_performsort(self.state.as_ptr()) };
        let mut group: Vec<u32> = Vec::new();
        let mut current = None;
        while let Some((key, row)) = self.next() {
            if current != Some(key) {
                if let Some(key) = current {
                    visit(key, &group);
                }
                group.clear();
                current = Some(key);
            }
            if group.last() != Some(&row) {
                or_out_of_memory(group.try_reserve(1));
                group.push(row);
            }
        }
        if let Some(key) = current {
            visit(key, &group);
        }
    }

    fn next(&mut self) -> Option<(u32, u32)> {
        let (mut datum, mut is_null) = (pg_sys::Datum::null(), false);
        let no_abbreviation = std::ptr::null_mut();
        // SAFETY: the sort has been performed; bigint is passed by value, so nothing is copied.
        let found = unsafe {
            pg_sys::tuplesort_getdatum(
                self.state.as_ptr(),
                true,
                #[cfg(not(feature = "pg15"))]
                false,
                &mut datum,
                &mut is_null,
                no_abbreviation,
            )
        };
        let packed = datum.value() as u64;
        found.then_some(((packed >> 32) as u32, packed as u32))
    }
}

impl Drop for RowSort {
    fn drop(&mut self) {
        // After an ERROR the sort goes with its memory context, its files with the statement.
        if !std::thread::panicking() {
            // SAFETY: the sort is open, and not used again.
            unsafe { pg_sys::tuplesort_end(self.state.as_ptr()) };
        }
    }
}
