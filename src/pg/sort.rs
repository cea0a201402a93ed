//! PostgreSQL's own sort: within work_mem, spilling to temporary files, interruptible.

use crate::pg::error::OrRaise;
use neardup::memory::Grow;
use pgrx::pg_sys;
use std::ptr::NonNull;

/// Sorts bigints.
pub struct BigintSort {
    state: NonNull<pg_sys::Tuplesortstate>,
}

impl BigintSort {
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

    pub fn put(&mut self, number: i64) {
        let datum = pg_sys::Datum::from(number);
        // SAFETY: the sort is open and takes bigint datums.
        unsafe { pg_sys::tuplesort_putdatum(self.state.as_ptr(), datum, false) };
    }

    /// Sorts what has been put; the numbers come in ascending order.
    pub fn sorted(self) -> SortedBigints {
        // SAFETY: the sort is open, and everything has been put.
        unsafe { pg_sys::tuplesort_performsort(self.state.as_ptr()) };
        SortedBigints(self)
    }
}

/// The numbers of a sort.
pub struct SortedBigints(BigintSort);

impl Iterator for SortedBigints {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let (mut datum, mut is_null) = (pg_sys::Datum::null(), false);
        let no_abbreviation = std::ptr::null_mut();
        // SAFETY: the sort has been performed; bigint is passed by value, so nothing is copied.
        let found = unsafe {
            pg_sys::tuplesort_getdatum(
                self.0.state.as_ptr(),
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
        // After an ERROR the sort goes with its memory context, its files with the statement.
        if !std::thread::panicking() {
            // SAFETY: the sort is open, and not used again.
            unsafe { pg_sys::tuplesort_end(self.state.as_ptr()) };
        }
    }
}

/// Sorts (key, row) pairs by key, then row, each packed into one bigint.
pub struct RowSort(BigintSort);

impl RowSort {
    pub fn begin() -> Self {
        Self(BigintSort::begin())
    }

    pub fn put(&mut self, key: u32, row: u32) {
        self.0.put((u64::from(key) << 32 | u64::from(row)) as i64);
    }

    /// Calls `visit` for every key with its rows, ascending and distinct.
    pub fn for_each_group(self, visit: &mut dyn FnMut(u32, &[u32])) {
        let mut group: Vec<u32> = Vec::new();
        let mut current = None;
        for packed in self.0.sorted() {
            let (key, row) = ((packed as u64 >> 32) as u32, packed as u32);
            if current != Some(key) {
                if let Some(key) = current {
                    visit(key, &group);
                }
                group.clear();
                current = Some(key);
            }
            if group.last() != Some(&row) {
                group.try_push(row).or_raise();
            }
        }
        if let Some(key) = current {
            visit(key, &group);
        }
    }
}
