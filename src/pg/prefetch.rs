//! Requests blocks of relations in advance.

use crate::pg::relation::blocks;
use pgrx::pg_sys;
use std::cell::Cell;

/// After this many calls in a row that found all blocks in memory, only a few blocks are requested.
const IN_VAIN: u32 = 64;

/// Number of blocks that are requested after [`IN_VAIN`] such calls. If one of them is not in memory, all others are
/// requested too.
const PROBED: usize = 2;

thread_local! {
    /// The number of further calls that request all blocks.
    static ASKED: Cell<u32> = const { Cell::new(IN_VAIN) };
}

/// Requests the `wanted` blocks of a relation in advance, so that they are read together. Requests only a few if the
/// blocks of the last [`IN_VAIN`] calls were all in memory, and none if the tablespace's `effective_io_concurrency` is
/// 0. `ask` requests a block, and returns whether it has to be read.
///
/// # Safety
/// The relation is open.
pub unsafe fn ask_ahead(
    relation: pg_sys::Relation,
    wanted: impl Iterator<Item = u32>,
    mut ask: impl FnMut(u32) -> bool,
) {
    let tablespace = (*(*relation).rd_rel).reltablespace;
    if pg_sys::get_tablespace_io_concurrency(tablespace) == 0 {
        return;
    }
    // The size is looked up only for blocks past the first file. Within it, requesting pages past the end does no harm.
    let mut end = pg_sys::RELSEG_SIZE;
    let (left, mut is_read) = (ASKED.get(), false);
    for (place, block) in wanted.enumerate() {
        if place >= PROBED && left == 0 && !is_read {
            break;
        }
        if block >= end {
            end = end.max(blocks(relation));
        }
        is_read |= block < end && ask(block);
    }
    ASKED.set(match is_read {
        true => IN_VAIN,
        false => left.saturating_sub(1),
    });
}
