//! The metapage: where everything in an index begins.

use super::page::raise_corrupted;
use super::page::{Image, Index, META_BLOCK, NO_BLOCK, PAYLOAD_LEN, Page, PageChanges, PageType};
use crate::index::classes::ValueParameters;
use crate::pg::prelude::*;
use neardup::postings::policy::{MAX_MERGES, MAX_SEGMENTS};
use neardup::postings::{Segment, log};
use std::mem::offset_of;

const MAGIC: u32 = u32::from_le_bytes(*b"ndup");
const VERSION: u32 = 4;

/// Maximum number of pages on the upper level of the row table's directory: room for 10^12 row numbers.
pub const TOPS: usize = 256;

pub const MAX_LOG_PAGES: usize = 80;
pub const MAX_FREE: usize = 128;
pub const MAX_PARAMETERS: usize = 64;

/// Maximum number of pages that an allocation takes from the free space map, which may be outdated after a crash, while
/// the metapage is locked.
const MAX_TRIES: usize = 16;

/// Adjacent segments that are being replaced by one. Postings before `split` are in the output, all others in the
/// inputs.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredMerge {
    pub output: Segment,
    /// The number of the first input.
    pub first_input: u64,
    /// The first posting that is not in the output. The posting's offset counts from the output's `lo`.
    pub split: u64,
    /// The number of inputs, which are consecutive segments.
    pub inputs: u32,
    /// Not 0 if VACUUM runs the merge, without the postings of dead rows. Inserting sessions then continue it only if
    /// there are too many segments.
    pub purges: u32,
}

/// Shares of a row's keys. For each share, the index knows how many rows have at least this share.
pub const SHARES: [f64; 8] = [0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0];

/// How many rows match a row of the index, estimated from a sample of its rows.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowMatches {
    /// The end of the range of rows from which the last sample was drawn, or begun.
    pub end: u64,
    /// A [`Mean`] for each of [`SHARES`]: the bits of two f32, so that they compare as plain bytes.
    levels: [[u32; 2]; SHARES.len()],
}

/// How many rows match a row, including itself, on average.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mean {
    pub rows: f64,
    /// The share of rows that match at least one other row.
    pub any: f64,
}

impl RowMatches {
    pub fn set(&mut self, means: [Mean; SHARES.len()]) {
        self.levels = means.map(|mean| [mean.rows, mean.any].map(|n| (n as f32).to_bits()));
    }

    /// Returns how many rows have at least `share` of a row's keys, on average, or None if that has not been measured.
    pub fn at(&self, share: f64) -> Option<Mean> {
        let above = SHARES.partition_point(|known| *known < share);
        let (low, high) = (above.saturating_sub(1), above.min(SHARES.len() - 1));
        let between = (share - SHARES[low]) / (SHARES[high] - SHARES[low]);
        let between = if low == high { 0.0 } else { between };
        let [rows, any] = [0, 1].map(|number| {
            let bits = [low, high].map(|at| self.levels[at][number]);
            let [low, high] = bits.map(|bits| f64::from(f32::from_bits(bits)));
            low + (high - low) * between
        });
        let mean = Mean { rows, any };
        (mean.rows >= 1.0 && mean.rows.is_finite() && mean.any.is_finite()).then_some(mean)
    }
}

/// The contents of the metapage.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    magic: u32,
    version: u32,
    /// The number of the next segment.
    pub next_segment: u64,
    /// The place of the last page of the row table. The page's block is `last_rows_block`.
    pub last_rows_page: u64,
    pub last_rows_block: u32,
    pub log_pages: u32,
    /// The number of the first row in the log, or of the next row if the log is empty.
    pub log_start: u64,
    pub segment_count: u32,
    pub merge_count: u32,
    pub free_count: u32,
    /// The number of `parameters`, or greater than `MAX_PARAMETERS` if there were too many to keep.
    pub parameters_count: u32,
    pub matches: RowMatches,
    /// Blocks of the pages on the upper level of the row table's directory.
    pub row_tops: [u32; TOPS],
    /// Blocks of the log, oldest first. The last one is the tail.
    pub log: [u32; MAX_LOG_PAGES],
    pub segments: [Segment; MAX_SEGMENTS],
    pub merges: [StoredMerge; MAX_MERGES],
    /// Blocks that are free for reuse. Their pages still have their old contents.
    pub free: [u32; MAX_FREE],
    pub parameters: [ValueParameters; MAX_PARAMETERS],
}

