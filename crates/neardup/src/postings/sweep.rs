//! Reads all postings of an index in one order, a part at a time.

use super::walk::SegmentWalk;
use super::{Pages, Posting, Segment, SegmentGroup, split_of_input};
use crate::Error;

/// A key and the number of a row that has it. Merges move postings, but keep their places.
pub type KeyAndRow = (u32, u64);

/// A place behind all postings: row numbers are far below.
const END: KeyAndRow = (u32::MAX, u64::MAX);

/// Calls `take` with the places of the groups' postings from `from` on, ascending, until it returns false.
/// Returns the place that was not taken, with which to go on, also after merges; `None` at the end.
///
/// # Errors
/// The errors of `pages`, and damage where pages or postings are out of order.
pub fn sweep<P: Pages>(
    pages: &mut P,
    groups: &[SegmentGroup],
    from: KeyAndRow,
    take: &mut impl FnMut(KeyAndRow) -> bool,
) -> Result<Option<KeyAndRow>, P::Error> {
    let mut sources = Vec::new();
    for group in groups {
        let room = sources.try_reserve(group.inputs.len() + 1);
        room.map_err(Error::from)?;
        let split = group.output.map(|output| {
            let end = output.split.into();
            sources.push(SweptSegment::new(&output.segment, from, Posting::MIN, end));
            (output.segment.lo, output.split)
        });
        sources.extend(group.inputs.iter().map(|input| {
            let least = split.map_or(Posting::MIN, |(lo, split)| {
                split_of_input(split, input.lo.saturating_sub(lo))
            });
            SweptSegment::new(input, from, least, u64::MAX)
        }));
    }
    for source in &mut sources {
        source.load(pages)?;
    }
    loop {
        let (least, after) = two_least(&sources);
        let Some(source) = sources.get_mut(least) else {
            return Ok(None);
        };
        while source.next != END && source.next <= after {
            if !take(source.next) {
                return Ok(Some(source.next));
            }
            source.walk.skip();
            source.load(pages)?;
        }
    }
}

/// Returns the number of the source with the least next place, `usize::MAX` at the end, and the least place
/// of the others.
fn two_least(sources: &[SweptSegment]) -> (usize, KeyAndRow) {
    let (mut least, mut at, mut after) = (END, usize::MAX, END);
    for (place, source) in sources.iter().enumerate() {
        if source.next < least {
            (after, least, at) = (least, source.next, place);
        } else {
            after = after.min(source.next);
        }
    }
    (at, after)
}

/// A segment, up to where a merge goes on writing it.
struct SweptSegment {
    walk: SegmentWalk,
    lo: u64,
    end: u64,
    next: KeyAndRow,
}

impl SweptSegment {
    fn new(segment: &Segment, (key, row): KeyAndRow, least: Posting, end: u64) -> Self {
        // An offset beyond all others stands for rows behind the segment's.
        let offset = row.saturating_sub(segment.lo).min(u64::from(u32::MAX)) as u32;
        let from = Posting { key, offset }.max(least);
        Self {
            walk: SegmentWalk::new(segment, from),
            lo: segment.lo,
            end,
            next: END,
        }
    }

    #[inline]
    fn load<P: Pages>(&mut self, pages: &mut P) -> Result<(), P::Error> {
        let within = self
            .walk
            .peek(pages)?
            .filter(|posting| u64::from(*posting) < self.end);
        self.next = within.map_or(END, |posting| {
            (
                posting.key,
                self.lo.saturating_add(u64::from(posting.offset)),
            )
        });
        Ok(())
    }
}
