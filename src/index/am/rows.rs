//! The row table: for every row of the index, in the order of insertion, where it lies in the heap
//! and how many keys it has.
//!
//! Row numbers only grow. A row whose place is blank is dead, and stays so. Pages of the table are
//! found through a directory of two levels, whose highest pages the metapage knows.

use super::hold;
use super::meta::{Meta, TOPS};
use super::page::{
    Image, Index, NO_BLOCK, PAYLOAD_LEN, Page, PageChanges, PageType, raise_corrupted,
};
use super::segment::Stop;
use crate::pg::error::check_interrupts;
use pgrx::pg_sys;

const ENTRY_LEN: usize = 8;
const TID_LEN: usize = 6;

/// Rows on one page.
pub const ROWS_PER_PAGE: u64 = (PAYLOAD_LEN / ENTRY_LEN) as u64;

/// Blocks on one page of the directory.
const FANOUT: u64 = (PAYLOAD_LEN / size_of::<u32>()) as u64;

/// Returns the place of a row's page in the table.
pub fn page_of(row: u64) -> u64 {
    row / ROWS_PER_PAGE
}

/// Returns the place of a row in the heap as a number, in the same order.
pub fn number_of(tid: &pg_sys::ItemPointerData) -> u64 {
    u64::from(tid.ip_blkid.bi_hi) << 32
        | u64::from(tid.ip_blkid.bi_lo) << 16
        | u64::from(tid.ip_posid)
}

/// Returns the place that [`number_of`] made a number of.
pub fn tid_of(number: u64) -> pg_sys::ItemPointerData {
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData {
            bi_hi: (number >> 32) as u16,
            bi_lo: (number >> 16) as u16,
        },
        ip_posid: number as u16,
    }
}

/// Returns the block of the table that a row is in.
pub fn block_of(tid: &pg_sys::ItemPointerData) -> u32 {
    u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo)
}

fn place_of(row: u64) -> usize {
    (row % ROWS_PER_PAGE) as usize
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct RowEntry {
    pub tid: pg_sys::ItemPointerData,
    /// The number of keys, at most `u16::MAX`.
    pub keys: u16,
}

impl RowEntry {
    /// Returns the entry of a row of `keys` keys at a place of the heap.
    pub fn new(tid: pg_sys::ItemPointerData, keys: usize) -> Self {
        let keys = u16::try_from(keys).unwrap_or(u16::MAX);
        Self { tid, keys }
    }

    fn read(bytes: &[u8; ENTRY_LEN]) -> Self {
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            tid: pg_sys::ItemPointerData {
                ip_blkid: pg_sys::BlockIdData {
                    bi_hi: half(0),
                    bi_lo: half(2),
                },
                ip_posid: half(4),
            },
            keys: half(TID_LEN),
        }
    }

    fn write(&self) -> [u8; ENTRY_LEN] {
        let mut bytes = [0; ENTRY_LEN];
        let halves = [
            self.tid.ip_blkid.bi_hi,
            self.tid.ip_blkid.bi_lo,
            self.tid.ip_posid,
            self.keys,
        ];
        for (place, half) in bytes.chunks_exact_mut(2).zip(halves) {
            place.copy_from_slice(&half.to_ne_bytes());
        }
        bytes
    }

    /// Returns the entry of a row that is dead.
    pub fn blank(self) -> Self {
        Self {
            tid: pg_sys::ItemPointerData::default(),
            ..self
        }
    }

    pub fn is_blank(&self) -> bool {
        self.tid.ip_posid == pg_sys::InvalidOffsetNumber
    }
}

/// Returns the entries of a page of the table; an entry that was never written is blank.
pub fn entries(payload: &[u8]) -> impl ExactSizeIterator<Item = RowEntry> {
    payload.as_chunks().0.iter().map(RowEntry::read)
}

/// Returns the entry of a row on the page that it is on; None if it is blank.
pub fn live_entry(page: &Page, row: u64) -> Option<RowEntry> {
    let (all, _) = page.payload().as_chunks();
    all.get(place_of(row))
        .map(RowEntry::read)
        .filter(|entry| !entry.is_blank())
}

