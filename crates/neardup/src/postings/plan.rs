//! Which segments are merged next.

use super::{MAX_ROWS, Segment};
use std::ops::Range;

/// Segments of about one size that make one of the next size, and the growth from size to size.
pub const FANOUT: usize = 4;

/// Most segments that one merge takes.
const MOST_INPUTS: usize = 4 * FANOUT;

/// Segments beyond which some are merged whatever their sizes: they have to fit on the metapage,
/// and each costs every lookup a few pages.
pub const MANY: usize = 32;

/// Returns the neighbors to be merged, if any, of segments in the order of their rows, none of
/// which is being merged.
///
/// Size class c holds the segments of 4^c to 4^(c + 1) postings. Of neighbors up to some class, 4
/// of that class are merged with those between; the lowest class comes first, being the cheapest.
/// So a posting is rewritten once a class, and segments number at most three a class unless rows
/// are deleted.
pub fn next(segments: &[Segment]) -> Option<Range<usize>> {
    let mut classes: Vec<u32> = segments.iter().map(class).collect();
    classes.sort_unstable();
    classes.dedup();
    let run = classes.iter().find_map(|class| run(segments, *class));
    run.or_else(|| {
        (segments.len() > MANY)
            .then(|| cheapest(segments))
            .flatten()
    })
}

fn class(segment: &Segment) -> u32 {
    segment.postings.max(1).ilog(FANOUT as u64)
}

/// The first run of neighbors up to a class of which 4 are of that class.
fn run(segments: &[Segment], wanted: u32) -> Option<Range<usize>> {
    let mut start = 0;
    let mut of_class = 0;
    for (i, segment) in segments.iter().enumerate() {
        let too_far = segment.hi.saturating_sub(segments[start].lo) > MAX_ROWS;
        if class(segment) > wanted || too_far || i - start >= MOST_INPUTS {
            start = i + usize::from(class(segment) > wanted);
            of_class = 0;
        }
        of_class += usize::from(class(segment) == wanted);
        if of_class == FANOUT && start <= i {
            return Some(start..i + 1);
        }
    }
    None
}

/// The neighbors that take the least work to merge.
fn cheapest(segments: &[Segment]) -> Option<Range<usize>> {
    let windows = segments.windows(FANOUT).enumerate();
    let near = windows
        .filter(|(_, window)| window[FANOUT - 1].hi.saturating_sub(window[0].lo) <= MAX_ROWS);
    let cost = |(_, window): &(usize, &[Segment])| window.iter().map(|s| s.postings).sum::<u64>();
    near.min_by_key(cost).map(|(i, _)| i..i + FANOUT)
}
