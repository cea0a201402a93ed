//! The policy of segments: when the log becomes a segment, which segments are merged, and when dead rows are
//! worth a pass. This module has all rules and limits, and does none of the work.
//!
//! Segments are in the order of their rows. Inserting sessions merge in small shares ([`due`]); VACUUM merges
//! further ([`crowded`]); a build merges whole segments before it writes more ([`of_build`]).

use super::{MAX_ROWS, Segment};
use std::ops::Range;

/// Maximum number of segments in an index.
pub const MAX_SEGMENTS: usize = 64;

/// Maximum number of merges in progress.
pub const MAX_MERGES: usize = 12;

/// When the log has this many full pages, inserting sessions turn them into a segment.
pub const FLUSHED_PAGES: usize = 48;

/// Number of leaves that an inserting session writes for each merge after it has filled a log page. The postings of a
/// page fill about one leaf, so merges finish in a fraction of the time in which their inputs accumulate.
pub const LEAVES_PER_PAGE: usize = 16;

/// Number of leaves written in one go before other sessions may merge or make room in a full log. Inserting sessions
/// wait for this.
pub const LEAVES_AT_ONCE: usize = 8;

/// Maximum number of segments added for a row that becomes a segment of its own: from the log before it, from the log's
/// last page, and its own.
pub const SEGMENTS_WITH_ROW: usize = 10;

/// Up to this number of segments, merges begun by VACUUM are left to VACUUM.
pub const MOST_WITHOUT_VACUUM: usize = MAX_SEGMENTS - 2 * SEGMENTS_WITH_ROW;

/// VACUUM merges until every segment is this many times as large as all later segments together. Each additional
/// segment costs every lookup one page per key. But with a VACUUM after each 5 % of inserts, a factor of 16 writes 12
/// times the inserted data; a factor of 2 writes 4 times, and leaves 3 segments on average instead of 1.6.
pub const VACUUM_TIMES: u64 = 2;

/// Maximum number of inputs of a merge by inserting sessions.
const MOST_INPUTS: usize = 12;

/// Above this many segments, some are merged whatever their sizes, because each costs every lookup one page per key.
pub const MANY_SEGMENTS: usize = 32;

/// Number of segments to merge if there are more than [`MANY_SEGMENTS`].
const FEW: usize = 4;

/// Number of segments of about the same size at which a build merges them before it writes more.
const MERGED_BY_BUILD: usize = 32;

/// Share of dead rows above which VACUUM rewrites a segment.
const DEAD_SHARE: f64 = 0.15;

/// Returns whether the rows of adjacent `segments` are close enough to be numbered in one segment.
fn fit_together(segments: &[Segment]) -> bool {
    match segments {
        [first, .., last] => last.hi.saturating_sub(first.lo) <= MAX_ROWS,
        _ => true,
    }
}

/// Returns the adjacent segments that inserting sessions should merge, if any. None of `segments` is being merged.
///
/// A segment is merged with later ones once they hold at least 3/5 as many postings. So two of about the same size
/// become one, a segment holds more than all later ones together, and a posting is rewritten about log2(segment /
/// smallest segment) times. The merge with the least work per segment removed comes first.
pub fn due(segments: &[Segment]) -> Option<Range<usize>> {
    let due = (0..segments.len()).filter_map(|start| {
        let count = due_from_first(&segments[start..])?;
        Some(start..start + count)
    });
    let work = |range: &Range<usize>| {
        let inputs = &segments[range.clone()];
        let postings: u128 = inputs.iter().map(|input| u128::from(input.postings)).sum();
        postings / (inputs.len() as u128 - 1)
    };
    due.min_by_key(work).or_else(|| {
        (segments.len() > MANY_SEGMENTS)
            .then(|| cheapest(segments))
            .flatten()
    })
}

/// Returns how many of the leading segments to merge, or None if the first one may stay.
fn due_from_first(segments: &[Segment]) -> Option<usize> {
    let first = segments.first()?;
    let mut after = 0;
    for count in 2..=MOST_INPUTS.min(segments.len()) {
        if !fit_together(&segments[..count]) {
            return None;
        }
        after += u128::from(segments[count - 1].postings);
        if 5 * after >= 3 * u128::from(first.postings) {
            return Some(count);
        }
    }
    None
}

/// Returns the [`FEW`] adjacent segments that take the least work to merge, or None if none fit together.
fn cheapest(segments: &[Segment]) -> Option<Range<usize>> {
    let windows = segments.windows(FEW).enumerate();
    let near = windows.filter(|(_, window)| fit_together(window));
    let cost = |(_, window): &(usize, &[Segment])| window.iter().map(|s| s.postings).sum::<u64>();
    near.min_by_key(cost).map(|(i, _)| i..i + FEW)
}

