//! Candidates of searches, and those that have been found ahead of the scans that ask for them.

use super::page::Index;
use crate::index::classes::Search;
use crate::pg::error::or_out_of_memory;
use neardup::postings::Needed;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;

/// A candidate: its row number and how many keys it shares.
#[derive(Clone, Copy)]
pub struct Found {
    pub row: u64,
    pub shared: u32,
}

/// Candidates by the keys of their search.
type ByKeys = HashMap<Vec<u32>, (Needed, Vec<Found>)>;

thread_local! {
    /// Of each index; a backend has one thread that scans.
    static FOUND: RefCell<HashMap<pg_sys::Oid, ByKeys>> = RefCell::default();
}

/// Returns the candidates of a search of an index, ascending, if they have been found ahead.
pub fn foreseen(index: &Index, keys: &[u32], needed: &Needed) -> Option<Vec<Found>> {
    FOUND.with_borrow(|found| {
        let (of, rows) = found.get(&index.oid())?.get(keys)?;
        (of == needed).then(|| {
            let mut copy = Vec::new();
            or_out_of_memory(copy.try_reserve_exact(rows.len()));
            copy.extend_from_slice(rows);
            copy
        })
    })
}

/// Keeps the candidates of searches until [`forget`]; None where they have not been found.
pub fn keep(index: pg_sys::Oid, searches: &[Search], found: Vec<Option<Vec<Found>>>) {
    FOUND.with_borrow_mut(|all| {
        let by_keys = all.entry(index).or_default();
        or_out_of_memory(by_keys.try_reserve(searches.len()));
        for (search, rows) in searches.iter().zip(found) {
            if let (Search::Keys { keys, needed }, Some(rows)) = (search, rows) {
                let mut own = Vec::new();
                or_out_of_memory(own.try_reserve_exact(keys.len()));
                own.extend_from_slice(keys);
                by_keys.insert(own, (*needed, rows));
            }
        }
    });
}

/// Forgets all candidates.
pub fn forget() {
    FOUND.with_borrow_mut(HashMap::clear);
}
