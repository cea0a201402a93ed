//! Candidates of a search: kept, and foreseen.

use super::page::Index;
use crate::index::classes::KeySearch;
use crate::pg::error::OrRaise;
use crate::pg::spool::NumberPairs;
use neardup::memory::copied;
use neardup::postings::Needed;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

/// A candidate: its row number and how many keys it shares.
#[derive(Clone, Copy)]
pub struct FoundRow {
    pub row: u64,
    pub shared: u32,
}

/// Candidates that are looked up together: the storage is asked for all of their pages.
const TOGETHER: usize = 64;

/// Candidates in ascending order. Those beyond work_mem are in a temporary file.
pub struct SearchCandidates {
    pairs: NumberPairs,
    /// The number of those taken.
    taken: usize,
}

impl SearchCandidates {
    pub fn new() -> Self {
        Self {
            pairs: NumberPairs::new(),
            taken: 0,
        }
    }

    /// Adds a candidate whose row number is above all others.
    pub fn push(&mut self, found: FoundRow) {
        self.pairs.push([found.row, found.shared.into()]);
    }

    /// Returns the candidate at a place; None behind the last.
    pub fn get(&mut self, place: usize) -> Option<FoundRow> {
        let [row, shared] = (place < self.pairs.len()).then(|| self.pairs.get(place))?;
        let shared = shared as u32;
        Some(FoundRow { row, shared })
    }

    /// Takes the next candidates, at most [`TOGETHER`]; none if there are no more.
    pub fn take(&mut self) -> Vec<FoundRow> {
        let mut here = Vec::new();
        while here.len() < TOGETHER
            && let Some(found) = self.get(self.taken)
        {
            self.taken += 1;
            here.push(found);
        }
        here
    }

    /// Takes the candidates before a row, and returns whether the row is one.
    pub fn take_until(&mut self, row: u64) -> bool {
        while let Some(found) = self.get(self.taken) {
            match found.row.cmp(&row) {
                Ordering::Less => self.taken += 1,
                other => return other.is_eq(),
            }
        }
        false
    }
}

/// Candidates by the keys of their search.
type ByKeys = HashMap<Vec<u32>, (Needed, Vec<FoundRow>)>;

thread_local! {
    /// The candidates found ahead, by index. A backend has one thread that scans.
    static FOUND: RefCell<HashMap<pg_sys::Oid, ByKeys>> = RefCell::default();
}

/// Returns the candidates of a search of an index if they have been found ahead.
pub fn foreseen(index: &Index, keys: &[u32], needed: &Needed) -> Option<SearchCandidates> {
    FOUND.with_borrow(|found| {
        let (of, rows) = found.get(&index.oid())?.get(keys)?;
        (of == needed).then(|| {
            let mut candidates = SearchCandidates::new();
            rows.iter().for_each(|found| candidates.push(*found));
            candidates
        })
    })
}

/// Keeps the candidates of searches until [`forget`]; None where they have not been found.
pub fn keep(index: pg_sys::Oid, searches: &[KeySearch], found: Vec<Option<Vec<FoundRow>>>) {
    FOUND.with_borrow_mut(|all| {
        let by_keys = all.entry(index).or_default();
        by_keys.try_reserve(searches.len()).or_raise();
        for (search, rows) in searches.iter().zip(found) {
            if let (KeySearch::Keys { keys, needed }, Some(rows)) = (search, rows) {
                by_keys.insert(copied(keys).or_raise(), (*needed, rows));
            }
        }
    });
}

/// Forgets all candidates.
pub fn forget() {
    FOUND.with_borrow_mut(HashMap::clear);
}
