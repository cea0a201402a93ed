//! Builds an index: postings are collected in memory, sorted, and written as segments, which are merged into one. Pages
//! are logged at the end, all at once.

use super::matches;
use super::merge::{Merging, store, write_segment};
use super::meta::Meta;
use super::page::{Index, META_BLOCK, PageChanges, PageType};
use super::rows::{self, ROWS_PER_PAGE, RowEntry};
use super::table::TableScan;
use crate::index::classes::{RowKeys, ValueParameters};
use crate::pg::error::{OrRaise, check_interrupts, internal};
use neardup::bands::RowSize;
use neardup::postings::{MAX_ROWS, Posting, Segment, policy, sort_distinct};
use pgrx::prelude::*;
use std::ffi::{CStr, c_char};
use std::ops::Range;

/// Number of leaves written between two looks at the list of merges.
const LEAVES_AT_ONCE: usize = 1024;

/// The phases of a build, by the numbers that [`phase_name`] takes.
const SCAN: i64 = 2;
const SORT: i64 = 3;
const MERGE: i64 = 4;
const LOG: i64 = 5;

/// Reports a progress value of a build in pg_stat_progress_create_index.
fn report(number: u32, value: i64) {
    // SAFETY: writes to the backend's own entry.
    unsafe { pg_sys::pgstat_progress_update_param(number as i32, value) };
}

/// Implements `ambuildphasename`.
#[pg_guard]
pub unsafe extern "C-unwind" fn phase_name(phase: i64) -> *mut c_char {
    let name: &CStr = match phase {
        1 => c"initializing",
        2 => c"scanning table",
        3 => c"sorting and writing keys",
        4 => c"merging",
        5 => c"writing to WAL",
        _ => return std::ptr::null_mut(),
    };
    name.as_ptr().cast_mut()
}

/// Implements `ambuildempty`: writes the metapage of an index without rows to the init fork of an unlogged table's
/// index. PostgreSQL resets the index to this fork after a crash.
#[pg_guard]
pub unsafe extern "C-unwind" fn build_empty(relation: pg_sys::Relation) {
    // PostgreSQL calls this with an open index of this access method.
    let fork = pg_sys::ForkNumber::INIT_FORKNUM;
    write_meta(&Index::new(relation).unlogged(), fork);
    pg_sys::log_newpage_range(relation, fork, META_BLOCK, META_BLOCK + 1, true);
}

/// Adds the metapage of an index without rows to `fork`.
fn write_meta(index: &Index, fork: pg_sys::ForkNumber::Type) {
    let mut page = index.extend(fork);
    let mut changes = PageChanges::start(index);
    Meta::new().write(&mut changes.init(&mut page, PageType::Meta, 0));
    changes.finish();
}

/// Implements `ambuild`.
#[pg_guard]
pub unsafe extern "C-unwind" fn build(
    heap: pg_sys::Relation,
    relation: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    // PostgreSQL calls this with an open table and its new, empty index.
    let index = Index::new(relation).unlogged();
    if index.blocks() != 0 {
        internal(&format!("index \"{}\" already contains data", index.name()));
    }
    write_meta(&index, pg_sys::ForkNumber::MAIN_FORKNUM);
    let row_keys = RowKeys::of_index(relation);
    let mut build = Build::new(index);
    report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, SCAN);
    let scan = TableScan {
        table: heap,
        index: relation,
        info,
        scan: std::ptr::null_mut(),
    };
    let tuples = scan.for_each(&row_keys, &mut |tid, parameters, keys, size| {
        build.take(tid, parameters, keys, size);
    });
    let rows = build.finish();
    let result =
        pg_sys::palloc0(size_of::<pg_sys::IndexBuildResult>()).cast::<pg_sys::IndexBuildResult>();
    (*result).heap_tuples = tuples;
    (*result).index_tuples = rows as f64;
    result
}

/// An index being built.
struct Build<'a> {
    index: Index<'a>,
    /// The number of postings that fit in maintenance_work_mem.
    most_postings: usize,
    postings: Vec<u64>,
    /// The first row of `postings`.
    start: u64,
    /// The number of rows with keys since `start`.
    rows_with_keys: u64,
    /// The number of the next row.
    row: u64,
    /// Entries of the last page of the row table, which has not been written yet.
    entries: Vec<RowEntry>,
    /// The contents of a metapage. Only the parameters are used.
    meta: Meta,
}

