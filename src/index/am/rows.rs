//! The row table: for every row of the index, in the order of insertion, its place in the heap and its size. The size
//! combines the number of the row's elements and the row's level. All elements, or a sample of them, make keys.
//!
//! Row numbers only grow. A row whose place is blank is dead, and stays dead. Pages of the table are found through a
//! directory with two levels. The metapage lists the pages of the upper level.

use super::ahead::PageReader;
use super::hold;
use super::meta::{Meta, TOPS, raise_full};
use super::page::{
    Image, Index, NO_BLOCK, PAYLOAD_LEN, Page, PageChanges, PageType, raise_corrupted,
};
use super::stop::Stop;
use crate::pg::prelude::*;
use neardup::bands::RowSize;
use neardup::postings::PageAhead;
use pgrx::itemptr::item_pointer_set_all;

const ENTRY_LEN: usize = size_of::<RowEntry>();

/// Number of rows on one page.
pub const ROWS_PER_PAGE: u64 = (PAYLOAD_LEN / ENTRY_LEN) as u64;

/// Number of block numbers on one page of the directory.
const FANOUT: u64 = (PAYLOAD_LEN / size_of::<u32>()) as u64;

/// Returns the place of a row's page in the table.
pub fn page_of(row: u64) -> u64 {
    row / ROWS_PER_PAGE
}

/// Returns whether the pages of two rows are found through the same page of the directory.
pub fn share_directory(a: u64, b: u64) -> bool {
    page_of(a) / FANOUT == page_of(b) / FANOUT
}

/// Converts a row's place in the heap to a number with the same order.
pub fn number_of(tid: &pg_sys::ItemPointerData) -> u64 {
    u64::from(block_of(tid)) << 16 | u64::from(tid.ip_posid)
}

/// Converts a number made by [`number_of`] back to a place in the heap.
pub fn tid_of(number: u64) -> pg_sys::ItemPointerData {
    let mut tid = pg_sys::ItemPointerData::default();
    item_pointer_set_all(&mut tid, (number >> 16) as u32, number as u16);
    tid
}

/// Returns the block of the heap that contains a row.
pub fn block_of(tid: &pg_sys::ItemPointerData) -> u32 {
    u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo)
}

fn place_of(row: u64) -> usize {
    (row % ROWS_PER_PAGE) as usize
}

/// One row of the table, as it is stored.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RowEntry {
    pub tid: pg_sys::ItemPointerData,
    /// The low and the high half of the size.
    size: [u16; 2],
}

impl RowEntry {
    /// Returns the entry of a row of this `size` at the place `tid` in the heap.
    pub fn new(tid: pg_sys::ItemPointerData, size: RowSize) -> Self {
        let bits = size.0;
        let size = [bits as u16, (bits >> 16) as u16];
        Self { tid, size }
    }

    pub fn size(&self) -> RowSize {
        let [low, high] = self.size.map(u32::from);
        RowSize(high << 16 | low)
    }

    fn read(bytes: &[u8; ENTRY_LEN]) -> Self {
        // SAFETY: any bytes form five two-byte integers.
        unsafe { std::mem::transmute(*bytes) }
    }

    fn write(self) -> [u8; ENTRY_LEN] {
        // SAFETY: there is no padding between five two-byte integers.
        unsafe { std::mem::transmute(self) }
    }

    /// Returns the entry that replaces this one when the row is dead.
    pub fn blank(mut self) -> Self {
        self.tid = pg_sys::ItemPointerData::default();
        self
    }

    pub fn is_blank(&self) -> bool {
        self.tid.ip_posid == pg_sys::InvalidOffsetNumber
    }
}

/// Returns the entries of a page of the table. Entries that were never written are blank.
pub fn entries(payload: &[u8]) -> impl ExactSizeIterator<Item = RowEntry> {
    payload.as_chunks().0.iter().map(RowEntry::read)
}

/// Returns the entry of `row` on `page`, or None if the entry is blank.
fn live_entry(page: &Page, row: u64) -> Option<RowEntry> {
    let (all, _) = page.payload().as_chunks();
    all.get(place_of(row))
        .map(RowEntry::read)
        .filter(|entry| !entry.is_blank())
}

