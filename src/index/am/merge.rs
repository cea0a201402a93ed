//! Merging: the log becomes a segment, and adjacent segments become one. Merges run in bounded steps, each logged as a
//! whole, and can stop after any step: the metapage records how far they have come.
//!
//! Merging requires a lock, the heavyweight lock of the metapage; nobody else changes segments. An inserting session
//! does not wait for the lock to begin, unless the log is full or its row is large. The lock is released after every
//! [`LEAVES_AT_ONCE`] leaves.

use super::hold;
use super::log;
use super::matches;
use super::meta::{self, MAX_LOG_PAGES, Meta, StoredMerge};
use super::page::{Index, META_BLOCK, PAYLOAD_LEN, Page, PageChanges, PageType};
use super::segment::SearchPages;
use super::stop::Stop;
use crate::pg::prelude::*;
use crate::pg::settings::Settings;
use neardup::postings::directory::{self, Directories, DirectoryEntry};
use neardup::postings::policy::{
    self, FLUSHED_PAGES, LEAVES_AT_ONCE, LEAVES_PER_PAGE, MANY_SEGMENTS, MAX_MERGES, MAX_SEGMENTS,
    MOST_WITHOUT_VACUUM, SEGMENTS_WITH_ROW,
};
use neardup::postings::{self, Damaged, Directory, Leaf, LeafBuilder, Posting, Segment};

/// The right to change segments, until it is dropped or the transaction ends.
pub struct Merging<'a> {
    index: Index<'a>,
}

impl<'a> Merging<'a> {
    const MODE: i32 = pg_sys::ExclusiveLock as i32;

    /// Returns the right, or None if another session has it.
    pub fn attempt(index: &Index<'a>) -> Option<Self> {
        // SAFETY: the relation is open.
        let locked = unsafe { pg_sys::ConditionalLockPage(index.as_ptr(), META_BLOCK, Self::MODE) };
        locked.then(|| Self { index: *index })
    }

    /// Waits for the right, and returns it. Ignores `lock_timeout`, which is for locks that others hold until their
    /// transactions end: this one is held for a few leaves, or while segments of the log and of a large row are written.
    pub fn wait(index: &Index<'a>) -> Self {
        Self::attempt(index).unwrap_or_else(|| {
            let settings = Settings::begin();
            settings.set(c"lock_timeout", c"0");
            // SAFETY: the relation is open.
            unsafe { pg_sys::LockPage(index.as_ptr(), META_BLOCK, Self::MODE) };
            settings.take_back();
            Self { index: *index }
        })
    }
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the lock was taken for this value.
            unsafe { pg_sys::UnlockPage(self.index.as_ptr(), META_BLOCK, Self::MODE) };
        }
    }
}

/// Does the share of merging that is due for one filled page of the log, unless another session is merging.
pub fn help(index: &Index) {
    if let Some(merging) = Merging::attempt(index) {
        merging.share(1);
        if matches::claim(index) {
            matches::sample(index);
        }
    }
}

/// Makes room in a full log. If others have made room in the meantime, leaves merging to the sessions that fill pages,
/// unless merging is behind: each share of merging prolongs the wait of all sessions that wait for room.
pub fn wait_for_room(index: &Index) {
    let merging = Merging::wait(index);
    let meta = Meta::read(index);
    if meta.log().len() == MAX_LOG_PAGES || meta.segments().len() > MANY_SEGMENTS {
        merging.share(1);
    }
}