/// Returns the segments that VACUUM should merge, if any: the first range of [`with_later`] whose first segment has
/// fewer than `times` as many postings as the others together.
pub fn crowded(segments: &[Segment], times: u64) -> Option<Range<usize>> {
    (0..segments.len()).find_map(|start| {
        let range = with_later(segments, start);
        let later = &segments[start + 1..range.end];
        let after: u64 = later.iter().map(|later| later.postings).sum();
        let is_crowded = after > 0 && segments[start].postings < times.saturating_mul(after);
        is_crowded.then_some(range)
    })
}

/// Returns the longest range that begins with segment `start` and whose rows fit into one segment. If many rows of that
/// segment are dead, VACUUM rewrites the whole range as one. That costs little more than rewriting the segment alone,
/// and leaves few segments if rows are replaced in portions.
pub fn with_later(segments: &[Segment], start: usize) -> Range<usize> {
    let fits = |end: &usize| fit_together(&segments[start..*end]);
    let end = (start + 1..=segments.len()).rev().find(fits);
    start..end.unwrap_or(start)
}

/// Returns the last segments if a build should merge them before it writes more: those of about the same size once
/// there are `MERGED_BY_BUILD`, or at least as many of any size once there are [`MAX_SEGMENTS`].
pub fn of_build(segments: &[Segment]) -> Option<Range<usize>> {
    let last = segments.last()?;
    let alike = |segment: &&Segment| segment.postings / 2 <= last.postings;
    let alike = segments.iter().rev().take_while(alike).count();
    let count = if segments.len() < MAX_SEGMENTS {
        alike
    } else {
        alike.max(MERGED_BY_BUILD)
    };
    if count < MERGED_BY_BUILD {
        return None;
    }
    let end = segments.len();
    let start = (end - count..end - 1).find(|start| fit_together(&segments[*start..]))?;
    Some(start..end)
}