impl<'a> Build<'a> {
    fn new(index: Index<'a>) -> Self {
        // SAFETY: reads a setting of the backend.
        let memory = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
        Self {
            index,
            most_postings: memory / size_of::<u64>(),
            postings: Vec::new(),
            start: 0,
            rows_with_keys: 0,
            row: 0,
            entries: Vec::with_capacity(ROWS_PER_PAGE as usize),
            meta: Meta::new(),
        }
    }

    /// Adds the row at `tid`. Writes a segment first if `keys` do not fit in the memory left, or if the segment would
    /// cover more than [`MAX_ROWS`] rows.
    fn take(
        &mut self,
        tid: pg_sys::ItemPointerData,
        parameters: Option<ValueParameters>,
        keys: &[u32],
        size: RowSize,
    ) {
        if let Some(parameters) = parameters {
            self.meta.add_parameters(&parameters);
        }
        let too_far = self.row - self.start >= MAX_ROWS;
        if self.postings.len() + keys.len() > self.most_postings || too_far {
            self.write_segment();
            report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, SCAN);
        }
        self.reserve(keys.len());
        let offset = (self.row - self.start) as u32;
        let postings = keys.iter().map(|&key| u64::from(Posting { key, offset }));
        self.postings.extend(postings);
        self.rows_with_keys += u64::from(!keys.is_empty());
        self.entries.push(RowEntry::new(tid, size));
        self.row += 1;
        if self.entries.len() as u64 == ROWS_PER_PAGE {
            self.write_entries();
        }
    }

    /// Doubles the capacity of `postings`, up to `most_postings`, if it does not suffice for `more` postings.
    fn reserve(&mut self, more: usize) {
        let (len, capacity) = (self.postings.len(), self.postings.capacity());
        if len + more > capacity {
            let wanted = (2 * capacity).clamp(1 << 16, self.most_postings.max(1 << 16));
            let wanted = wanted.max(len + more);
            self.postings.try_reserve_exact(wanted - len).or_raise();
        }
    }

    fn write_entries(&mut self) {
        let first = self.row - self.entries.len() as u64;
        let (mut meta_page, mut meta) = Meta::lock(&self.index);
        rows::ensure_page(&self.index, &mut meta_page, &mut meta, rows::page_of(first));
        let mut page = self.index.lock(meta.last_rows_block);
        let mut changes = PageChanges::start(&self.index);
        let mut image = changes.change(&mut page);
        for (row, entry) in (first..).zip(&self.entries) {
            rows::put(&mut image, row, entry);
        }
        changes.finish();
        self.entries.clear();
        report(pg_sys::PROGRESS_CREATEIDX_TUPLES_DONE, self.row as i64);
    }

    fn write_segment(&mut self) {
        report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, SORT);
        if !self.postings.is_empty() {
            let (rows, postings) = (self.start..self.row, &mut self.postings);
            sort_distinct(postings, &mut check_interrupts);
            let (page, mut meta, segment) =
                write_segment(&self.index, rows, self.rows_with_keys, postings);
            postings.clear();
            meta.push_segment(&self.index, segment);
            store(&self.index, page, &mut meta, &[]);
            self.merge(policy::of_build);
        }
        self.start = self.row;
        self.rows_with_keys = 0;
    }

    /// Merges the segments that `choose` returns until it returns None.
    fn merge(&self, choose: impl Fn(&[Segment]) -> Option<Range<usize>>) {
        while let Some(range) = choose(Meta::read(&self.index).segments()) {
            report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, MERGE);
            let merging = Merging::wait(&self.index);
            merging.begin_merge(range, false);
            while merging.advance(0, LEAVES_AT_ONCE, &mut |_| true).is_none() {}
        }
    }

    /// Writes the remaining rows, merges the segments, logs all pages if the index needs WAL, and returns the number of
    /// rows.
    fn finish(mut self) -> u64 {
        if !self.entries.is_empty() {
            self.write_entries();
        }
        self.write_segment();
        self.merge(|segments| policy::crowded(segments, u64::MAX));
        let (mut page, mut meta) = Meta::lock(&self.index);
        meta.log_start = self.row;
        meta.parameters = self.meta.parameters;
        meta.parameters_count = self.meta.parameters_count;
        meta.store(&self.index, &mut page);
        drop(page);
        matches::sample(&self.index);
        if self.index.needs_wal() {
            report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, LOG);
            // SAFETY: the index is open, and nobody else reads it yet.
            unsafe {
                pg_sys::log_newpage_range(
                    self.index.as_ptr(),
                    pg_sys::ForkNumber::MAIN_FORKNUM,
                    META_BLOCK,
                    self.index.blocks(),
                    true,
                );
            }
        }
        self.row
    }
}