impl Merging<'_> {
    /// Does the share of merging that is due for `pages` filled pages of the log. Releases the right after every
    /// [`LEAVES_AT_ONCE`] leaves, for sessions that wait for it.
    pub fn share(self, pages: usize) {
        let index = self.index;
        self.flush(FLUSHED_PAGES);
        self.begin();
        let meta = Meta::read(&index);
        let has_room = meta.segments().len() + SEGMENTS_WITH_ROW <= MAX_SEGMENTS;
        if !has_room && meta.merges().is_empty() {
            meta::raise_full(&index);
        }
        drop(self);
        let mut leaves = LEAVES_PER_PAGE * pages * meta.merges().len();
        while leaves > 0 {
            let merging = Self::wait(&index);
            // The merge closest to its end comes first, because it removes segments with the least work.
            let Some(place) = nearest(&index, &Meta::read(&index)) else {
                return;
            };
            let at_once = leaves.min(LEAVES_AT_ONCE);
            let left = merging.advance(place, at_once, &mut |_| true);
            leaves -= at_once - left.unwrap_or(0);
        }
    }

    /// Turns the full pages of the log into a segment if there are at least `pages`, and fewer than [`MAX_SEGMENTS`]
    /// segments.
    pub fn flush(&self, pages: usize) {
        let index = &self.index;
        let mut meta = Meta::read(index);
        let full = meta.log().len().saturating_sub(1);
        if full < pages.max(1) || meta.segments().len() == MAX_SEGMENTS {
            return;
        }
        meta.log_pages = full as u32;
        let mut postings = Vec::new();
        let mut end = meta.log_start;
        let mut rows = 0;
        let read = log::for_each_page(index, &meta, |start, log| {
            end = start + u64::from(log.rows);
            let first = (start - meta.log_start) as u32;
            rows += log::add_postings(&log, first, &mut postings)?;
            Ok(())
        });
        // Nobody else removes pages of the log.
        read.unwrap_or_else(|stop| stop.raise(index));
        hold::point("flush_reads_log");
        let lo = meta.log_start;
        postings::sort_distinct(&mut postings, &mut check_interrupts);
        let (page, mut meta, segment) = write_segment(index, lo..end, rows, &postings);
        let freed = meta.log[..full].to_vec();
        meta.shift_log(full, end);
        if segment.postings > 0 {
            meta.push_segment(index, segment);
        }
        store(index, page, &mut meta, &freed);
    }

    /// Begins the merges that are due.
    pub fn begin(&self) {
        loop {
            let meta = Meta::read(&self.index);
            let Some(range) = due(&self.index, &meta) else {
                return;
            };
            hold::point("merge_is_due");
            self.begin_merge(range, false);
        }
    }

    /// Begins to merge the adjacent segments `range`, which are in no other merge. Inserting sessions leave a merge
    /// that `purges` to VACUUM. Such a merge may have a single input.
    pub fn begin_merge(&self, range: std::ops::Range<usize>, purges: bool) {
        let (mut page, mut meta) = Meta::lock(&self.index);
        let inputs = &meta.segments[range.clone()];
        let (lo, hi) = (inputs[0].lo, inputs[range.len() - 1].hi);
        let rows = inputs.iter().map(|input| input.rows).sum();
        meta.merges[meta.merge_count as usize] = StoredMerge {
            first_input: inputs[0].number,
            output: meta.new_segment(lo, hi, rows),
            inputs: range.len() as u32,
            purges: purges.into(),
            ..StoredMerge::default()
        };
        meta.merge_count += 1;
        meta.store(&self.index, &mut page);
    }

    /// Marks the merge to segment `output`, if there is one, as VACUUM's, so that inserting sessions leave it to
    /// VACUUM. Sets the row count of the output: only the postings of the `live` remaining rows will be added to it.
    pub fn take_over(&self, output: u64, live: u64) {
        let (mut page, mut meta) = Meta::lock(&self.index);
        let Some(place) = meta.merge_to(output) else {
            return;
        };
        let postings = postings_of_inputs(&self.index, &meta, &meta.merges[place]);
        let merge = &mut meta.merges[place];
        let dead = merge.output.rows.saturating_sub(live) as f64;
        let written = merge.output.postings as f64 / postings.max(1) as f64;
        merge.output.rows = live + (dead * written.min(1.0)) as u64;
        merge.purges = 1;
        meta.store(&self.index, &mut page);
    }

    /// Writes up to `leaves` leaves of the merge at `place`, without the postings of rows that `keep` rejects. If this
    /// completes the merge, returns how many of the leaves were not needed, otherwise None.
    pub fn advance(
        &self,
        place: usize,
        leaves: usize,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Option<usize> {
        self.try_advance(place, leaves, keep)
            // Nobody else frees pages of segments.
            .unwrap_or_else(|stop| stop.raise(&self.index))
    }

    fn try_advance(
        &self,
        place: usize,
        leaves: usize,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<usize>, Stop> {
        let index = &self.index;
        let meta = Meta::read(index);
        let mut state = meta.merges[place];
        let range = meta.inputs(index, &state);
        let inputs = &meta.segments[range.clone()];
        let mut pages = SearchPages::new(*index, &meta);
        let mut merge = postings::Merge::new(inputs, state.output.lo, state.split.into())?;
        let mut leaf = LeafBuilder::new(PAYLOAD_LEN)?;
        for left in (0..leaves).rev() {
            check_interrupts();
            let next = merge.fill(&mut pages, &mut leaf, keep)?;
            let mut freed = Vec::new();
            for input in inputs {
                let shift = input.lo - state.output.lo;
                let from = postings::split_of_input(Posting::from(state.split), shift);
                let to = next.map(|next| postings::split_of_input(next, shift));
                postings::passed(&mut pages, input, from, to, &mut |block| freed.push(block))?;
            }
            hold::point("merge_fills_leaf");
            let (mut page, mut meta) = Meta::lock(index);
            if let Some(next) = next {
                state.split = next.into();
            }
            let (done, is_empty) = (next.is_none(), leaf.is_empty());
            let (mut output, mut rest) = (state.output, Vec::new());
            let mut change = |meta: &mut Meta, output: &Segment| {
                meta.merges[place] = StoredMerge {
                    output: *output,
                    ..state
                };
                if done {
                    finish_merge(meta, place, range.clone(), output);
                }
                rest = meta.push_free(&freed);
            };
            if is_empty {
                change(&mut meta, &output);
                meta.store(index, &mut page);
            } else {
                add_leaf(index, &mut page, &mut meta, &mut output, &mut leaf, change);
            }
            state.output = output;
            drop(page);
            meta::release(index, &rest);
            if done {
                return Ok(Some(left + usize::from(is_empty)));
            }
        }
        Ok(None)
    }
}

/// Returns the place of the merge with the fewest postings left, among the merges that inserting sessions continue, or
/// None without such merges. VACUUM's merges count, in case it has been canceled, only if the number of segments could
/// otherwise block inserts before the next VACUUM.
fn nearest(index: &Index, meta: &Meta) -> Option<usize> {
    let left = |merge: &StoredMerge| {
        postings_of_inputs(index, meta, merge).saturating_sub(merge.output.postings)
    };
    let merges = meta.merges().iter().enumerate();
    let is_crowded = meta.segments().len() > MOST_WITHOUT_VACUUM;
    let ours = merges.filter(|(_, merge)| merge.purges == 0 || is_crowded);
    ours.min_by_key(|(_, merge)| left(merge))
        .map(|(place, _)| place)
}

fn postings_of_inputs(index: &Index, meta: &Meta, merge: &StoredMerge) -> u64 {
    let inputs = &meta.segments[meta.inputs(index, merge)];
    inputs.iter().map(|input| input.postings).sum()
}

/// Replaces the inputs of the finished merge at `place` with its output, or removes them if the output has no postings.
fn finish_merge(meta: &mut Meta, place: usize, inputs: std::ops::Range<usize>, output: &Segment) {
    let kept = usize::from(output.postings > 0);
    if kept == 1 {
        meta.segments[inputs.start] = *output;
    }
    let (from, to) = (inputs.end, inputs.start + kept);
    let count = meta.segment_count as usize;
    meta.segments.copy_within(from..count, to);
    meta.segment_count -= (from - to) as u32;
    let count = meta.merge_count as usize;
    meta.merges.copy_within(place + 1..count, place);
    meta.merge_count -= 1;
}

/// Returns the adjacent segments to merge next, or None if no merge is due, or no more can begin.
fn due(index: &Index, meta: &Meta) -> Option<std::ops::Range<usize>> {
    if meta.merges().len() == MAX_MERGES {
        return None;
    }
    let segments = meta.segments();
    let mut free = vec![true; segments.len()];
    for merge in meta.merges() {
        free[meta.inputs(index, merge)].fill(false);
    }
    let mut start = 0;
    for run in free.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        if run[0]
            && let Some(range) = policy::due(&segments[start..end])
        {
            return Some(start + range.start..start + range.end);
        }
        start = end;
    }
    None
}

