//! Reads the pages of segments, and groups segments that are searched as one.

use super::ahead::PageReader;
use super::meta::{Meta, StoredMerge};
use super::page::{Index, PageType};
use super::rows::RowTable;
use super::stop::Stop;
use crate::pg::error::check_interrupts;
use neardup::bands::RowSize;
use neardup::postings::{MergeOutput, PageAhead, PageKind, Pages, RowSizes, Segment, SegmentGroup};

/// The pages that a search reads: pages of segments, and of the row table.
pub struct SearchPages<'a> {
    reader: PageReader<'a>,
    rows: RowTable<'a>,
}

impl<'a> SearchPages<'a> {
    pub fn new(index: Index<'a>, meta: &Meta) -> Self {
        Self {
            reader: PageReader::new(index),
            rows: RowTable::new(index, meta),
        }
    }
}

impl Pages for SearchPages<'_> {
    type Error = Stop;

    fn announce<T>(
        &mut self,
        pages: &mut [T],
        ahead: impl Fn(&T) -> PageAhead,
    ) -> Result<(), Stop> {
        Ok(self.reader.announce_in_any_order(pages, ahead)?)
    }

    fn read<R>(
        &mut self,
        segment: &Segment,
        kind: PageKind,
        block: u32,
        look: impl FnOnce(&[u8]) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let kind = match kind {
            PageKind::Leaf => PageType::Leaf,
            PageKind::Directory => PageType::Directory,
        };
        let page = self.reader.page(block);
        if !page.is(kind, segment.number) {
            return Err(Stop::Restart(block));
        }
        look(page.payload()).map_err(Stop::at(block))
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        check_interrupts();
        Ok(())
    }
}

impl RowSizes for SearchPages<'_> {
    fn sizes(&mut self, rows: &[u64], look: &mut dyn FnMut(usize, RowSize)) -> Result<(), Stop> {
        self.rows
            .for_each_live(rows, &mut |_, place, entry| look(place, entry.size()));
        Ok(())
    }
}

/// Returns the groups of segments of an index, in descending order of their numbers of rows.
pub fn by_size<'m>(index: &Index, meta: &'m Meta) -> Vec<SegmentGroup<'m>> {
    let mut groups = groups(index, meta);
    groups.sort_unstable_by(|a, b| b.rows().total_cmp(&a.rows()));
    groups
}

/// Returns the total number of rows of `groups`.
pub fn rows_of(groups: &[SegmentGroup]) -> f64 {
    groups.iter().map(SegmentGroup::rows).sum()
}

/// Returns the groups of segments of an index, from the newest to the oldest. A group is the inputs of a merge, or one
/// other segment.
pub fn groups<'m>(index: &Index, meta: &'m Meta) -> Vec<SegmentGroup<'m>> {
    let segments = meta.segments();
    let mut output_of = vec![None; segments.len()];
    for merge in meta.merges() {
        output_of[meta.inputs(index, merge)].fill(Some(merge));
    }
    let mut groups = Vec::new();
    let mut end = segments.len();
    while end > 0 {
        let merge: Option<&StoredMerge> = output_of[end - 1];
        let start = end - merge.map_or(1, |merge| (merge.inputs as usize).clamp(1, end));
        groups.push(SegmentGroup {
            inputs: &segments[start..end],
            output: merge.map(|merge| MergeOutput {
                segment: merge.output,
                split: merge.split.into(),
            }),
        });
        end = start;
    }
    groups
}