/// Checks that `row`, which is to be inserted on `page`, has no entry yet.
///
/// # Errors
/// ERROR `index_corrupted`.
pub fn ensure_new(index: &Index, page: &Page, row: u64) {
    if live_entry(page, row).is_some() {
        raise_corrupted(index, Some(page.block()), "the next row is there already");
    }
}

/// Writes the entry of `row` into `image`, the row's page.
pub fn put(image: &mut Image, row: u64, entry: &RowEntry) {
    image.put(place_of(row) * ENTRY_LEN, &entry.write());
}

/// A reader of the row table. It remembers the block of a directory page, because directory pages never move.
pub struct RowTable<'a> {
    pub index: Index<'a>,
    tops: [u32; TOPS],
    /// The place and the block of the last directory page looked up.
    directory: Option<(u64, u32)>,
    /// The length of the heap in blocks, assumed to be a whole file until a greater block is found.
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

    /// Raises `index_corrupted` for a place beyond the end of the heap. The end is not looked up for places within the
    /// heap's first file, where PostgreSQL reports a block that it cannot read.
    pub fn ensure_in_table(&mut self, tid: &pg_sys::ItemPointerData) {
        let block = block_of(tid);
        if block < self.table_blocks {
            return;
        }
        self.table_blocks = self.index.table().blocks();
        if block >= self.table_blocks {
            let reason = "a row refers to a block outside the table";
            raise_corrupted(&self.index, None, reason);
        }
    }

    /// Returns the block of page `page` of the table, or None if there is no such page or the page has been removed.
    fn find(&mut self, page: u64) -> Option<u32> {
        let directory = self.directory_of(page)?;
        let directory = self.index.read(directory);
        place_on(&self.index, &directory, PageType::RowsDirectory, page)
    }

    /// Returns the result of [`Self::find`] for each of `pages`, which are in ascending order. Looks into each
    /// directory page only once.
    fn find_all(&mut self, pages: &[u64]) -> Vec<Option<u32>> {
        let mut found = Vec::with_capacity(pages.len());
        for pages in pages.chunk_by(|a, b| a / FANOUT == b / FANOUT) {
            let directory = self.directory_of(pages[0]);
            let directory = directory.map(|directory| self.index.read(directory));
            let kind = PageType::RowsDirectory;
            let block = |page: &u64| place_on(&self.index, directory.as_ref()?, kind, *page);
            found.extend(pages.iter().map(block));
        }
        found
    }

    /// Returns the block of the directory page that leads to page `page` of the table, or None if there is none.
    fn directory_of(&mut self, page: u64) -> Option<u32> {
        let place = page / FANOUT;
        if let Some((_, block)) = self.directory.filter(|(known, _)| *known == place) {
            return Some(block);
        }
        let top = self.tops[(place / FANOUT) as usize % TOPS];
        let top = (top != NO_BLOCK).then(|| self.index.read(top))?;
        let block = place_on(&self.index, &top, PageType::RowsTop, place)?;
        self.directory = Some((place, block));
        Some(block)
    }

    /// Returns the places of the table's pages at the time of `meta`.
    pub fn places(&self, meta: &Meta) -> std::ops::Range<u64> {
        let has_pages = meta.last_rows_block != NO_BLOCK;
        0..meta.last_rows_page + u64::from(has_pages)
    }

    /// Returns the number of pages of the table and of its directory.
    pub fn count_pages(&mut self, meta: &Meta) -> u32 {
        let places = self.places(meta);
        let is_there = |place: &u64| {
            check_interrupts();
            self.find(*place).is_some()
        };
        let pages = places.clone().filter(is_there).count() as u64;
        let directories = places.end.div_ceil(FANOUT);
        let all = pages + directories + directories.div_ceil(FANOUT);
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// Calls `look` with the position in `rows` and the entry of each of `rows` that is not known to be dead, in order.
    /// `rows` are in ascending order. The row's page is locked during the call. Requests all pages from storage before
    /// it waits for the first.
    pub fn for_each_live(
        &mut self,
        rows: &[u64],
        look: &mut dyn FnMut(&mut Self, usize, RowEntry),
    ) {
        let same_page = |a: &u64, b: &u64| page_of(*a) == page_of(*b);
        let pages: Vec<&[u64]> = rows.chunk_by(same_page).collect();
        let places: Vec<u64> = pages.iter().map(|here| page_of(here[0])).collect();
        let found = self.find_all(&places);
        hold::point("row_table_finds_page");
        let ahead = |(here, found): (&&[u64], &Option<u32>)| {
            Some(PageAhead {
                block: (*found)?,
                place: place_of(here[0]) as f32 / ROWS_PER_PAGE as f32,
            })
        };
        let ahead: Vec<PageAhead> = pages.iter().zip(&found).filter_map(ahead).collect();
        let mut reader = PageReader::new(self.index);
        reader.announce_pages(ahead.iter().copied()).or_raise();
        let mut start = 0;
        for (here, found) in pages.into_iter().zip(found) {
            check_interrupts();
            let numbered = (start..).zip(here);
            start += here.len();
            let Some(block) = found else {
                continue;
            };
            let place = page_of(here[0]);
            let announced = Some(reader.page(block));
            let is_there = |page: &Page| page.is(PageType::Rows, place);
            if let Some(page) = announced.filter(is_there).or_else(|| self.page(place)) {
                for (number, row) in numbered {
                    if let Some(entry) = live_entry(&page, *row) {
                        look(self, number, entry);
                    }
                }
            }
        }
    }

    /// Returns the page of the table at `place`, locked for reading, or None if the page has been removed because all
    /// its rows are dead.
    pub fn page(&mut self, place: u64) -> Option<Page<'a>> {
        self.page_at(place, Index::read)
    }

    /// Reads the rows on the table's page at `place` that are not blank, with their entries, into `live`. Returns false
    /// if the page is gone because all its rows are dead.
    pub fn read_page(&mut self, place: u64, live: &mut Vec<(u64, RowEntry)>) -> bool {
        live.clear();
        let Some(page) = self.page(place) else {
            return false;
        };
        let rows = (place * ROWS_PER_PAGE..).zip(entries(page.payload()));
        live.extend(rows.filter(|(_, entry)| !entry.is_blank()));
        true
    }

    /// Returns the entry of a row, or None if the row is blank or its page has been removed.
    ///
    /// # Errors
    /// See [`Self::ensure_in_table`].
    pub fn live_entry(&mut self, row: u64) -> Option<RowEntry> {
        let entry = live_entry(&self.page(page_of(row))?, row)?;
        self.ensure_in_table(&entry.tid);
        Some(entry)
    }

    /// Returns the page at `place`, locked by `lock`, or None if the directory does not list it. If the page is no
    /// longer there, looks for it once more: VACUUM removes a page and the reference to it in one record.
    pub fn page_at(
        &mut self,
        place: u64,
        lock: fn(&Index<'a>, u32) -> Page<'a>,
    ) -> Option<Page<'a>> {
        let mut before = None;
        loop {
            let block = self.find(place)?;
            hold::point("row_table_finds_page");
            let page = lock(&self.index, block);
            if page.is(PageType::Rows, place) {
                return Some(page);
            }
            drop(page);
            if before.replace(block) == Some(block) {
                Stop::Restart(block).raise(&self.index);
            }
        }
    }
}

