//! Facts about an index that a session keeps between inserts, so that not every insert reads the metapage.

use super::meta::{MAX_PARAMETERS, Meta};
use super::page::{Index, NO_BLOCK};
use crate::index::classes::ValueParameters;
use pgrx::pg_sys;

/// Where the next row probably goes. The pages themselves tell whether this is still true.
#[derive(Clone, Copy)]
pub struct NextPlaces {
    /// The last page of the log, or [`NO_BLOCK`].
    pub tail: u32,
    /// The last page of the row table, or [`NO_BLOCK`], and its position in the table.
    pub rows_block: u32,
    pub rows_page: u64,
}

impl NextPlaces {
    pub fn of(meta: &Meta) -> Self {
        Self {
            tail: meta.tail().unwrap_or(NO_BLOCK),
            rows_block: meta.last_rows_block,
            rows_page: meta.last_rows_page,
        }
    }
}

/// Kept in the relation's `rd_amcache`, which PostgreSQL frees when it invalidates the relation.
struct Cached {
    places: NextPlaces,
    /// The index's parameters that this session has seen. Parameters are never removed from an index.
    parameters: [ValueParameters; MAX_PARAMETERS],
    parameters_count: usize,
}

/// Returns where the next row probably goes, or None unless the index is known to have `parameters`, the parameters of
/// the row's value.
pub fn recall(index: &Index, parameters: Option<&ValueParameters>) -> Option<NextPlaces> {
    // SAFETY: the relation is open, and only `remember` writes to this memory.
    let cached = unsafe { (*index.as_ptr()).rd_amcache.cast::<Cached>().as_ref()? };
    let known = &cached.parameters[..cached.parameters_count];
    let is_known = parameters.is_none_or(|parameters| known.contains(parameters));
    is_known.then_some(cached.places)
}

/// Keeps the facts from the metapage for the next [`recall`].
pub fn remember(index: &Index, meta: &Meta) {
    // SAFETY: the relation is open. The memory lives as long as its relation cache entry, and is a single chunk, as
    // PostgreSQL expects.
    unsafe {
        let relation = &mut *index.as_ptr();
        if relation.rd_amcache.is_null() {
            relation.rd_amcache =
                pg_sys::MemoryContextAlloc(relation.rd_indexcxt, size_of::<Cached>());
        }
        relation.rd_amcache.cast::<Cached>().write(Cached {
            places: NextPlaces::of(meta),
            parameters: meta.parameters,
            parameters_count: meta.parameters().map_or(0, <[_]>::len),
        });
    }
}
