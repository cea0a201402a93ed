//! Compares candidates if that takes less time than looking up the lists that decide about them.

use super::count::CountedRow;

/// Number of elements of a row that can be compared in the time of looking up a list.
const COMPARED: usize = 4;
/// Number of lists that can be looked up in the time of comparing a row without elements.
const COMPARISON: usize = 16;

/// About one of this many candidates turns out to be in too few of all lists, if they are in enough of the lists read
/// so far, in proportion.
const LIKELY: u64 = 8;

/// Returns the number of lists that can be looked up in the time of comparing a candidate with this number of
/// `elements`.
pub(super) fn comparison(elements: usize) -> u64 {
    (COMPARISON + elements / COMPARED) as u64
}

/// Accepts all candidates if comparing those that do not have enough keys yet takes less time than looking up the lists
/// that decide about them. `read` of `all` keys have been looked up, and a comparison takes as long as looking up
/// `comparison` lists. Returns whether the candidates were accepted, so that nothing is left to decide.
pub(super) fn are_compared(
    candidates: &mut [CountedRow],
    [read, all]: [u32; 2],
    comparison: u64,
) -> bool {
    let (mut compared, mut lists) = (0, 0);
    for candidate in candidates.iter().filter(|row| row.count < row.needed) {
        lists = lists.max(candidate.needed - candidate.count);
        let is_likely = u64::from(candidate.count) * u64::from(all)
            >= u64::from(candidate.needed) * u64::from(read);
        compared += if is_likely { 1 } else { LIKELY };
    }
    let is_less = compared * comparison <= u64::from(lists) * LIKELY;
    if is_less {
        for candidate in candidates {
            candidate.count = candidate.count.max(candidate.needed);
        }
    }
    is_less
}
