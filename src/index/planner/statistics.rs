//! The statistics that ANALYZE keeps of a column, and the means that a session remembers of them.
#![allow(clippy::disallowed_methods, reason = "an entry an index and bound")]

use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;

/// A part of a column's statistics.
pub struct Slot(pg_sys::AttStatsSlot);

impl Slot {
    /// Reads the part of a kind; None if the statistics have none.
    ///
    /// # Safety
    /// The tuple is one of pg_statistic.
    pub unsafe fn read(statistics: pg_sys::HeapTuple, kind: u32) -> Option<Self> {
        let mut slot = pg_sys::AttStatsSlot::default();
        let parts = match kind {
            pg_sys::STATISTIC_KIND_MCV => {
                pg_sys::ATTSTATSSLOT_VALUES | pg_sys::ATTSTATSSLOT_NUMBERS
            }
            _ => pg_sys::ATTSTATSSLOT_VALUES,
        };
        let any = pg_sys::InvalidOid;
        // SAFETY: vouched for by the caller.
        let found = unsafe {
            pg_sys::get_attstatsslot(&mut slot, statistics, kind as i32, any, parts as i32)
        };
        found.then(|| Self(slot))
    }

    /// Returns the values that the part holds.
    pub fn values(&self) -> &[pg_sys::Datum] {
        // SAFETY: the slot has as many.
        unsafe { slice(self.0.values, self.0.nvalues) }
    }

    /// Returns the numbers that the part holds, such as the shares of common values.
    pub fn numbers(&self) -> &[f32] {
        // SAFETY: the slot has as many.
        unsafe { slice(self.0.numbers, self.0.nnumbers) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: the slot has been read.
        unsafe { pg_sys::free_attstatsslot(&mut self.0) };
    }
}

/// # Safety
/// There are as many elements, unless it is none.
unsafe fn slice<'a, T>(first: *const T, count: i32) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: vouched for by the caller.
        count => unsafe { std::slice::from_raw_parts(first, count as usize) },
    }
}

/// The number of means that a session remembers.
const MOST_MEANS: usize = 1000;

/// Rows within a bound of a row, on average.
#[derive(Clone, Copy)]
struct Mean {
    version: Version,
    rows: f64,
}

/// Returns the mean remembered of an index, an operator's strategy and a bound in this version, or
/// the one that `measure` returns, which is remembered.
pub fn remembered(
    key: (pg_sys::Oid, u16, u64),
    version: Version,
    measure: impl FnOnce() -> Option<f64>,
) -> Option<f64> {
    thread_local! {
        static MEANS: RefCell<HashMap<(pg_sys::Oid, u16, u64), Mean>> = RefCell::new(HashMap::new());
    }
    let known = MEANS.with_borrow(|means| means.get(&key).copied());
    if let Some(mean) = known.filter(|mean| mean.version == version) {
        return Some(mean.rows);
    }
    let rows = measure()?;
    MEANS.with_borrow_mut(|means| {
        if means.len() >= MOST_MEANS {
            means.clear();
        }
        means.insert(key, Mean { version, rows });
    });
    Some(rows)
}

/// The identity of a row of statistics, and the order of magnitude of an index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version {
    block: u32,
    offset: u16,
    transaction: u32,
    magnitude: u32,
}

impl Version {
    /// Returns the version of statistics, and of an index of `pages` pages.
    ///
    /// # Safety
    /// The tuple is one of pg_statistic.
    pub unsafe fn of(statistics: pg_sys::HeapTuple, pages: u32) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            let place = (*statistics).t_self;
            let header = &*(*statistics).t_data;
            Self {
                block: u32::from(place.ip_blkid.bi_hi) << 16 | u32::from(place.ip_blkid.bi_lo),
                offset: place.ip_posid,
                transaction: u32::from(header.t_choice.t_heap.t_xmin),
                magnitude: pages.checked_ilog2().unwrap_or(0),
            }
        }
    }
}
