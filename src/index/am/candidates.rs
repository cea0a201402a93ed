//! Candidates of a search.

use crate::pg::prelude::*;
use std::cmp::Ordering;

/// A candidate: the row number, and how many of the query's keys the row has.
#[derive(Clone, Copy)]
pub struct FoundRow {
    pub row: u64,
    pub shared: u32,
}

/// Maximum number of candidates looked up together. The storage is asked for all of their pages at once.
const TOGETHER: usize = 64;

/// Candidates in the order of their row numbers. Candidates that exceed work_mem are in a temporary file.
pub struct SearchCandidates {
    records: Records,
    buffer: Vec<u8>,
    /// The number of candidates taken.
    taken: usize,
}

impl SearchCandidates {
    pub fn new() -> Self {
        Self {
            records: Records::new(work_mem_bytes()),
            buffer: Vec::new(),
            taken: 0,
        }
    }

    /// Adds a candidate, whose row number must be greater than those of all earlier ones.
    pub fn push(&mut self, found: FoundRow) {
        let numbers = [found.row, found.shared.into()].map(u64::to_ne_bytes);
        self.records.push(numbers.as_flattened());
    }

    /// Returns the candidate at `place`, or None after the last one.
    pub fn get(&mut self, place: usize) -> Option<FoundRow> {
        if place == self.records.len() {
            return None;
        }
        let record = self.records.read(place, &mut self.buffer);
        let [row, shared] = [0, 1].map(|at| u64::from_ne_bytes(record.as_chunks().0[at]));
        let shared = shared as u32;
        Some(FoundRow { row, shared })
    }

    /// Returns the next candidates, at most [`TOGETHER`], or an empty list after the last one.
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

    /// Skips the candidates before `row`, and returns whether `row` is a candidate.
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
