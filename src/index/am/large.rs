//! Insertion of a row with more keys than fit on a page of the log. The row becomes a segment of its own.
//!
//! Segments are in the order of their rows, and all rows of the log come after them. So when the new segment is
//! switched in, all rows in the log at that time become segments before it.

use super::hold;
use super::log;
use super::merge::{Merging, add_leaf, for_each_leaf, write_segment};
use super::meta::{self, Meta};
use super::page::{Index, Page, PageChanges, PageType, raise_corrupted};
use super::rows::{self, RowEntry};
use crate::pg::prelude::*;
use neardup::postings::policy::{MAX_SEGMENTS, SEGMENTS_WITH_ROW};
use neardup::postings::{Posting, Segment, sort_distinct};

/// Maximum number of attempts to switch in a segment. An attempt fails if others fill another page of the log first.
const TRIES: usize = SEGMENTS_WITH_ROW - 2;

/// Inserts a row, and does the share of merging that is due for the leaves of the row's segment.
pub fn insert(index: &Index, entry: &RowEntry, keys: &[u32]) {
    // The row's number is not known yet.
    let posting = |&key: &u32| u64::from(Posting { key, offset: 0 });
    let mut postings = collected(keys.iter().map(posting)).or_raise();
    sort_distinct(&mut postings, &mut check_interrupts);
    while !try_insert(index, entry, &postings) {
        check_interrupts();
    }
}

fn try_insert(index: &Index, entry: &RowEntry, postings: &[u64]) -> bool {
    let merging = Merging::wait(index);
    if Meta::read(index).segments().len() + SEGMENTS_WITH_ROW > MAX_SEGMENTS {
        merging.share(1);
        return false;
    }
    let (_, _, own) = write_segment(index, 0..1, 1, postings);
    for _ in 0..TRIES {
        merging.flush(1);
        hold::point("large_row_written");
        if switch_in(index, entry, own) {
            merging.share(own.leaves as usize);
            return true;
        }
    }
    // Others kept filling pages. VACUUM frees the pages of the segment.
    false
}

/// Assigns the row's number, makes the row visible together with its segment `own`, and empties the log. Returns false
/// if the log has full pages before the tail.
fn switch_in(index: &Index, entry: &RowEntry, own: Segment) -> bool {
    let (mut meta_page, mut meta) = Meta::lock(index);
    if meta.log().len() > 1 {
        return false;
    }
    let mut tail = meta.tail().map(|block| index.lock(block));
    let before = tail.as_ref().map(|tail| {
        if !tail.is(PageType::Tail, meta.log_start) {
            raise_corrupted(index, Some(tail.block()), "it is not the log's last page");
        }
        tail_segment(index, &mut meta_page, &mut meta, tail)
    });
    let row = before.map_or(meta.log_start, |before| before.hi);
    rows::ensure_page(index, &mut meta_page, &mut meta, rows::page_of(row));
    let mut row_page = index.lock(meta.last_rows_block);
    rows::ensure_new(index, &row_page, row);
    let freed: Vec<u32> = meta.log().to_vec();
    meta.shift_log(freed.len(), row + 1);
    if let Some(before) = before.filter(|before| before.postings > 0) {
        meta.push_segment(index, before);
    }
    let own = Segment {
        lo: row,
        hi: row + 1,
        ..own
    };
    meta.push_segment(index, own);
    let rest = meta.push_free(&freed);
    let mut changes = PageChanges::start(index);
    if let Some(tail) = &mut tail {
        // A session that still takes the page for the tail will look for the new tail.
        changes.change(tail).set_kind(PageType::Log);
    }
    rows::put(&mut changes.change(&mut row_page), row, entry);
    meta.write(&mut changes.change(&mut meta_page));
    changes.finish();
    drop((tail, row_page, meta_page));
    meta::release(index, &rest);
    true
}

/// Writes a segment with the rows of `tail`, and returns it. The tail and the metapage are locked.
fn tail_segment(index: &Index, meta_page: &mut Page, meta: &mut Meta, tail: &Page) -> Segment {
    let (end, _) = log::next_row(index, tail, 0);
    let mut postings = Vec::new();
    let rows = log::add_postings(&log::parse(index, tail), 0, &mut postings);
    let rows = index.sound(tail.block(), rows);
    sort_distinct(&mut postings, &mut || ());
    let mut segment = meta.new_segment(tail.number(), end, rows);
    for_each_leaf(&postings, |leaf| {
        add_leaf(index, meta_page, meta, &mut segment, leaf, |_, _| {});
    });
    segment
}
