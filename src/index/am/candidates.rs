//! Candidates of a search.

use crate::pg::spool::NumberPairs;
use std::cmp::Ordering;

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