/// Returns whether VACUUM should rewrite a segment in which `live` of `rows` rows are left.
pub fn is_to_be_purged(rows: u64, live: u64) -> bool {
    (live as f64) < rows as f64 * (1.0 - DEAD_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a segment of `rows` rows that starts at row `lo`.
    fn segment(lo: u64, rows: u64, postings: u64) -> Segment {
        Segment {
            number: lo,
            lo,
            hi: lo + rows,
            postings,
            ..Segment::default()
        }
    }

    /// Returns adjacent segments of `rows` rows each, one for each number in `postings`.
    fn segments(postings: &[u64], rows: u64) -> Vec<Segment> {
        let segments = (0..).step_by(rows as usize).zip(postings);
        let segments = segments.map(|(lo, &postings)| segment(lo, rows, postings));
        segments.collect()
    }

    fn merge(segments: &mut Vec<Segment>, range: Range<usize>) {
        let inputs = &segments[range.clone()];
        let merged = Segment {
            hi: inputs[inputs.len() - 1].hi,
            postings: inputs.iter().map(|input| input.postings).sum(),
            ..inputs[0]
        };
        segments.splice(range, [merged]);
    }

    /// Simulates a build that writes a segment for each number in `postings`. Returns how many segments are left.
    fn build(postings: &[u64], rows: u64) -> usize {
        let mut written = Vec::new();
        for segment in segments(postings, rows) {
            written.push(segment);
            assert!(written.len() <= MAX_SEGMENTS, "{} segments", written.len());
            while let Some(range) = of_build(&written) {
                merge(&mut written, range);
            }
        }
        while let Some(range) = crowded(&written, u64::MAX) {
            merge(&mut written, range);
        }
        let fits = |segment: &Segment| segment.hi - segment.lo <= MAX_ROWS;
        assert!(written.iter().all(fits));
        written.len()
    }

    #[test]
    fn a_build_has_room_for_segments_of_every_size() {
        let falling = [[600_000; 31], [290_000; 31], [140_000; 31]].concat();
        let halved: Vec<u64> = (0..500).map(|i| 1 << (40 - i % 40)).collect();
        for postings in [falling, halved, vec![7; 2000], (1..1000).collect()] {
            assert_eq!(build(&postings, 1000), 1);
        }
    }

    #[test]
    fn no_merge_spans_more_rows_than_a_segment_can() {
        assert_eq!(build(&[5; 70], MAX_ROWS / 8), 9);
        for rows in [MAX_ROWS / 2, MAX_ROWS / 2 + 1, MAX_ROWS] {
            let fits = 2 * rows <= MAX_ROWS;
            let [two, many] = [2, MAX_SEGMENTS].map(|of| segments(&[5; MAX_SEGMENTS][..of], rows));
            let merged = [due(&two), crowded(&two, VACUUM_TIMES), due(&many)];
            assert_eq!(merged.map(|range| range.is_some()), [fits; 3], "{rows}");
        }
    }

    #[test]
    fn vacuum_merges_what_fits_together() {
        let far = segments(&[100, 60, 20, 10], MAX_ROWS / 2);
        assert_eq!(crowded(&far, VACUUM_TIMES), Some(0..2));
        let near = segments(&[4000, 200, 8, 5], 10);
        assert_eq!(crowded(&near, VACUUM_TIMES), Some(2..4));
        assert_eq!(crowded(&near[..2], VACUUM_TIMES), None);
    }

    /// Grows a table from 10^5 rows to 10^6, with a VACUUM after each `share` of inserts. Returns how many times the
    /// inserted data VACUUM writes, and how many segments it leaves on average.
    fn grow(share: f64) -> (f64, f64) {
        /// Number of rows of 30 keys that [`FLUSHED_PAGES`] pages hold.
        const FLUSHED: u64 = 3000;
        let (start, end) = (100_000, 1_000_000);
        let mut segments = segments(&[start], start);
        let (mut rows, mut written, mut left, mut vacuums) = (start, 0, 0, 0);
        while rows < end {
            let mut inserted = (rows as f64 * share) as u64;
            while inserted > 0 {
                let flushed = inserted.min(FLUSHED);
                inserted -= flushed;
                segments.push(segment(rows, flushed, flushed));
                rows += flushed;
                if flushed < FLUSHED {
                    written += flushed;
                    continue;
                }
                while let Some(range) = due(&segments) {
                    merge(&mut segments, range);
                }
            }
            while let Some(range) = crowded(&segments, VACUUM_TIMES) {
                let start = range.start;
                merge(&mut segments, range);
                written += segments[start].postings;
            }
            left += segments.len();
            vacuums += 1;
        }
        let times = written as f64 / (rows - start) as f64;
        (times, left as f64 / f64::from(vacuums))
    }

    #[test]
    fn vacuum_writes_in_proportion_to_inserts() {
        for share in [0.02, 0.03, 0.05, 0.1, 0.2] {
            let (times, segments) = grow(share);
            assert!(
                times <= 5.0 && segments <= 4.0,
                "{share} of inserts: {times} times, {segments} segments"
            );
        }
    }

    /// Replaces all rows of a table in portions, with a VACUUM after each. Returns how many times the inserted data
    /// VACUUM writes, and how many segments it leaves on average and at the end.
    fn replace(portions: u64) -> (f64, f64, usize) {
        const ROWS: u64 = 100_000;
        let mut segments = segments(&[ROWS], ROWS);
        let (mut written, mut left, mut dead) = (0, 0, 0);
        for portion in 0..portions {
            let lo = ROWS + portion * ROWS / portions;
            segments.push(segment(lo, ROWS / portions, ROWS / portions));
            // The first segment has the rows that were there from the beginning.
            dead += ROWS / portions;
            loop {
                let first = segments[0].postings;
                let range = crowded(&segments, VACUUM_TIMES).or_else(|| {
                    is_to_be_purged(first, first - dead).then(|| with_later(&segments, 0))
                });
                let Some(range) = range else { break };
                let start = range.start;
                merge(&mut segments, range);
                if start == 0 {
                    segments[0].postings -= std::mem::take(&mut dead);
                }
                written += segments[start].postings;
            }
            left += segments.len();
        }
        let times = written as f64 / ROWS as f64;
        (times, left as f64 / portions as f64, segments.len())
    }

    #[test]
    fn vacuum_leaves_few_segments_of_replaced_rows() {
        for portions in [2, 5, 10, 20, 50] {
            let (times, average, end) = replace(portions);
            assert!(
                times <= 8.0 && average <= 2.3 && end <= 2,
                "{portions} portions: {times} times, {average} segments, {end} at the end"
            );
        }
    }

    #[test]
    fn segments_beyond_many_are_merged_whatever_their_sizes() {
        let all = MANY_SEGMENTS + 1;
        let sizes: Vec<u64> = (0..all as u32).rev().map(|i| 3u64.pow(i)).collect();
        assert_eq!(due(&segments(&sizes[1..], 10)), None);
        assert_eq!(due(&segments(&sizes, 10)), Some(all - FEW..all));
    }
}
