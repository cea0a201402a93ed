//! Candidates of a search: kept, foreseen, and visited in the order of their least distances.

use super::page::Index;
use crate::index::classes::{DistanceOrder, KeySearch};
use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory};
use crate::pg::spool::NumberPairs;
use neardup::memory::copied;
use neardup::postings::Needed;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::RangeInclusive;

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

    /// Takes the next candidate.
    fn next(&mut self) -> Option<FoundRow> {
        let found = self.get(self.taken)?;
        self.taken += 1;
        Some(found)
    }

    /// Takes the next candidates into `here`, at most [`TOGETHER`]; none if there are no more.
    pub fn take(&mut self, here: &mut Vec<FoundRow>) {
        here.clear();
        while here.len() < TOGETHER
            && let Some(found) = self.next()
        {
            here.push(found);
        }
    }
}

/// Candidates by the keys of their search.
type ByKeys = HashMap<Vec<u32>, (Needed, Vec<FoundRow>)>;

thread_local! {
    /// Of each index; a backend has one thread that scans.
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
        or_out_of_memory(by_keys.try_reserve(searches.len()));
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

/// Candidates by the least distance that they can have, which follows from the number of keys that they share.
/// They are gone through once for each such number, so that memory does not grow with them.
pub struct Approaching {
    candidates: SearchCandidates,
    /// Numbers of shared keys with the least distance, the nearest last.
    levels: Vec<(RangeInclusive<u32>, f64)>,
    /// The place of the next candidate to look at.
    next: usize,
    /// The place of the first candidate that is not below the last row that was asked for.
    passed: usize,
}

impl Approaching {
    /// Returns candidates by the bounds of an order.
    pub fn by_shared(mut candidates: SearchCandidates, order: &dyn DistanceOrder) -> Self {
        let mut levels: Vec<(RangeInclusive<u32>, f64)> = Vec::new();
        let mut place = 0;
        while let Some(found) = candidates.get(place) {
            check_interrupts();
            place += 1;
            let shared = found.shared;
            if let Err(at) = levels.binary_search_by(|(of, _)| of.start().cmp(&shared)) {
                or_out_of_memory(levels.try_reserve(1));
                let least = order.least_distance(shared as usize);
                levels.insert(at, (shared..=shared, least));
            }
        }
        Self::new(candidates, levels)
    }

    /// Returns candidates whose distances are not known at all.
    pub fn unbounded(candidates: SearchCandidates) -> Self {
        Self::new(candidates, vec![(0..=u32::MAX, 0.0)])
    }

    fn new(candidates: SearchCandidates, levels: Vec<(RangeInclusive<u32>, f64)>) -> Self {
        Self {
            candidates,
            levels,
            next: 0,
            passed: 0,
        }
    }

    /// Returns a distance that no candidate left is below; None if there are none left.
    pub fn least(&self) -> Option<f64> {
        Some(self.levels.last()?.1)
    }

    /// Returns the row number of the next candidate.
    pub fn next(&mut self) -> Option<u64> {
        while let Some((shared, _)) = self.levels.last() {
            while let Some(found) = self.candidates.get(self.next) {
                check_interrupts();
                self.next += 1;
                if shared.contains(&found.shared) {
                    return Some(found.row);
                }
            }
            self.levels.pop();
            self.next = 0;
        }
        None
    }

    /// Returns whether a row is a candidate; asked for rows in ascending order.
    pub fn contains(&mut self, row: u64) -> bool {
        while let Some(found) = self.candidates.get(self.passed) {
            match found.row.cmp(&row) {
                Ordering::Less => self.passed += 1,
                other => return other.is_eq(),
            }
        }
        false
    }
}
