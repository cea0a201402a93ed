//! The log: the newest rows, on a few pages that every lookup reads completely. A row gets its number and becomes
//! visible under the lock on the last page, the tail.

use super::ahead::PageReader;
use super::meta::{MAX_LOG_PAGES, Meta};
use super::page::{Index, NO_BLOCK, PAYLOAD_LEN, Page, PageChanges, PageType, raise_corrupted};
use super::rows::{self, RowEntry};
use super::stop::Stop;
use crate::pg::prelude::*;
use neardup::postings::{Damaged, Log, PageAhead, Posting, log};

/// Appends a row. Returns None if `meta` is outdated or the tail has no room for it.
pub fn append(index: &Index, meta: &Meta, entry: &RowEntry, keys: &[u32]) -> Option<()> {
    let (rows_page, rows_block) = (meta.last_rows_page, meta.last_rows_block);
    if rows_block == NO_BLOCK {
        return None;
    }
    let mut tail = index.remembered(meta.tail()?)?;
    if tail.kind() != Some(PageType::Tail) {
        return None;
    }
    let (row, fits) = next_row(index, &tail, keys.len());
    if !fits || rows_page != rows::page_of(row) {
        return None;
    }
    let mut row_page = index.remembered(rows_block)?;
    if !row_page.is(PageType::Rows, rows::page_of(row)) {
        return None;
    }
    rows::ensure_new(index, &row_page, row);
    let block = tail.block();
    let mut changes = PageChanges::start(index);
    let mut image = changes.change(&mut tail);
    let appended = log::append(image.payload(), keys);
    image.set_used(index.used(block, appended));
    rows::put(&mut changes.change(&mut row_page), row, entry);
    changes.finish();
    Some(())
}

/// Returns the number of the row to be appended next, and whether a row with `keys` keys fits.
pub fn next_row(index: &Index, tail: &Page, keys: usize) -> (u64, bool) {
    let log = parse(index, tail);
    let fits = log.used() + log::row_len(keys) <= PAYLOAD_LEN;
    (tail.number() + u64::from(log.rows), fits)
}

pub fn parse<'p>(index: &Index, page: &'p Page) -> Log<'p> {
    index.sound(page.block(), Log::parse(page.payload()))
}

/// Adds the postings of the rows of `log` to `postings`. The first row has the offset `first`. Returns how many rows
/// have postings.
///
/// # Errors
/// Fails if a row is damaged.
pub fn add_postings(log: &Log, first: u32, postings: &mut Vec<u64>) -> Result<u64, Damaged> {
    let mut rows = 0;
    for (offset, row) in (first..).zip(log.iter()) {
        let row = row?;
        let of_row = row.keys().map(|key| u64::from(Posting { key, offset }));
        postings.try_extend(of_row).or_raise();
        rows += u64::from(!row.is_empty());
    }
    Ok(rows)
}

/// Returns the number of the next row to be inserted.
pub fn end(index: &Index, meta: &Meta) -> u64 {
    let mut meta = *meta;
    loop {
        let Some(tail) = meta.tail() else {
            return meta.log_start;
        };
        let page = index.read(tail);
        if let Some(PageType::Tail | PageType::Log) = page.kind() {
            return page.number() + u64::from(parse(index, &page).rows);
        }
        drop(page);
        check_interrupts();
        let before = std::mem::replace(&mut meta, Meta::read(index));
        if before == meta {
            raise_corrupted(index, Some(tail), "it is not the log's last page");
        }
    }
}

/// The outcome of [`make_room`].
pub enum LogRoom {
    /// A row can be appended.
    Made,
    /// A row can be appended, and the log has one more page.
    NewPage,
    /// The log has the maximum number of pages.
    Full,
}

/// Adds the pages of the log and of the row table that are needed to append a row with `keys` keys. Adds none and
/// returns [`LogRoom::Full`] if the log cannot grow.
pub fn make_room(index: &Index, keys: usize) -> LogRoom {
    let (mut meta_page, mut meta) = Meta::lock(index);
    let mut made = LogRoom::Made;
    let mut row = meta.log_start;
    let mut tail = meta.tail().map(|block| index.lock(block));
    let mut has_room = false;
    if let Some(page) = &tail {
        if page.kind() != Some(PageType::Tail) {
            raise_corrupted(index, Some(page.block()), "it is not the log's last page");
        }
        (row, has_room) = next_row(index, page, keys);
    }
    if !has_room {
        if meta.log().len() == MAX_LOG_PAGES {
            return LogRoom::Full;
        }
        let mut page = meta.allocate(index);
        meta.push_log(page.block());
        let mut changes = PageChanges::start(index);
        let mut image = changes.init(&mut page, PageType::Tail, row);
        let used = log::init(image.payload());
        image.set_used(used);
        if let Some(tail) = &mut tail {
            changes.change(tail).set_kind(PageType::Log);
        }
        meta.write(&mut changes.change(&mut meta_page));
        changes.finish();
        made = LogRoom::NewPage;
    }
    drop(tail);
    rows::ensure_page(index, &mut meta_page, &mut meta, rows::page_of(row));
    made
}

/// Calls `look` with every page of the log and the number of the page's first row.
///
/// # Errors
/// `Restart` if a page has been reused; `Damaged`, `OutOfMemory`, and the errors of `look`.
pub fn for_each_page(
    index: &Index,
    meta: &Meta,
    mut look: impl FnMut(u64, Log) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut start = meta.log_start;
    let mut pages = PageReader::new(*index);
    let ahead = |&block: &u32| PageAhead { block, place: 0.5 };
    pages.announce_pages(meta.log().iter().map(ahead))?;
    for &block in meta.log() {
        let page = pages.page(block);
        if !page.is(PageType::Log, start) && !page.is(PageType::Tail, start) {
            return Err(Stop::Restart(block));
        }
        let log = Log::parse(page.payload()).map_err(Stop::at(block))?;
        look(start, log).map_err(Stop::at(block))?;
        start += u64::from(log.rows);
    }
    Ok(())
}
