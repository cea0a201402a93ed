//! Bisection.

use std::ops::Range;

/// Returns the first number of `range` for which `holds` returns true, or the end of the range if there is none. If
/// `holds` returns true for a number, it must do so for all later ones.
#[inline]
pub fn first(range: Range<u64>, mut holds: impl FnMut(u64) -> bool) -> u64 {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start.midpoint(end);
        if holds(middle) {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    start
}
