//! VACUUM: blanks dead rows in the row table, drops their postings if there are many, merges segments, and frees pages
//! that nothing refers to.

use super::hold;
use super::matches;
use super::merge::Merging;
use super::meta::{self, Meta, StoredMerge};
use super::page::{Index, META_BLOCK, Page, PageChanges, PageType};
use super::rows::{self, RowTable};
use crate::pg::error::{OrRaise, vacuum_delay};
use neardup::memory::filled;
use neardup::postings::Segment;
use neardup::postings::policy::{self, LEAVES_AT_ONCE, MAX_MERGES, VACUUM_TIMES};
use pgrx::prelude::*;
use std::collections::HashSet;
use std::ffi::c_void;

/// Number of pages looked at between two calls of [`vacuum_delay`].
const PAGES_AT_ONCE: u32 = 256;

/// Implements `ambulkdelete`.
#[pg_guard]
pub unsafe extern "C-unwind" fn bulk_delete(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
    callback: pg_sys::IndexBulkDeleteCallback,
    state: *mut c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // VACUUM calls this with an open index of this access method. So does the validation of CREATE INDEX CONCURRENTLY,
    // whose callback wants to see every row.
    let index = Index::new((*info).index);
    let stats = or_new(stats);
    let is_dead =
        |tid: &mut pg_sys::ItemPointerData| callback.is_some_and(|callback| callback(tid, state));
    let (live, removed) = blank_rows(&index, is_dead);
    (*stats).num_index_tuples = live as f64;
    (*stats).tuples_removed += removed as f64;
    (*stats).num_pages = index.blocks();
    stats
}

/// # Safety
/// `stats` is NULL or valid.
unsafe fn or_new(stats: *mut pg_sys::IndexBulkDeleteResult) -> *mut pg_sys::IndexBulkDeleteResult {
    match stats.is_null() {
        // All zeros are a valid result.
        true => pg_sys::palloc0(size_of::<pg_sys::IndexBulkDeleteResult>()).cast(),
        false => stats,
    }
}

/// Blanks the rows for which `is_dead` returns true. Returns how many rows are live, and how many were blanked.
fn blank_rows(
    index: &Index,
    mut is_dead: impl FnMut(&mut pg_sys::ItemPointerData) -> bool,
) -> (u64, u64) {
    let meta = Meta::read(index);
    let mut table = RowTable::new(*index, &meta);
    let (mut live, mut removed) = (0, 0);
    let mut rows = Vec::new();
    for place in table.places(&meta) {
        vacuum_delay();
        if !table.read_page(place, &mut rows) {
            continue;
        }
        let dead = rows.extract_if(.., |(_, entry)| is_dead(&mut entry.tid));
        let dead: Vec<_> = dead.map(|(row, entry)| (row, entry.blank())).collect();
        live += rows.len() as u64;
        hold::point("vacuum_reads_rows");
        removed += dead.len() as u64;
        if !dead.is_empty()
            && let Some(mut page) = table.page_at(place, Index::lock)
        {
            let mut changes = PageChanges::start(index);
            let mut image = changes.change(&mut page);
            for (row, entry) in dead {
                rows::put(&mut image, row, &entry);
            }
            changes.finish();
        }
        if rows.is_empty() {
            hold::point("vacuum_finds_page_dead");
            rows::remove_page(index, place);
        }
    }
    (live, removed)
}

/// Implements `amvacuumcleanup`.
#[pg_guard]
pub unsafe extern "C-unwind" fn cleanup(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // VACUUM and ANALYZE call this with an open index of this access method.
    let index = Index::new((*info).index);
    let sample = || {
        if matches::calls_only_c(&index) {
            matches::sample(&index);
        }
    };
    if (*info).analyze_only {
        // Autovacuum analyzes insert-only tables long before it vacuums them.
        if pg_sys::MyBackendType == pg_sys::BackendType::B_AUTOVAC_WORKER {
            tidy(&index);
        }
        sample();
        return stats;
    }
    let has_deleted = !stats.is_null();
    let stats = or_new(stats);
    if !has_deleted {
        (*stats).num_index_tuples = (*info).num_heap_tuples;
        (*stats).estimated_count = (*info).estimated_count;
    }
    let free_before = free_pages(&index);
    tidy(&index);
    sample();
    // After a crash, pages may be lost although no row is dead.
    if has_deleted || free_before > index.blocks() / 8 {
        reclaim(&index.read_once((*info).strategy));
    }
    pg_sys::IndexFreeSpaceMapVacuum(index.as_ptr());
    let free = free_pages(&index);
    (*stats).num_pages = index.blocks();
    (*stats).pages_newly_deleted = free.saturating_sub(free_before);
    (*stats).pages_deleted = free;
    (*stats).pages_free = free;
    stats
}

