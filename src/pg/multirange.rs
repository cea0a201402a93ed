//! Multiranges of integers.

use crate::pg::arrays::beating;
use crate::pg::error::OrRaise;
use neardup::memory::Grow;
use pgrx::pg_sys;
use std::ops::Range;

/// The header of a multirange in memory (utils/multirangetypes.h).
#[repr(C)]
struct MultirangeHeader {
    length: i32,
    multirange_type: pg_sys::Oid,
    ranges: u32,
}

unsafe extern "C-unwind" {
    /// Raises no ERROR.
    fn multirange_get_bounds(
        range_type: *mut pg_sys::TypeCacheEntry,
        multirange: *const MultirangeHeader,
        number: u32,
        lower: *mut pg_sys::RangeBound,
        upper: *mut pg_sys::RangeBound,
    );
}

/// Returns the ranges of an int4multirange, in ascending order and with gaps in between. An infinite bound becomes the
/// lowest or the highest integer.
///
/// # Safety
/// `datum` is a non-null int4multirange.
pub unsafe fn integer_ranges(datum: pg_sys::Datum) -> Vec<Range<i32>> {
    let multirange = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast::<MultirangeHeader>();
    let wanted = pg_sys::TYPECACHE_RANGE_INFO as i32;
    let range_type = pg_sys::lookup_type_cache(pg_sys::INT4RANGEOID, wanted);
    let mut ranges = Vec::new();
    for number in beating(0..(*multirange).ranges) {
        let [mut lower, mut upper] = [pg_sys::RangeBound::default(); 2];
        multirange_get_bounds(range_type, multirange, number, &mut lower, &mut upper);
        let bound = |bound: pg_sys::RangeBound, infinite| match bound.infinite {
            true => infinite,
            false => bound.val.value() as i32,
        };
        let range = bound(lower, i32::MIN)..bound(upper, i32::MAX);
        ranges.try_push(range).or_raise();
    }
    ranges
}
