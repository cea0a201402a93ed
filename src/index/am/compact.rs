//! Compaction: where much of the file is free, VACUUM moves pages from its end to free blocks before
//! them, and gives the end back to the file system.
//!
//! A page is moved in one logged change, with the page that leads to it and the metapage, so that readers who come
//! to its old block look anew. The file is cut off under a lock that waits for nobody: while there are
//! scans, the end stays, free for reuse, until the next VACUUM.

use super::hold;
use super::merge::Merging;
use super::meta::{self, Meta};
use super::page::{Index, META_BLOCK, Page, PageChanges, PageType};
use super::rows;
use super::segment::first_posting;
use crate::pg::error::{check_interrupts, vacuum_delay};
use crate::pg::transaction::sleep;
use neardup::postings::Posting;
use neardup::postings::directory::{self, Directory};
use neardup::postings::policy::is_to_be_shortened;
use pgrx::pg_sys;
use std::iter::Peekable;
use std::time::Duration;

/// Pages looked at before others may merge.
const PAGES_AT_ONCE: u32 = 16;

/// Attempts to get the lock of the file's end, and the time between them.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Pages of the end that are looked at before others are asked for, who wait for the lock.
const PAGES_BEFORE_OTHERS: u32 = 256;

/// Makes the file smaller if that is worth it. `free` are free blocks, ascending, `count` how many there
/// are in all; only the first may be known.
pub fn compact(index: &Index, free: Vec<u32>, count: u32) {
    let blocks = index.blocks();
    if !is_to_be_shortened(count, blocks) {
        return;
    }
    let end = blocks.saturating_sub(count).max(META_BLOCK + 1);
    let mut room = free.into_iter().take_while(|block| *block < end).peekable();
    let mut next = blocks;
    while next > end {
        vacuum_delay();
        let _merging = Merging::wait(index);
        let start = next.saturating_sub(PAGES_AT_ONCE).max(end);
        if !(start..next)
            .rev()
            .all(|block| vacate(index, block, &mut room))
        {
            break;
        }
        next = start;
    }
    truncate(index);
}

/// The link that leads to a page.
enum Link<'a> {
    /// The metapage, as to a page of the log.
    Log(usize),
    /// The metapage, as to the highest page of a segment.
    Root(usize),
    /// The metapage, as to one of the highest pages of the row table's directory.
    Top(usize),
    /// An entry of a directory page of a segment.
    Segment(Page<'a>, usize),
    /// A place on a page of the row table's directory.
    Rows(Page<'a>, u64),
}

impl<'a> Link<'a> {
    /// Finds the link that leads to a block, by the kind and number of its page and the first posting there; None if
    /// nothing does, or the page belongs to a merge that goes on. The metapage is locked, and `meta` its contents.
    fn find(
        index: &Index<'a>,
        meta: &Meta,
        block: u32,
        (kind, number): (PageType, u64),
        first: Option<Posting>,
    ) -> Option<Self> {
        match kind {
            PageType::Log | PageType::Tail => {
                let place = meta.log().iter().position(|known| *known == block);
                place.map(Link::Log)
            }
            PageType::Leaf | PageType::Directory => {
                Self::in_segment(index, meta, block, number, first?)
            }
            PageType::Rows | PageType::RowsDirectory => {
                rows::parent(index, meta, block, kind, number)
                    .map(|(page, place)| Link::Rows(page, place))
            }
            PageType::RowsTop => {
                let place = meta.row_tops.iter().position(|known| *known == block);
                place.map(Link::Top)
            }
            PageType::Meta | PageType::Free => None,
        }
    }

    fn in_segment(
        index: &Index<'a>,
        meta: &Meta,
        block: u32,
        number: u64,
        first: Posting,
    ) -> Option<Self> {
        let known = meta.segments().iter();
        let place = known.clone().position(|segment| segment.number == number)?;
        let mut merged = meta.merges().iter().map(|merge| meta.inputs(index, merge));
        if merged.any(|inputs| inputs.contains(&place)) {
            return None;
        }
        let segment = meta.segments()[place];
        if segment.root == block {
            return Some(Link::Root(place));
        }
        let mut parent = segment.root;
        for _ in 0..segment.depth {
            let page = index.lock(parent);
            if !page.is(PageType::Directory, number) {
                return None;
            }
            let directory = Directory::parse(page.payload()).ok()?;
            let child = directory.child_of(first);
            let next = directory.get(child)?.block;
            if next == block {
                return Some(Link::Segment(page, child));
            }
            parent = next;
        }
        None
    }
}

/// Moves the page of a block, if there is one that can be moved, to the next free block in `room`; false
/// if there is none.
///
/// Inserts wait for a page that they remember while they hold another. So this waits for nothing but the metapage
/// and the page that leads to the block. The free block is locked first, since it may lead to others by now.
fn vacate(index: &Index, block: u32, room: &mut Peekable<impl Iterator<Item = u32>>) -> bool {
    let (mut meta_page, mut meta) = Meta::lock(index);
    let Some(mut target) = next_free(index, &meta, room) else {
        return false;
    };
    let held = index.try_lock(block).and_then(|page| {
        let kind = page.kind()?;
        let first = index.sound(block, first_posting(kind, page.payload()));
        Some((kind, page.number(), first))
    });
    let Some((kind, number, first)) = held else {
        return true;
    };
    let Some(mut link) = Link::find(index, &meta, block, (kind, number), first) else {
        return true;
    };
    // While the metapage is locked a page keeps its kind and number.
    let Some(mut page) = index.try_lock(block) else {
        return true;
    };
    room.next();
    let to = target.block();
    // Whoever comes to the old block looks anew only where the metapage has changed.
    meta.next_segment += 1;
    if meta.last_rows_block == block {
        meta.last_rows_block = to;
    }
    let mut changes = PageChanges::start(index);
    match &mut link {
        Link::Log(place) => meta.log[*place] = to,
        Link::Root(place) => meta.segments[*place].root = to,
        Link::Top(place) => meta.row_tops[*place] = to,
        Link::Rows(parent, place) => rows::put_block(&mut changes.change(parent), *place, to),
        Link::Segment(parent, place) => {
            let at = parent.block();
            let mut image = changes.change(parent);
            index.sound(at, directory::redirect(image.payload(), *place, to));
        }
    }
    changes.init(&mut target, kind, number).fill(page.payload());
    changes.init(&mut page, PageType::Free, 0);
    meta.write(&mut changes.change(&mut meta_page));
    changes.finish();
    drop((link, target, page, meta_page));
    // SAFETY: the relation is open.
    unsafe {
        pg_sys::RecordUsedIndexPage(index.as_ptr(), to);
        pg_sys::RecordFreeIndexPage(index.as_ptr(), block);
    }
    true
}

/// Returns the page of the first block in `room` that is still free, and leaves that there. The metapage is
/// locked, and `meta` its contents.
fn next_free<'a>(
    index: &Index<'a>,
    meta: &Meta,
    room: &mut Peekable<impl Iterator<Item = u32>>,
) -> Option<Page<'a>> {
    while let Some(&block) = room.peek() {
        let page = index.try_lock(block);
        if let Some(page) = page.filter(|page| page.is_free() && !meta.free().contains(&block)) {
            return Some(page);
        }
        room.next();
    }
    None
}

