//! Candidates of searches, and those that have been found ahead of the scans that ask for them.

use super::page::Index;
use crate::index::classes::Search;
use crate::pg::error::or_out_of_memory;
use crate::pg::query::work_mem_bytes;
use crate::pg::spool::Records;
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

/// Candidates that are looked up together: the storage is asked for all of their pages.
const TOGETHER: usize = 64;

/// Bytes of a candidate: its row number, and how many keys it shares.
const LEN: usize = size_of::<u64>() + size_of::<u32>();

/// Candidates in ascending order, each taken once. Those beyond work_mem are in a temporary file.
pub struct Candidates {
    records: Records,
    /// The number of those taken.
    taken: usize,
    buffer: Vec<u8>,
}

impl Candidates {
    pub fn new() -> Self {
        Self {
            records: Records::of_width(LEN, work_mem_bytes()),
            taken: 0,
            buffer: Vec::new(),
        }
    }

    /// Adds a candidate whose row number is above all others.
    pub fn push(&mut self, found: Found) {
        let mut record = [0; LEN];
        let (row, shared) = record.split_at_mut(size_of::<u64>());
        row.copy_from_slice(&found.row.to_ne_bytes());
        shared.copy_from_slice(&found.shared.to_ne_bytes());
        self.records.push(&record);
    }

    /// Takes the next candidate.
    fn next(&mut self) -> Option<Found> {
        if self.taken == self.records.len() {
            return None;
        }
        let record = self.records.read(self.taken, &mut self.buffer);
        let (row, shared) = record.split_first_chunk()?;
        self.taken += 1;
        Some(Found {
            row: u64::from_ne_bytes(*row),
            shared: u32::from_ne_bytes(*shared.first_chunk()?),
        })
    }

    /// Takes the next candidates into `here`, at most [`TOGETHER`]; none if there are no more.
    pub fn take(&mut self, here: &mut Vec<Found>) {
        here.clear();
        while here.len() < TOGETHER
            && let Some(found) = self.next()
        {
            here.push(found);
        }
    }
}

/// Candidates by the keys of their search.
type ByKeys = HashMap<Vec<u32>, (Needed, Vec<Found>)>;

thread_local! {
    /// Of each index; a backend has one thread that scans.
    static FOUND: RefCell<HashMap<pg_sys::Oid, ByKeys>> = RefCell::default();
}

/// Returns the candidates of a search of an index if they have been found ahead.
pub fn foreseen(index: &Index, keys: &[u32], needed: &Needed) -> Option<Candidates> {
    FOUND.with_borrow(|found| {
        let (of, rows) = found.get(&index.oid())?.get(keys)?;
        (of == needed).then(|| {
            let mut candidates = Candidates::new();
            rows.iter().for_each(|found| candidates.push(*found));
            candidates
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