/// Adds the page of the table at `place`, unless it is already the table's last page. `meta_page` is the metapage,
/// locked exclusively, and `meta` its contents.
pub fn ensure_page(index: &Index, meta_page: &mut Page, meta: &mut Meta, place: u64) {
    let last = meta.last_rows_block;
    if last == NO_BLOCK || meta.last_rows_page != place {
        add(index, meta_page, meta, PageType::Rows, place);
    } else if !index.read(last).is(PageType::Rows, place) {
        raise_corrupted(index, Some(last), "it is not the row table's last page");
    }
}

/// Adds a page of the table or of its directory, and the missing pages above it. Returns the page, locked exclusively.
fn add<'a>(
    index: &Index<'a>,
    meta_page: &mut Page,
    meta: &mut Meta,
    kind: PageType,
    number: u64,
) -> Page<'a> {
    let above = match kind {
        PageType::Rows => Some(PageType::RowsDirectory),
        PageType::RowsDirectory => Some(PageType::RowsTop),
        _ => None,
    };
    let mut above = above.map(|above| ensure(index, meta_page, meta, above, number / FANOUT));
    if let Some(above) = &above
        && block_at(above, number % FANOUT) != NO_BLOCK
    {
        raise_corrupted(index, Some(above.block()), "a page of the row table exists");
    }
    let mut page = meta.allocate(index);
    let block = page.block();
    let mut changes = PageChanges::start(index);
    changes.init(&mut page, kind, number);
    match &mut above {
        Some(above) => put_block(&mut changes.change(above), number % FANOUT, block),
        None => meta.row_tops[number as usize] = block,
    }
    if kind == PageType::Rows {
        (meta.last_rows_page, meta.last_rows_block) = (number, block);
    }
    meta.write(&mut changes.change(meta_page));
    changes.finish();
    page
}