/// Cuts free pages off the end of the file, unless somebody uses the index.
fn truncate(index: &Index) {
    // The processes of a parallel VACUUM cannot log the lock for it.
    // SAFETY: reads the backend's own state.
    if unsafe { pg_sys::IsInParallelMode() } || !table_allows_truncation(index) {
        return;
    }
    meta::release_kept(index);
    let blocks = index.blocks();
    let end = free_end(index, || false);
    hold::point("compact_finds_end");
    if !is_to_be_shortened(blocks - end, blocks) || !lock_all(index) {
        return;
    }
    let relation = index.as_ptr();
    let mode = pg_sys::AccessExclusiveLock as i32;
    meta::release_kept(index);
    // SAFETY: the relation is open.
    let end = free_end(index, || unsafe {
        pg_sys::LockHasWaitersRelation(relation, mode)
    });
    if end < index.blocks() {
        // SAFETY: nobody else uses the relation, and nothing leads to the pages from `end` on.
        unsafe { pg_sys::RelationTruncate(relation, end) };
    }
    // SAFETY: the lock was taken above. Others may use the relation at once: with their lock they learn
    // that the file is shorter.
    unsafe { pg_sys::UnlockRelation(relation, mode) };
}

/// Returns whether the table allows VACUUM to shorten files.
fn table_allows_truncation(index: &Index) -> bool {
    let table = index.table();
    // SAFETY: options of a table are StdRdOptions.
    unsafe {
        let options = (*table.as_ptr())
            .rd_options
            .cast::<pg_sys::StdRdOptions>()
            .as_ref();
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        return options.is_none_or(|options| options.vacuum_truncate);
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        options
            .filter(|options| options.vacuum_truncate_set)
            .map_or(pg_sys::vacuum_truncate, |options| options.vacuum_truncate)
    }
}

/// Takes the lock that nobody shares, if it can be had soon.
fn lock_all(index: &Index) -> bool {
    (0..TRIES).any(|attempt| {
        if attempt > 0 {
            sleep(BETWEEN_TRIES);
        }
        let mode = pg_sys::AccessExclusiveLock as i32;
        // SAFETY: the relation is open.
        unsafe { pg_sys::ConditionalLockRelation(index.as_ptr(), mode) }
    })
}

/// Returns the block from which on all are free; fewer are looked at if `ends_early` says so.
fn free_end(index: &Index, ends_early: impl Fn() -> bool) -> u32 {
    let mut end = index.blocks();
    while end > META_BLOCK + 1 && index.read(end - 1).is_free() {
        end -= 1;
        if end.is_multiple_of(PAGES_BEFORE_OTHERS) {
            check_interrupts();
            if ends_early() {
                break;
            }
        }
    }
    end
}
