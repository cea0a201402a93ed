//! The valid postings of a group, segment by segment.

use super::{Damaged, MAX_ROWS, MergeOutput, Posting, Segment, SegmentGroup};
use crate::Error;
use crate::memory::with_room;
use std::ops::Range;

/// The valid postings of one segment: all of them, or only the ones on this segment's side of a merge's split.
pub(super) struct SegmentPart<'g> {
    pub(super) segment: &'g Segment,
    pub(super) rows: u64,
    /// The distance from the group's first row to the segment's.
    pub(super) shift: u32,
    /// The first and the last valid posting, as numbers.
    pub(super) first: u64,
    pub(super) last: u64,
    /// The first and the last valid row offset.
    offsets: (u32, u32),
}

impl<'g> SegmentPart<'g> {
    /// Returns the part of `segment` with the postings from `first` to `last`, or None if it has no postings or rows.
    fn new(segment: &'g Segment, lo: u64, first: u64, last: u64) -> Result<Option<Self>, Damaged> {
        let rows = segment.range()?;
        let shift = segment.lo.checked_sub(lo);
        let shift = shift.filter(|shift| shift.saturating_add(rows) <= MAX_ROWS);
        let shift = shift.ok_or(Damaged("segments too far apart to be merged"))?;
        let part = Self {
            segment,
            rows,
            shift: shift as u32,
            first,
            last,
            offsets: (0, u32::MAX),
        };
        Ok((segment.postings > 0 && rows > 0).then_some(part))
    }

    /// Returns the part for the group's rows in `window`, or None if the segment has no rows there.
    pub(super) fn within(&self, window: &Range<u32>) -> Option<Self> {
        let start = window.start.saturating_sub(self.shift);
        let end = window.end.checked_sub(self.shift)?;
        (u64::from(start) < self.rows && start < end).then(|| Self {
            offsets: (start, end - 1),
            ..*self
        })
    }

    /// Returns the first and the last valid posting that `key` can have, or None if it can have none.
    #[inline]
    pub(super) fn range(&self, key: u32) -> Option<(Posting, Posting)> {
        let [first, last] = <[u32; 2]>::from(self.offsets).map(|offset| Posting { key, offset });
        let first = self.first.max(first.into());
        let last = self.last.min(last.into());
        (first <= last).then_some((first.into(), last.into()))
    }

    /// Returns the number of rows whose postings are valid.
    pub(super) fn valid_rows(&self) -> f64 {
        let (first, last) = self.offsets;
        self.rows
            .min(u64::from(last) + 1)
            .saturating_sub(first.into()) as f64
    }

    #[inline]
    pub(super) fn group_offset(&self, number: u64) -> Result<u32, Damaged> {
        let offset = Posting::from(number).offset;
        if u64::from(offset) >= self.rows {
            return Err(Damaged("posting of a row that is not its segment's"));
        }
        Ok(self.shift + offset)
    }
}

/// Returns the first row of `group`, and the valid parts of its segments.
pub(super) fn parts<'g, E>(group: &'g SegmentGroup) -> Result<(u64, Vec<SegmentPart<'g>>), E>
where
    E: From<Damaged> + From<Error>,
{
    let lowest_input = group.inputs.iter().map(|input| input.lo).min();
    let output_lo = group.output.map(|output| output.segment.lo);
    let lo = output_lo.or(lowest_input).unwrap_or(0);
    let mut parts = with_room(group.inputs.len() + 1)?;
    if let Some(MergeOutput { segment, split }) = &group.output
        && let Some(last) = u64::from(*split).checked_sub(1)
    {
        parts.extend(SegmentPart::new(segment, lo, 0, last)?);
    }
    for input in group.inputs {
        let split = group.output.map_or(Posting::MIN, |output| {
            split_of_input(output.split, input.lo.saturating_sub(lo))
        });
        parts.extend(SegmentPart::new(input, lo, split.into(), u64::MAX)?);
    }
    Ok((lo, parts))
}

/// Returns the range of the row offsets in `parts`.
pub(super) fn offsets_of(parts: &[SegmentPart]) -> Range<u32> {
    let first = parts.iter().map(|part| part.shift + part.offsets.0);
    let end = parts.iter().map(|part| {
        let rows = part.rows.min(u64::from(part.offsets.1) + 1);
        (u64::from(part.shift) + rows).min(MAX_ROWS) as u32
    });
    first.min().unwrap_or(0)..end.max().unwrap_or(0)
}

/// Returns `split` with its offset counted from an input's first row, at least 0, instead of the output's first row.
/// The input's first row is `shift` rows after the output's.
pub fn split_of_input(split: Posting, shift: u64) -> Posting {
    let offset = u64::from(split.offset).saturating_sub(shift) as u32;
    Posting { offset, ..split }
}