/// Returns page `number` of the directory level `kind`, locked exclusively. Adds the page if there is none.
fn ensure<'a>(
    index: &Index<'a>,
    meta_page: &mut Page,
    meta: &mut Meta,
    kind: PageType,
    number: u64,
) -> Page<'a> {
    let block = match kind {
        PageType::RowsTop if number >= TOPS as u64 => raise_full(index),
        PageType::RowsTop => meta.row_tops[number as usize],
        _ => {
            let top = ensure(index, meta_page, meta, PageType::RowsTop, number / FANOUT);
            block_at(&top, number % FANOUT)
        }
    };
    // The caller may have locked the tail.
    if meta.tail() == Some(block) {
        raise_corrupted(index, Some(block), NOT_DIRECTORY);
    }
    match block {
        NO_BLOCK => add(index, meta_page, meta, kind, number),
        block => known_page(index, block, kind, number),
    }
}

/// Frees the page of the table at `place` if all its rows are dead, unless it is the last page, to which rows may still
/// be added.
pub fn remove_page(index: &Index, place: u64) {
    let (meta_page, meta) = Meta::lock(index);
    if place == meta.last_rows_page {
        return;
    }
    let mut table = RowTable::new(*index, &meta);
    let (Some(parent), Some(block)) = (table.directory_of(place), table.find(place)) else {
        return;
    };
    let mut directory = known_page(index, parent, PageType::RowsDirectory, place / FANOUT);
    let mut page = index.lock(block);
    // When the caller looked, it may have been the last page.
    if !page.is(PageType::Rows, place) || entries(page.payload()).any(|entry| !entry.is_blank()) {
        return;
    }
    let mut changes = PageChanges::start(index);
    let mut image = changes.change(&mut directory);
    put_block(&mut image, place % FANOUT, NO_BLOCK);
    changes.init(&mut page, PageType::Free, 0);
    changes.finish();
    drop((page, directory, meta_page));
    // SAFETY: the relation is open.
    unsafe { pg_sys::RecordFreeIndexPage(index.as_ptr(), block) };
}

/// Writes a block number into a directory page.
fn put_block(image: &mut Image, place: u64, block: u32) {
    image.put(place as usize * size_of::<u32>(), &block.to_ne_bytes());
}

/// Returns the block that the directory page `parent` lists for page `below` of the next lower level, or None if it
/// lists none.
fn place_on(index: &Index, parent: &Page, kind: PageType, below: u64) -> Option<u32> {
    ensure_directory(index, parent, kind, below / FANOUT);
    Some(block_at(parent, below % FANOUT)).filter(|block| *block != NO_BLOCK)
}

const NOT_DIRECTORY: &str = "it is not a page of the row table's directory";

fn ensure_directory(index: &Index, page: &Page, kind: PageType, number: u64) {
    if !page.is(kind, number) {
        raise_corrupted(index, Some(page.block()), NOT_DIRECTORY);
    }
}

fn block_at(page: &Page, place: u64) -> u32 {
    let (blocks, _) = page.payload().as_chunks();
    blocks
        .get(place as usize)
        .map_or(NO_BLOCK, |block| u32::from_ne_bytes(*block))
}

fn known_page<'a>(index: &Index<'a>, block: u32, kind: PageType, number: u64) -> Page<'a> {
    let page = index.lock(block);
    ensure_directory(index, &page, kind, number);
    page
}
