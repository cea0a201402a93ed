//! Candidates of a scan by distance, the nearest possible first.

use super::candidates::SearchCandidates;
use crate::index::classes::DistanceOrder;
use crate::pg::error::{check_interrupts, or_out_of_memory};
use std::cmp::Ordering;
use std::ops::RangeInclusive;

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