/// Adds `freed` to the list of free pages and writes the metapage. Releases the pages that do not fit in the list.
pub fn store(index: &Index, mut page: Page, meta: &mut Meta, freed: &[u32]) {
    let rest = meta.push_free(freed);
    meta.store(index, &mut page);
    drop(page);
    meta::release(index, &rest);
}

/// Writes the sorted postings of `rows` as a segment that nothing refers to yet. `with_keys` is the number of rows that
/// have keys. Returns the metapage, locked so that the caller can add the segment, and the segment.
pub fn write_segment<'a>(
    index: &Index<'a>,
    rows: std::ops::Range<u64>,
    with_keys: u64,
    postings: &[u64],
) -> (Page<'a>, Meta, Segment) {
    let (mut page, mut meta) = Meta::lock(index);
    let mut segment = meta.new_segment(rows.start, rows.end, with_keys);
    meta.store(index, &mut page);
    drop(page);
    for_each_leaf(postings, |leaf| {
        check_interrupts();
        let (mut page, mut meta) = Meta::lock(index);
        add_leaf(index, &mut page, &mut meta, &mut segment, leaf, |_, _| {});
    });
    let (page, meta) = Meta::lock(index);
    (page, meta, segment)
}

/// Calls `write` with the leaves of `postings`, which are sorted.
pub fn for_each_leaf(postings: &[u64], mut write: impl FnMut(&mut LeafBuilder)) {
    let mut leaf = LeafBuilder::new(PAYLOAD_LEN).or_raise();
    for &posting in postings {
        if !leaf.push(posting.into()) {
            write(&mut leaf);
            leaf.push(posting.into());
        }
    }
    if !leaf.is_empty() {
        write(&mut leaf);
    }
}

