//! Remembers in which buffers this session recently found index pages. A lookup reads dozens of pages, and finding a
//! page in PostgreSQL's buffer table takes longer than reading part of the page.

use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// Number of pages remembered, at 8 bytes each.
const PAGES: usize = 1 << 15;

/// Once in this many reads, a page is looked up even if it is remembered, because only that counts as use when
/// PostgreSQL decides which pages to keep in memory.
const LOOKED_UP: u32 = 16;

thread_local! {
    static BUFFERS: RefCell<Vec<RecentBuffer>> = const { RefCell::new(Vec::new()) };
    static READS: Cell<u32> = const { Cell::new(0) };
}

#[derive(Clone, Copy, Default)]
struct RecentBuffer {
    /// Distinguishes most pages with the same place. PostgreSQL checks the rest.
    tag: u32,
    /// The buffer, or 0 if none is remembered.
    buffer: pg_sys::Buffer,
}

/// Pins and returns the buffer of a block of an index. Reads the page if necessary, as ReadBuffer does.
///
/// # Safety
/// `relation` is open.
pub unsafe fn read_buffer(relation: pg_sys::Relation, block: u32) -> pg_sys::Buffer {
    if let Some(buffer) = recall(relation, block) {
        return buffer;
    }
    let buffer = pg_sys::ReadBuffer(relation, block);
    remember(relation, block, buffer);
    buffer
}

/// Pins and returns the buffer of a block of an index if it is remembered and still holds the block. Returns None
/// otherwise, and for every [`LOOKED_UP`]th read.
///
/// # Safety
/// `relation` is open.
pub unsafe fn recall(relation: pg_sys::Relation, block: u32) -> Option<pg_sys::Buffer> {
    let reads = READS.get().wrapping_add(1);
    READS.set(reads);
    let is_looked_up = reads.is_multiple_of(LOOKED_UP);
    (!is_looked_up).then(|| pin(relation, block)).flatten()
}

/// Requests from storage a block that will be read, unless the block's buffer is known. Returns whether the block must
/// be read from storage.
///
/// # Safety
/// `relation` is open, and its file contains `block`.
pub unsafe fn ask_ahead(relation: pg_sys::Relation, block: u32) -> bool {
    if let Some(buffer) = pin(relation, block) {
        pg_sys::ReleaseBuffer(buffer);
        return false;
    }
    let asked = pg_sys::PrefetchBuffer(relation, pg_sys::ForkNumber::MAIN_FORKNUM, block);
    if asked.recent_buffer > 0 {
        remember(relation, block, asked.recent_buffer);
    }
    asked.initiated_io
}

/// # Safety
/// `relation` is open.
unsafe fn pin(relation: pg_sys::Relation, block: u32) -> Option<pg_sys::Buffer> {
    let (place, tag) = place_of(relation, block)?;
    #[cfg(feature = "pg15")]
    let file = (*relation).rd_node;
    #[cfg(not(feature = "pg15"))]
    let file = (*relation).rd_locator;
    let known = BUFFERS.with_borrow(|buffers| buffers.get(place).copied())?;
    let is_there = known.buffer > 0
        && known.tag == tag
        && pg_sys::ReadRecentBuffer(file, pg_sys::ForkNumber::MAIN_FORKNUM, block, known.buffer);
    is_there.then_some(known.buffer)
}

/// # Safety
/// `relation` is open.
unsafe fn remember(relation: pg_sys::Relation, block: u32, buffer: pg_sys::Buffer) {
    let Some((place, tag)) = place_of(relation, block) else {
        return;
    };
    BUFFERS.with_borrow_mut(|buffers| {
        // Without memory, nothing is remembered.
        if buffers.is_empty() && buffers.try_reserve_exact(PAGES).is_ok() {
            buffers.resize(PAGES, RecentBuffer::default());
        }
        if let Some(remembered) = buffers.get_mut(place) {
            *remembered = RecentBuffer { tag, buffer };
        }
    });
}

/// Returns the place and the tag of a block. Adjacent blocks have adjacent places. Returns None for temporary relations,
/// whose buffers are not shared, and never remembered.
///
/// # Safety
/// `relation` is open.
unsafe fn place_of(relation: pg_sys::Relation, block: u32) -> Option<(usize, u32)> {
    if (*(*relation).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as i8 {
        return None;
    }
    #[cfg(feature = "pg15")]
    let file = (*relation).rd_node.relNode;
    #[cfg(not(feature = "pg15"))]
    let file = (*relation).rd_locator.relNumber;
    let mixed = file.to_u32().wrapping_mul(0x9E37_79B1);
    let place = mixed.rotate_left(16).wrapping_add(block) as usize % PAGES;
    Some((place, mixed ^ block))
}