/// The live and the dead rows of a segment. Each bit stands for `rows_per_bit` adjacent rows, and is set if any of them
/// is live.
pub struct Dead {
    lo: u64,
    rows_per_bit: u64,
    live: Vec<u64>,
}

impl Dead {
    /// Reads the rows of `segment` from the row table. Returns which of them are live, and how many live rows have
    /// keys. Uses at most maintenance_work_mem, so in a very large segment only groups of dead rows are known.
    pub fn read(index: &Index, meta: &Meta, segment: &Segment) -> (Self, u64) {
        // SAFETY: reads a setting of the backend.
        let most_bits = unsafe { pg_sys::maintenance_work_mem } as u64 * 1024 * 8;
        let rows = segment.hi - segment.lo;
        let mut dead = Self {
            lo: segment.lo,
            rows_per_bit: rows.div_ceil(most_bits).max(1),
            live: Vec::new(),
        };
        let words = rows.div_ceil(dead.rows_per_bit).div_ceil(64) as usize;
        dead.live = filled(0, words).or_raise();
        let mut table = RowTable::new(*index, meta);
        let (mut live, mut rows) = (0, Vec::new());
        for place in rows::page_of(segment.lo)..=rows::page_of(segment.hi.max(1) - 1) {
            vacuum_delay();
            table.read_page(place, &mut rows);
            rows.retain(|(row, _)| (segment.lo..segment.hi).contains(row));
            for (row, entry) in &rows {
                live += u64::from(entry.size().count() > 0);
                let bit = (row - dead.lo) / dead.rows_per_bit;
                dead.live[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        (dead, live)
    }

    /// Returns whether a row may be live. Returns true for rows outside the range, which occur on damaged pages.
    fn is_live(&self, row: u64) -> bool {
        let bit = row.wrapping_sub(self.lo) / self.rows_per_bit;
        let word = self.live.get((bit / 64) as usize);
        word.is_none_or(|word| word >> (bit % 64) & 1 == 1)
    }
}

/// Finishes the merges in progress, merges segments that are crowded, and rewrites segments with many dead rows.
/// Postings of dead rows are dropped.
fn tidy(index: &Index) {
    Merging::wait(index).flush(1);
    // Rows added in the meantime are left to the next VACUUM, or this one might never end.
    let end = Meta::read(index).log_start;
    let mut looked_at = HashSet::new();
    loop {
        let meta = Meta::read(index);
        // Merges of newer rows may leave no room for a merge that must begin.
        let is_full = meta.merges().len() == MAX_MERGES;
        let mut merges = meta.merges().iter();
        if let Some(merge) = merges.find(|merge| is_full || merge.output.lo < end) {
            drive(index, merge);
            continue;
        }
        let old = meta.segments().partition_point(|segment| segment.hi <= end);
        let segments = &meta.segments()[..old];
        let range = policy::crowded(segments, VACUUM_TIMES).or_else(|| {
            let place = segments.iter().position(|segment| {
                looked_at.insert(segment.number) && {
                    let (_, live) = Dead::read(index, &meta, segment);
                    policy::is_to_be_purged(segment.rows, live)
                }
            })?;
            Some(policy::with_later(segments, place))
        });
        let Some(range) = range else {
            return;
        };
        hold::point("vacuum_chooses_segments");
        begin(index, &segments[range]);
    }
}

/// Begins a merge of `inputs` that inserting sessions leave to VACUUM. Does nothing if `inputs` have changed or are
/// already being merged, or if there are [`MAX_MERGES`] merges.
fn begin(index: &Index, inputs: &[Segment]) {
    let merging = Merging::wait(index);
    let meta = Meta::read(index);
    let first = meta.segments().iter().position(|s| *s == inputs[0]);
    let range = first.map(|first| first..first + inputs.len());
    let taken = |range: &std::ops::Range<usize>| {
        let mut taken = meta.merges().iter().map(|merge| meta.inputs(index, merge));
        taken.any(|taken| taken.start < range.end && range.start < taken.end)
    };
    if let Some(range) = range
        && meta.merges().len() < MAX_MERGES
        && !taken(&range)
        && meta.segments().get(range.clone()) == Some(inputs)
    {
        merging.begin_merge(range, true);
    }
}

/// Runs `merge` to its end, a few leaves at a time, without the postings of dead rows.
fn drive(index: &Index, merge: &StoredMerge) {
    let number = merge.output.number;
    let (dead, live) = Dead::read(index, &Meta::read(index), &merge.output);
    hold::point("vacuum_reads_dead");
    Merging::wait(index).take_over(number, live);
    loop {
        vacuum_delay();
        let merging = Merging::wait(index);
        let meta = Meta::read(index);
        let Some(place) = meta.merge_to(number) else {
            return;
        };
        let done = merging.advance(place, LEAVES_AT_ONCE, &mut |row| dead.is_live(row));
        if done.is_some() {
            return;
        }
    }
}

/// Returns the approximate number of free pages: pages not known to be in use.
fn free_pages(index: &Index) -> u32 {
    let meta = Meta::read(index);
    let merged = meta.merges().iter().map(|merge| &merge.output);
    let of_segments = meta.segments().iter().chain(merged);
    let used: u32 = of_segments
        .map(|segment| segment.leaves.saturating_add(segment.directory_pages))
        .fold(0, u32::saturating_add);
    let rows = RowTable::new(*index, &meta).count_pages(&meta);
    let used = used.saturating_add(rows).saturating_add(meta.log_pages + 1);
    index.blocks().saturating_sub(used)
}

/// Finds and frees pages that nothing refers to, such as those left behind by a crash. Records all free pages in the
/// free space map, which may have lost them in a crash.
fn reclaim(index: &Index) {
    meta::release_kept(index);
    let mut block = META_BLOCK + 1;
    loop {
        vacuum_delay();
        let end = index.blocks().min(block + PAGES_AT_ONCE);
        if block >= end {
            return;
        }
        let meta = Meta::read(index);
        let is_lost = |block: &u32| is_orphan(&index.read(*block), &meta);
        let orphans: Vec<u32> = (block..end).filter(is_lost).collect();
        hold::point("vacuum_looks_for_orphans");
        if !orphans.is_empty() {
            reclaim_pages(index, &orphans);
        }
        for found in (block..end).filter(|block| index.read(*block).is_free()) {
            // SAFETY: the relation is open.
            unsafe { pg_sys::RecordFreeIndexPage(index.as_ptr(), found) };
        }
        block = end;
    }
}

/// Frees the `blocks` that are still orphans now that nobody else can take pages or write a segment.
fn reclaim_pages(index: &Index, blocks: &[u32]) {
    let _merging = Merging::wait(index);
    let (_page, meta) = Meta::lock(index);
    let is_lost = |block: &u32| is_orphan(&index.read(*block), &meta);
    let orphans: Vec<u32> = blocks.iter().copied().filter(is_lost).collect();
    meta::release(index, &orphans);
}

/// Returns whether `page` is an orphan: not free, and nothing refers to it. Pages of a segment being written look like
/// orphans, so callers must check again while they keep others from writing segments.
fn is_orphan(page: &Page, meta: &Meta) -> bool {
    let number = page.number();
    let is_used = match page.kind() {
        Some(PageType::Leaf | PageType::Directory) => {
            let mut segments = meta.segments().iter();
            segments.any(|segment| segment.number == number) || meta.merge_to(number).is_some()
        }
        Some(PageType::Log | PageType::Tail) => meta.log().contains(&page.block()),
        _ => true,
    };
    !is_used && !page.is_free() && !meta.free().contains(&page.block())
}
