//! Candidates with their row numbers, for a search that looks at rows in the order of their
//! insertion.

use super::find::find_from;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{Entry, Rows};
use super::statistics::count_scan;
use crate::index::classes::RowKeys;
use crate::pg::error::or_out_of_memory;
use pgrx::pg_sys;

/// A row that an index finds.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// Grows with every row of the index: of two rows, a search for the later one finds the earlier.
    pub number: u64,
    pub tid: pg_sys::ItemPointerData,
}

/// Returns a number that no row of the index has reached yet.
///
/// # Safety
/// The relation is an open index of this access method.
pub unsafe fn next_number(relation: pg_sys::Relation) -> u64 {
    // SAFETY: vouched for by the caller.
    let index = unsafe { Index::new(relation) };
    log::end(&index, &Meta::read(&index))
}

/// Returns the candidates of a scan with these keys, in the order of their numbers, all from a number on
/// among them; earlier ones may be left out.
///
/// # Safety
/// The relation is an open index of this access method, and the keys are those of a scan of it.
pub unsafe fn candidates(
    relation: pg_sys::Relation,
    keys: &[pg_sys::ScanKeyData],
    from: u64,
) -> Vec<Candidate> {
    // SAFETY: vouched for by the caller.
    let (index, search) = unsafe {
        count_scan(relation);
        let (search, _) = RowKeys::of_index(relation).search(keys);
        (Index::new(relation), search)
    };
    let (meta, mut remaining) = find_from(index, &search, from);
    let mut table = Rows::new(index, &meta);
    let (mut found, mut here) = (Vec::new(), Vec::new());
    let mut add = |number, Entry { tid, .. }| {
        or_out_of_memory(found.try_reserve(1));
        found.push(Candidate { number, tid });
    };
    while remaining.look_up(&mut table, &mut here, &mut add) {}
    found
}
