//! The choice of the segments that are merged next.

use super::{MAX_ROWS, Segment};
use std::ops::Range;

/// Most segments that one merge takes.
const MOST_INPUTS: usize = 12;

/// Segments beyond which some are merged whatever their sizes: they have to fit on the metapage,
/// and each costs every lookup a page a key.
pub const MANY: usize = 32;

/// Segments that are merged when there are too many.
const FEW: usize = 4;

/// Returns the neighbors to be merged, if any, of segments in the order of their rows, none of
/// which is being merged.
///
/// A segment is merged with those after it once they hold at least 3/5 as many postings. So two of
/// about one size make one, a segment holds more than all those after it, and a posting is rewritten
/// about log2(segment / smallest segment) times. The merge comes first that takes the least work
/// for each segment fewer.
pub fn next(segments: &[Segment]) -> Option<Range<usize>> {
    let due = (0..segments.len()).filter_map(|start| {
        let count = due(&segments[start..])?;
        Some(start..start + count)
    });
    let work = |range: &Range<usize>| {
        let inputs = &segments[range.clone()];
        let postings: u128 = inputs.iter().map(|input| u128::from(input.postings)).sum();
        postings / (inputs.len() as u128 - 1)
    };
    due.min_by_key(work).or_else(|| {
        (segments.len() > MANY)
            .then(|| cheapest(segments))
            .flatten()
    })
}

/// Returns the number of segments, from the first on, to be merged; None if they may stay.
fn due(segments: &[Segment]) -> Option<usize> {
    let (first, later) = segments.split_first()?;
    let mut after = 0;
    for (count, segment) in (2..=MOST_INPUTS).zip(later) {
        if segment.hi.saturating_sub(first.lo) > MAX_ROWS {
            return None;
        }
        after += u128::from(segment.postings);
        if 5 * after >= 3 * u128::from(first.postings) {
            return Some(count);
        }
    }
    None
}

/// Returns the neighbors that take the least work to merge.
fn cheapest(segments: &[Segment]) -> Option<Range<usize>> {
    let windows = segments.windows(FEW).enumerate();
    let near =
        windows.filter(|(_, window)| window[FEW - 1].hi.saturating_sub(window[0].lo) <= MAX_ROWS);
    let cost = |(_, window): &(usize, &[Segment])| window.iter().map(|s| s.postings).sum::<u64>();
    near.min_by_key(cost).map(|(i, _)| i..i + FEW)
}