const _: () = assert!(size_of::<Meta>() <= PAYLOAD_LEN);
const _: () = assert!(offset_of!(Meta, matches) == 56 && size_of::<RowMatches>() == 72);

impl Meta {
    /// Returns the metapage of an index without rows.
    pub fn new() -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            next_segment: 1,
            // SAFETY: any bytes are valid; 0 stands for no block.
            ..unsafe { std::mem::zeroed() }
        }
    }

    /// Returns the current contents of the metapage.
    pub fn read(index: &Index) -> Self {
        Self::parse(index, &index.read(META_BLOCK))
    }

    /// Returns the contents as this session last [remembered](Self::remember) them, or None if it keeps none. They tell
    /// where the next row probably goes; the pages themselves tell whether this is still true. PostgreSQL frees them
    /// when it processes an invalidation, which no access to pages does.
    pub fn recall<'i>(index: &'i Index) -> Option<&'i Self> {
        // SAFETY: the relation is open, and only `remember` writes to this memory.
        unsafe { (*index.as_ptr()).rd_amcache.cast::<Self>().as_ref() }
    }

    /// Keeps the contents for the next [`Self::recall`], so that not every insert reads the metapage.
    ///
    /// # Errors
    /// The errors of [`Self::lock`].
    pub fn remember(&self, index: &Index) {
        self.check(index);
        // SAFETY: the relation is open. The memory lives as long as its relation cache entry, and is a single chunk, as
        // PostgreSQL expects.
        unsafe {
            let (relation, size) = (&mut *index.as_ptr(), size_of::<Self>());
            if relation.rd_amcache.is_null() {
                relation.rd_amcache = pg_sys::MemoryContextAlloc(relation.rd_indexcxt, size);
            }
            relation.rd_amcache.cast::<Self>().write(*self);
        }
    }

    /// Returns the metapage, locked exclusively, and its contents.
    ///
    /// # Errors
    /// ERROR `index_corrupted` if it is damaged.
    pub fn lock<'a>(index: &Index<'a>) -> (Page<'a>, Self) {
        let page = index.lock(META_BLOCK);
        let meta = Self::parse(index, &page);
        meta.check(index);
        (page, meta)
    }

    fn parse(index: &Index, page: &Page) -> Self {
        let payload = page.payload();
        let (magic, version) = match *payload.as_chunks().0 {
            [magic, version, ..] if page.is(PageType::Meta, 0) => (magic, version),
            _ => ([0; 4], [0; 4]),
        };
        if u32::from_ne_bytes(magic) != MAGIC {
            raise_corrupted(index, Some(META_BLOCK), "it is not a metapage");
        }
        let version = u32::from_ne_bytes(version);
        if version != VERSION {
            let name = index.name();
            unsupported(
                &format!(
                    "index \"{name}\" has version {version}, this pg_neardup reads version {VERSION}"
                ),
                "Rebuild it with REINDEX INDEX.",
            );
        }
        if payload.len() != size_of::<Self>() {
            let reason = "the metapage has a different length";
            raise_corrupted(index, Some(META_BLOCK), reason);
        }
        // SAFETY: the length is the size of `Self`, for which any bytes are valid.
        let meta = unsafe { payload.as_ptr().cast::<Self>().read_unaligned() };
        let valid = meta.log_pages as usize <= MAX_LOG_PAGES
            && meta.segment_count as usize <= MAX_SEGMENTS
            && meta.merge_count as usize <= MAX_MERGES
            && meta.free_count as usize <= MAX_FREE;
        if !valid {
            raise_corrupted(index, Some(META_BLOCK), "the metapage is out of range");
        }
        meta
    }

    /// Checks that no block is listed twice or is the metapage's own: a session that writes could wait for ever for a
    /// page that it has locked itself. Of segments, only the outputs of merges are written while other pages are locked.
    /// Checks that no two segments have the same number, by which a merge finds them, and that none has a future one.
    ///
    /// # Errors
    /// ERROR `index_corrupted`.
    pub fn check(&self, index: &Index) {
        let damaged = |reason| raise_corrupted(index, Some(META_BLOCK), reason);
        let outputs = self.merges().iter().map(|merge| &merge.output);
        let all = self.segments().iter().chain(outputs.clone());
        let roots = outputs.filter_map(|output| (output.postings > 0).then_some(output.root));
        let rows = self.row_tops.iter().chain([&self.last_rows_block]);
        let used = rows.filter(|block| **block != NO_BLOCK).chain(self.log());
        let mut blocks: Vec<u32> = used.chain(self.free()).copied().chain(roots).collect();
        blocks.sort_unstable();
        if blocks.first() == Some(&META_BLOCK) || !blocks.is_sorted_by(|a, b| a < b) {
            damaged("the metapage lists a block twice");
        }
        let mut numbers: Vec<u64> = all.map(|segment| segment.number).collect();
        numbers.sort_unstable();
        if numbers.last() >= Some(&self.next_segment) || !numbers.is_sorted_by(|a, b| a < b) {
            damaged("segments of the same number");
        }
    }

    /// Writes the contents into `image`, as part of a change.
    pub fn write(&self, image: &mut Image) {
        // SAFETY: plain numbers without padding between them, read as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Self>())
        };
        image.put(0, bytes);
    }

    /// Writes the contents into `page`, the metapage, and logs this as a change of its own.
    pub fn store(&self, index: &Index, page: &mut Page) {
        let mut changes = PageChanges::start(index);
        self.write(&mut changes.change(page));
        changes.finish();
    }

    /// Returns the blocks of the log, oldest first.
    pub fn log(&self) -> &[u32] {
        &self.log[..self.log_pages as usize]
    }

    /// Returns the block of the log page that takes new rows, or None if the log has no pages.
    pub fn tail(&self) -> Option<u32> {
        self.log().last().copied()
    }

    /// Returns the segments, in the order of their rows.
    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.segment_count as usize]
    }

    pub fn merges(&self) -> &[StoredMerge] {
        &self.merges[..self.merge_count as usize]
    }

    pub fn free(&self) -> &[u32] {
        &self.free[..self.free_count as usize]
    }

    /// Returns the mean number of keys of rows that have any, or a typical number if there are no segments.
    pub fn keys_per_row(&self) -> f64 {
        let sum = |of: fn(&Segment) -> u64| self.segments().iter().map(of).sum::<u64>();
        match sum(|segment| segment.rows) {
            0 => 30.0,
            rows => sum(|segment| segment.postings) as f64 / rows as f64,
        }
    }

    /// Returns the approximate number of rows in the log.
    pub fn rows_in_log(&self) -> f64 {
        let row_len = log::row_len(self.keys_per_row() as usize);
        (f64::from(self.log_pages) - 0.5).max(0.0) * (PAYLOAD_LEN / row_len.max(1)) as f64
    }

    /// Appends a block to the log.
    pub fn push_log(&mut self, block: u32) {
        self.log[self.log_pages as usize] = block;
        self.log_pages += 1;
    }

    /// Removes the oldest `count` pages from the log, which now begins with row `start`.
    pub fn shift_log(&mut self, count: usize, start: u64) {
        self.log.copy_within(count.., 0);
        self.log_pages -= count as u32;
        self.log_start = start;
    }

    /// Returns a new segment, without postings, for the rows `lo..hi`. `rows` is the number of rows with keys.
    pub fn new_segment(&mut self, lo: u64, hi: u64, rows: u64) -> Segment {
        self.next_segment += 1;
        Segment {
            number: self.next_segment - 1,
            lo,
            hi,
            rows,
            ..Segment::default()
        }
    }

    pub fn push_segment(&mut self, index: &Index, segment: Segment) {
        if self.segments().len() == MAX_SEGMENTS {
            raise_full(index);
        }
        self.segments[self.segment_count as usize] = segment;
        self.segment_count += 1;
    }

    /// Returns the place of the merge whose output has this `number`, or None if there is none.
    pub fn merge_to(&self, number: u64) -> Option<usize> {
        let mut merges = self.merges().iter();
        merges.position(|merge| merge.output.number == number)
    }

    /// Returns the places of the inputs of a merge among the segments.
    ///
    /// # Errors
    /// ERROR `index_corrupted` if the inputs are not among the segments.
    pub fn inputs(&self, index: &Index, merge: &StoredMerge) -> std::ops::Range<usize> {
        let is_first = |segment: &Segment| segment.number == merge.first_input;
        let first = self.segments().iter().position(is_first);
        let range = first.map(|first| first..first.saturating_add(merge.inputs as usize));
        let range = range.filter(|range| range.end <= self.segments().len());
        range.unwrap_or_else(|| {
            let reason = "a merge of segments that do not exist";
            raise_corrupted(index, Some(META_BLOCK), reason)
        })
    }

    /// Keeps `blocks` for reuse. Returns the blocks for which there is no room.
    pub fn push_free(&mut self, blocks: &[u32]) -> Vec<u32> {
        let room = MAX_FREE - self.free_count as usize;
        let (kept, rest) = blocks.split_at(blocks.len().min(room));
        for &block in kept {
            self.free[self.free_count as usize] = block;
            self.free_count += 1;
        }
        rest.to_vec()
    }

    /// Returns a page for a new use, locked exclusively: a free one, or one added at the end of the file. The caller
    /// must have locked the metapage, so that nobody else takes the same page. Waits for no page: a damaged list or map
    /// may name one that is locked here.
    ///
    /// # Errors
    /// ERROR `index_corrupted` if the list of free pages has a page of the row table.
    pub fn allocate<'a>(&mut self, index: &Index<'a>) -> Page<'a> {
        if let Some(&block) = self.free().last()
            && let Some(page) = index.try_lock(block)
        {
            use PageType::{Directory, Free, Leaf, Log, Tail};
            if !matches!(page.kind(), Some(Directory | Free | Leaf | Log | Tail)) {
                raise_corrupted(index, Some(block), "a page in use is listed as free");
            }
            self.free_count -= 1;
            return page;
        }
        for _ in 0..MAX_TRIES {
            // SAFETY: the relation is open.
            let block = unsafe { pg_sys::GetFreeIndexPage(index.as_ptr()) };
            if block == pg_sys::InvalidBlockNumber {
                break;
            }
            if block < index.blocks()
                && let Some(page) = index.try_lock(block)
                && page.is_free()
            {
                return page;
            }
        }
        index.extend(pg_sys::ForkNumber::MAIN_FORKNUM)
    }

    /// Records the parameters of a value. Returns whether this changed `self`: false if they are known, or too many
    /// are.
    pub fn add_parameters(&mut self, parameters: &ValueParameters) -> bool {
        let count = self.parameters_count as usize;
        if count > MAX_PARAMETERS || self.parameters[..count].contains(parameters) {
            return false;
        }
        if let Some(place) = self.parameters.get_mut(count) {
            *place = *parameters;
        }
        self.parameters_count += 1;
        true
    }

    /// Returns whether `parameters` are recorded, or there are too many to record any more.
    pub fn knows(&self, parameters: &ValueParameters) -> bool {
        self.parameters()
            .is_none_or(|known| known.contains(parameters))
    }

    /// Returns the parameters of the indexed values, or None if there were too many to record.
    pub fn parameters(&self) -> Option<&[ValueParameters]> {
        self.parameters.get(..self.parameters_count as usize)
    }
}