/// Writes a row's entry into the image of its page.
pub fn put(image: &mut Image, row: u64, entry: &RowEntry) {
    let start = place_of(row) * ENTRY_LEN;
    image.payload()[start..start + ENTRY_LEN].copy_from_slice(&entry.write());
    let used = image.used().max(start + ENTRY_LEN);
    image.set_used(used);
}

/// Reads the row table. Blocks of the directory are remembered; a page that has been moved is looked up
/// anew.
pub struct RowTable<'a> {
    index: Index<'a>,
    tops: [u32; TOPS],
    /// A page of the directory: its place, its block, the blocks on it.
    directory: Option<(u64, u32, Vec<u32>)>,
    /// The table's length, as far as it had to be known.
    table_blocks: u32,
}

impl<'a> RowTable<'a> {
    pub fn new(index: Index<'a>, meta: &Meta) -> Self {
        Self {
            index,
            tops: meta.row_tops,
            directory: None,
            table_blocks: pg_sys::RELSEG_SIZE,
        }
    }

    /// Raises `index_corrupted` for a place beyond the table. Within the table's first file, whose end
    /// is not looked up, PostgreSQL reports a block that cannot be read.
    pub fn ensure_in_table(&mut self, tid: &pg_sys::ItemPointerData) {
        let block = block_of(tid);
        if block < self.table_blocks {
            return;
        }
        self.table_blocks = self.index.table_blocks();
        if block >= self.table_blocks {
            raise_corrupted(&self.index, None, "a row refers to no block of the table");
        }
    }

    /// Finds the block of a page of the table, and that of the directory page that says so.
    fn find(&mut self, page: u64) -> PagePlace {
        let place = page / FANOUT;
        if self
            .directory
            .as_ref()
            .is_none_or(|(known, ..)| *known != place)
        {
            let top = self.tops[(place / FANOUT) as usize % TOPS];
            let block = match self.block_on(top, PageType::RowsTop, place / FANOUT, place % FANOUT)
            {
                PagePlace::At { block, .. } => block,
                other => return other,
            };
            let Some(blocks) = self.blocks(block, PageType::RowsDirectory, place) else {
                return PagePlace::Moved(block);
            };
            self.directory = Some((place, block, blocks));
        }
        match &self.directory {
            Some((_, directory, blocks)) => PagePlace::of(*directory, blocks, page % FANOUT),
            None => PagePlace::Nowhere,
        }
    }

    fn block_on(&self, parent: u32, kind: PageType, number: u64, place: u64) -> PagePlace {
        if parent == NO_BLOCK {
            return PagePlace::Nowhere;
        }
        match self.blocks(parent, kind, number) {
            Some(blocks) => PagePlace::of(parent, &blocks, place),
            None => PagePlace::Moved(parent),
        }
    }

    fn blocks(&self, block: u32, kind: PageType, number: u64) -> Option<Vec<u32>> {
        let page = self.index.read(block);
        page.is(kind, number).then(|| {
            let (blocks, _) = page.payload().as_chunks();
            blocks
                .iter()
                .map(|block| u32::from_ne_bytes(*block))
                .collect()
        })
    }

    /// Returns the places of the pages that the table has at this moment.
    pub fn places(&self, meta: &Meta) -> std::ops::Range<u64> {
        let has_pages = meta.last_rows_block != NO_BLOCK;
        0..meta.last_rows_page + u64::from(has_pages)
    }

    /// Returns the number of pages of the table and of its directory.
    pub fn count_pages(&mut self, meta: &Meta) -> u32 {
        let places = self.places(meta);
        let is_there = |place: &u64| {
            check_interrupts();
            matches!(self.find(*place), PagePlace::At { .. })
        };
        let pages = places.clone().filter(is_there).count() as u64;
        let directories = places.end.div_ceil(FANOUT);
        let all = pages + directories + directories.div_ceil(FANOUT);
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// Asks the storage for the pages of the table at some places.
    pub fn ask_ahead(&mut self, places: impl Iterator<Item = u64>) {
        let index = self.index;
        index.ask_ahead(places.filter_map(|place| match self.find(place) {
            PagePlace::At { block, .. } => Some(block),
            _ => None,
        }));
    }

    /// Returns the page of the table at a place, locked for reading; None if all its rows are dead.
    pub fn page(&mut self, place: u64) -> Option<Page<'a>> {
        self.page_at(place, Index::read)
    }

