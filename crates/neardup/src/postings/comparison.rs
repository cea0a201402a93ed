//! Candidates that are compared, where that takes less time than to look up the lists that decide about them.

use super::count::CountedRow;

/// Elements of a row that are compared in the time in which a list is looked up, and the lists that are looked up in
/// the time in which a row without elements is compared.
const COMPARED: usize = 4;
const COMPARISON: usize = 16;

/// Of this many candidates that have their share of the lists read so far, one has too few of all lists.
const LIKELY: u64 = 8;

/// Returns how many lists are looked up in the time in which a candidate with this number of elements is compared.
pub(super) fn comparison(elements: usize) -> u64 {
    (COMPARISON + elements / COMPARED) as u64
}

/// Takes all candidates as found if comparing those that have too few keys yet takes less time than looking up the
/// lists that decide about them. `read` of `all` keys have been looked up, and a comparison takes as long as
/// `comparison` lists. Returns whether there is nothing left to decide.
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