/// Ends the statement because an index is full. Either the index has the maximum number of segments, and their row
/// numbers are too far apart to merge them, after about 10^11 inserts; or its row table is full, after about 10^12
/// inserts.
pub fn raise_full(index: &Index) -> ! {
    too_large(
        &format!("index \"{}\" has no more row numbers", index.name()),
        "Rebuild it with REINDEX INDEX CONCURRENTLY.",
    )
}

/// Marks pages that nothing refers to as free, and records them in the free space map. VACUUM frees those that are left
/// if this is canceled.
pub fn release(index: &Index, blocks: &[u32]) {
    for &block in blocks {
        check_interrupts();
        let mut page = index.lock(block);
        let mut changes = PageChanges::start(index);
        changes.init(&mut page, PageType::Free, 0);
        changes.finish();
        drop(page);
        // SAFETY: the relation is open.
        unsafe { pg_sys::RecordFreeIndexPage(index.as_ptr(), block) };
    }
    if let (Some(&first), Some(&last)) = (blocks.iter().min(), blocks.iter().max()) {
        // SAFETY: as above.
        unsafe { pg_sys::FreeSpaceMapVacuumRange(index.as_ptr(), first, last + 1) };
    }
}

/// Releases the blocks that the metapage keeps for reuse.
pub fn release_kept(index: &Index) {
    let (mut page, mut meta) = Meta::lock(index);
    let kept = meta.free().to_vec();
    if !kept.is_empty() {
        meta.free_count = 0;
        meta.store(index, &mut page);
        release(index, &kept);
    }
}