    /// Reads the rows of the table's page at a place that are not blank, and their entries, into `live`;
    /// false if the page is gone, all its rows being dead.
    pub fn read_page(&mut self, place: u64, live: &mut Vec<(u64, RowEntry)>) -> bool {
        live.clear();
        let Some(page) = self.page(place) else {
            return false;
        };
        let rows = (place * ROWS_PER_PAGE..).zip(entries(page.payload()));
        live.extend(rows.filter(|(_, entry)| !entry.is_blank()));
        true
    }

    /// Returns the entry of a row; None if it is blank.
    pub fn live_entry(&mut self, row: u64) -> Option<RowEntry> {
        live_entry(&self.page(page_of(row))?, row)
    }

    /// Returns the page as [`Self::page`] does, locked for a change.
    pub fn lock_page(&mut self, place: u64) -> Option<Page<'a>> {
        self.page_at(place, Index::lock)
    }

    /// Looks anew where a page is not where it was: VACUUM may have moved it towards the front, or removed
    /// it, in one record with the page that leads to it.
    fn page_at(&mut self, place: u64, lock: fn(&Index<'a>, u32) -> Page<'a>) -> Option<Page<'a>> {
        let mut before = None;
        loop {
            let block = match self.find(place) {
                PagePlace::Nowhere => return None,
                PagePlace::At { block, .. } => {
                    hold::point("row_table_finds_page");
                    let page = lock(&self.index, block);
                    if page.is(PageType::Rows, place) {
                        return Some(page);
                    }
                    block
                }
                PagePlace::Moved(block) => block,
            };
            if before == Some(block) {
                Stop::Restart(block).raise(&self.index);
            }
            check_interrupts();
            self.tops = Meta::read(&self.index).row_tops;
            self.directory = None;
            before = Some(block);
        }
    }
}

/// Where a page of the table is.
enum PagePlace {
    /// There is none, or none any more.
    Nowhere,
    /// In a block, which a block of the directory names.
    At { parent: u32, block: u32 },
    /// A block that was remembered holds another page now.
    Moved(u32),
}

impl PagePlace {
    fn of(parent: u32, blocks: &[u32], place: u64) -> Self {
        match blocks.get(place as usize) {
            None | Some(&NO_BLOCK) => Self::Nowhere,
            Some(&block) => Self::At { parent, block },
        }
    }
}

/// Returns the page of the directory that leads to a page of the table or of its directory, locked for a
/// change, and the place there that says so; None if nothing does. The metapage is locked, and `meta`
/// its contents.
pub fn parent<'a>(
    index: &Index<'a>,
    meta: &Meta,
    block: u32,
    kind: PageType,
    number: u64,
) -> Option<(Page<'a>, u64)> {
    let mut table = RowTable::new(*index, meta);
    let above = number / FANOUT;
    let (found, kind) = match kind {
        PageType::Rows => (table.find(number), PageType::RowsDirectory),
        _ => {
            let top = meta.row_tops[above as usize % TOPS];
            let found = table.block_on(top, PageType::RowsTop, above, number % FANOUT);
            (found, PageType::RowsTop)
        }
    };
    match found {
        PagePlace::At { parent, block: at } if at == block => {
            let page = known_page(index, parent, kind, above);
            Some((page, number % FANOUT))
        }
        _ => None,
    }
}

/// Adds the page of the table at `place` unless the table ends with it. The metapage is locked
/// exclusively, and `meta` its contents.
pub fn ensure_page(index: &Index, meta_page: &mut Page, meta: &mut Meta, place: u64) {
    let last = meta.last_rows_block;
    if last == NO_BLOCK || meta.last_rows_page != place {
        add_page(index, meta_page, meta, place);
    } else if !index.read(last).is(PageType::Rows, place) {
        raise_corrupted(index, Some(last), "it is not the row table's last page");
    }
}

