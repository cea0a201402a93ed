//! Finds the few terms of a short document that occur more than once.
#![allow(clippy::disallowed_methods, reason = "at most BLOCK terms")]

use crate::shingle::BLOCK;

/// Number of places; the bits of a term choose one.
const PLACES: usize = 2 * BLOCK;

/// The lowest of the bits of a term that choose its place, for successive attempts.
const SHIFTS: [u32; 4] = [0, 13, 26, 39];

/// Maximum number of terms to compare with each other.
const FEW: usize = 32;

/// Finds the terms of a block that occur more than once, and keeps its memory for the next document.
///
/// Every term writes its position into the place that its bits choose. The position that remains there represents its
/// term: all equal terms that find it count it. A term that finds a different term shares the place by chance, and is
/// looked up again by other bits. Places need not be cleared, because each is written before it is read. No branch
/// depends on a term: 0.5 us for the 450 words of a Japanese text, against 2 us for counting in a hash table. Terms
/// that an attacker chose to have equal bits cost a sort, no more.
pub(super) struct Repeats {
    places: [u16; PLACES],
    /// Positions of the terms that are still to be looked up.
    positions: [u16; BLOCK],
    /// The frequency of the term that each position represents; zeros between documents.
    frequencies: [u16; BLOCK],
    /// The positions that represent repeated terms.
    repeated: [u16; BLOCK],
    terms: Vec<u64>,
    counts: Vec<u32>,
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            places: [0; PLACES],
            positions: [0; BLOCK],
            frequencies: [0; BLOCK],
            repeated: [0; BLOCK],
            terms: Vec::new(),
            counts: Vec::new(),
        }
    }
}

impl Repeats {
    /// Returns the terms that occur more than once, with their frequencies. There are at most [`BLOCK`] `terms`.
    pub(super) fn find(&mut self, terms: &[u64]) -> (&[u64], &[u32]) {
        let mut left = self.search(terms, 0..terms.len() as u16, SHIFTS[0]);
        for shift in &SHIFTS[1..] {
            if left > FEW {
                let positions = self.positions[..left].to_vec();
                left = self.search(terms, positions.into_iter(), *shift);
            }
        }
        self.compare(terms, left);
        let frequencies = &mut self.frequencies[..terms.len()];
        let mut repeated = 0;
        for (position, frequency) in frequencies.iter().enumerate() {
            self.repeated[repeated % BLOCK] = position as u16;
            repeated += usize::from(*frequency > 1);
        }
        let positions = &self.repeated[..repeated];
        self.terms.clear();
        self.terms
            .extend(positions.iter().map(|&at| terms[usize::from(at)]));
        self.counts.clear();
        let frequency = |at: &u16| u32::from(frequencies[usize::from(*at)]);
        self.counts.extend(positions.iter().map(frequency));
        frequencies.fill(0);
        (&self.terms, &self.counts)
    }

    /// Counts the terms at `positions` that are found in their place, and keeps the positions of terms that find a
    /// different term there. Returns the number of positions kept.
    fn search(
        &mut self,
        terms: &[u64],
        positions: impl Iterator<Item = u16> + Clone,
        shift: u32,
    ) -> usize {
        let term = |position: u16| terms[usize::from(position)];
        let place = |position| (term(position) >> shift) as usize % PLACES;
        for position in positions.clone() {
            self.places[place(position)] = position;
        }
        let mut left = 0;
        for position in positions {
            let found = self.places[place(position)];
            let is_equal = term(found) == term(position);
            self.frequencies[usize::from(found) % BLOCK] += u16::from(is_equal);
            self.positions[left % BLOCK] = position;
            left += usize::from(!is_equal);
        }
        left
    }

    /// Counts the remaining terms, comparing all their bits.
    fn compare(&mut self, terms: &[u64], left: usize) {
        let term = |position: &u16| (terms[usize::from(*position)], *position);
        let mut left: Vec<_> = self.positions[..left].iter().map(term).collect();
        left.sort_unstable();
        for equal in left.chunk_by(|a, b| a.0 == b.0) {
            self.frequencies[usize::from(equal[0].1)] += equal.len() as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// The factors spread the terms over all places, or over only a few.
        #[test]
        fn finds_what_a_map_finds(
            blocks in prop::collection::vec(
                (prop::collection::vec(0u64..3000, 0..=BLOCK), any::<u64>(), 0u32..64), 1..4),
        ) {
            let mut repeats = Repeats::default();
            for (numbers, factor, shift) in blocks {
                let terms: Vec<u64> = numbers.iter().map(|n| n.wrapping_mul(factor) << shift).collect();
                let mut expected: HashMap<u64, u32> = HashMap::new();
                terms.iter().for_each(|term| *expected.entry(*term).or_default() += 1);
                expected.retain(|_, count| *count > 1);
                let (found, counts) = repeats.find(&terms);
                prop_assert_eq!(found.len(), expected.len());
                for (term, count) in found.iter().zip(counts) {
                    prop_assert_eq!(expected.get(term), Some(count));
                }
            }
        }
    }
}