/// Appends `leaf` to `segment`. Logs it in one record with the changes to `meta`, including those that `change` makes.
/// `meta_page` is locked.
pub(super) fn add_leaf(
    index: &Index,
    meta_page: &mut Page,
    meta: &mut Meta,
    segment: &mut Segment,
    leaf: &mut LeafBuilder,
    change: impl FnOnce(&mut Meta, &Segment),
) {
    let first = leaf.first().expect("the leaf is not empty");
    let postings = leaf.len() as u64;
    let mut page = meta.allocate(index);
    let block = page.block();
    let entry = DirectoryEntry { first, block };
    let mut tree = SegmentTree {
        index,
        meta,
        number: segment.number,
        locked: [META_BLOCK, block],
        appended: None,
        created: 0,
    };
    directory::add_leaf(&mut tree, segment, entry).unwrap_or_else(|stop| stop.raise(index));
    let (mut appended, created) = (tree.appended, tree.created);
    segment.postings += postings;
    segment.leaves += 1;
    segment.directory_pages += created;
    change(meta, segment);
    let mut changes = PageChanges::start(index);
    let mut image = changes.init(&mut page, PageType::Leaf, segment.number);
    let used = leaf.finish(image.payload());
    image.set_used(used);
    if let Some((page, entry)) = &mut appended {
        let block = page.block();
        let mut image = changes.change(page);
        let appended = directory::append(image.payload(), *entry);
        image.set_used(index.used(block, appended));
    }
    meta.write(&mut changes.change(meta_page));
    changes.finish();
}

/// The directory of a segment being written. New pages are written at once, because nothing refers to them yet. The one
/// page that is appended to is kept for the leaf's record.
struct SegmentTree<'t, 'a> {
    index: &'t Index<'a>,
    meta: &'t mut Meta,
    number: u64,
    /// Blocks that are locked, for which a damaged page must not make this session wait.
    locked: [u32; 2],
    appended: Option<(Page<'a>, DirectoryEntry)>,
    created: u32,
}

impl<'a> SegmentTree<'_, 'a> {
    /// Returns the page of the segment at `block`, locked by `lock`.
    fn page(
        &self,
        kind: PageType,
        block: u32,
        lock: fn(&Index<'a>, u32) -> Page<'a>,
    ) -> Result<Page<'a>, Stop> {
        let page = (!self.locked.contains(&block)).then(|| lock(self.index, block));
        let page = page.filter(|page| page.is(kind, self.number));
        page.ok_or(Stop::Restart(block))
    }

    fn read<R>(
        &self,
        kind: PageType,
        block: u32,
        look: impl FnOnce(&[u8]) -> Result<Option<R>, Damaged>,
    ) -> Result<R, Stop> {
        let page = self.page(kind, block, Index::read)?;
        const EMPTY: Damaged = Damaged("directory page without entries");
        let found = look(page.payload()).and_then(|found| found.ok_or(EMPTY));
        found.map_err(Stop::at(block))
    }
}

impl Directories for SegmentTree<'_, '_> {
    type Error = Stop;

    fn first(&mut self, level: u8, block: u32) -> Result<Posting, Stop> {
        if level == 0 {
            let first = |payload: &[u8]| Ok(Some(Leaf::parse(payload)?.first()));
            return self.read(PageType::Leaf, block, first);
        }
        self.read(PageType::Directory, block, |payload| {
            Ok(Directory::parse(payload)?.get(0).map(|entry| entry.first))
        })
    }

    fn last(&mut self, _level: u8, block: u32) -> Result<u32, Stop> {
        self.read(PageType::Directory, block, |payload| {
            Ok(Directory::parse(payload)?.last().map(|entry| entry.block))
        })
    }

    fn append(&mut self, _level: u8, block: u32, entry: DirectoryEntry) -> Result<bool, Stop> {
        let page = self.page(PageType::Directory, block, Index::lock)?;
        let directory = Directory::parse(page.payload()).map_err(Stop::at(block))?;
        if !directory::has_room(directory.children(), PAYLOAD_LEN) {
            return Ok(false);
        }
        self.appended = Some((page, entry));
        Ok(true)
    }

    fn create(&mut self, level: u8, entries: &[DirectoryEntry]) -> Result<u32, Stop> {
        let mut page = self.meta.allocate(self.index);
        let block = page.block();
        let mut changes = PageChanges::start(self.index);
        let mut image = changes.init(&mut page, PageType::Directory, self.number);
        let used = directory::init(image.payload(), level);
        image.set_used(used);
        for &entry in entries {
            let appended = directory::append(image.payload(), entry);
            image.set_used(self.index.used(block, appended));
        }
        changes.finish();
        self.created += 1;
        Ok(block)
    }
}