/// Adds the page of the table at `place`, the next one. The metapage is locked exclusively, and
/// `meta` its contents, which are written.
pub fn add_page(index: &Index, meta_page: &mut Page, meta: &mut Meta, place: u64) {
    let mut directory = directory_page(index, meta_page, meta, place / FANOUT);
    let mut page = meta.allocate(index);
    meta.last_rows_page = place;
    meta.last_rows_block = page.block();
    let mut changes = PageChanges::start(index);
    let block = page.block();
    changes.init(&mut page, PageType::Rows, place);
    put_block(&mut changes.change(&mut directory), place % FANOUT, block);
    meta.write(&mut changes.change(meta_page));
    changes.finish();
}

/// Frees a page of the table if all its rows are dead, unless it is the last, to which rows may still come.
pub fn remove_page(index: &Index, place: u64) {
    let (meta_page, meta) = Meta::lock(index);
    if place == meta.last_rows_page {
        return;
    }
    let PagePlace::At { parent, block } = RowTable::new(*index, &meta).find(place) else {
        return;
    };
    let mut directory = known_page(index, parent, PageType::RowsDirectory, place / FANOUT);
    let mut page = index.lock(block);
    // When the caller looked it may have been the last.
    if !page.is(PageType::Rows, place) || entries(page.payload()).any(|entry| !entry.is_blank()) {
        return;
    }
    let mut changes = PageChanges::start(index);
    put_block(
        &mut changes.change(&mut directory),
        place % FANOUT,
        NO_BLOCK,
    );
    changes.init(&mut page, PageType::Free, 0);
    changes.finish();
    drop((page, directory, meta_page));
    // SAFETY: the relation is open.
    unsafe { pg_sys::RecordFreeIndexPage(index.as_ptr(), block) };
}

/// Lets a page of the directory lead to a block.
pub fn put_block(image: &mut Image, place: u64, block: u32) {
    let start = place as usize * size_of::<u32>();
    let end = start + size_of::<u32>();
    image.payload()[start..end].copy_from_slice(&block.to_ne_bytes());
    let used = image.used().max(end);
    image.set_used(used);
}

fn block_at(page: &Page, place: u64) -> u32 {
    let (blocks, _) = page.payload().as_chunks();
    blocks
        .get(place as usize)
        .map_or(NO_BLOCK, |block| u32::from_ne_bytes(*block))
}

/// Returns the page of the directory at a place, locked; made if there is none.
fn directory_page<'a>(
    index: &Index<'a>,
    meta_page: &mut Page,
    meta: &mut Meta,
    place: u64,
) -> Page<'a> {
    let mut top = top_page(index, meta_page, meta, place / FANOUT);
    let block = block_at(&top, place % FANOUT);
    if block != NO_BLOCK {
        return known_page(index, block, PageType::RowsDirectory, place);
    }
    let mut page = meta.allocate(index);
    let block = page.block();
    let mut changes = PageChanges::start(index);
    changes.init(&mut page, PageType::RowsDirectory, place);
    put_block(&mut changes.change(&mut top), place % FANOUT, block);
    meta.write(&mut changes.change(meta_page));
    changes.finish();
    page
}

fn top_page<'a>(index: &Index<'a>, meta_page: &mut Page, meta: &mut Meta, place: u64) -> Page<'a> {
    let slot = place as usize % TOPS;
    if meta.row_tops[slot] != NO_BLOCK {
        return known_page(index, meta.row_tops[slot], PageType::RowsTop, place);
    }
    let mut page = meta.allocate(index);
    meta.row_tops[slot] = page.block();
    let mut changes = PageChanges::start(index);
    changes.init(&mut page, PageType::RowsTop, place);
    meta.write(&mut changes.change(meta_page));
    changes.finish();
    page
}

fn known_page<'a>(index: &Index<'a>, block: u32, kind: PageType, number: u64) -> Page<'a> {
    let page = index.lock(block);
    if !page.is(kind, number) {
        raise_corrupted(
            index,
            Some(block),
            "it is no page of the row table's directory",
        );
    }
    page
}
