//! Finding the few terms of a short document that occur more than once.
#![allow(clippy::disallowed_methods, reason = "at most BLOCK terms")]

use crate::shingle::BLOCK;

/// Places by as many bits of a term.
const PLACES: usize = 2 * BLOCK;

/// Bits of a term by which it is looked for, one set after the other.
const SHIFTS: [u32; 4] = [0, 13, 26, 39];

/// So few terms are compared with each other.
const FEW: usize = 32;

/// Finds the terms of a block that occur more than once; keeps its memory for the next document.
///
/// Every term puts its position into the place that its bits choose. One that reads another position
/// there repeats the term at that position, or shares the place by chance and is looked for again
/// by other bits. Places need not be emptied, since each is written before it is read, and no
/// branch depends on a term: 0.4 us for the 260 words of a news article, where counting in a hash
/// table takes 1 us. Terms that somebody chose to be of equal bits cost a sort, no more.
pub(super) struct Repeats {
    places: [u16; PLACES],
    /// Positions of terms that are looked for.
    positions: [u16; BLOCK],
    /// Number of positions of the same term that each stands for besides itself; zeros between
    /// documents.
    more: [u16; BLOCK],
    /// The positions that stand for others.
    holders: [u16; BLOCK],
    found: usize,
    terms: Vec<u64>,
    counts: Vec<u32>,
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            places: [0; PLACES],
            positions: [0; BLOCK],
            more: [0; BLOCK],
            holders: [0; BLOCK],
            found: 0,
            terms: Vec::new(),
            counts: Vec::new(),
        }
    }
}

impl Repeats {
    /// Returns the terms, of at most [`BLOCK`], that occur more than once, with their frequencies.
    pub(super) fn find(&mut self, terms: &[u64]) -> (&[u64], &[u32]) {
        self.found = 0;
        let mut left = self.search(terms, 0..terms.len() as u16, SHIFTS[0]);
        for shift in &SHIFTS[1..] {
            if left > FEW {
                let positions = self.positions[..left].to_vec();
                left = self.search(terms, positions.into_iter(), *shift);
            }
        }
        self.compare(terms, left);
        let holders = &self.holders[..self.found];
        let holders = holders.iter().map(|holder| usize::from(*holder));
        self.terms.clear();
        self.terms
            .extend(holders.clone().map(|holder| terms[holder]));
        self.counts.clear();
        self.counts.extend(holders.map(|holder| {
            let more = std::mem::take(&mut self.more[holder]);
            u32::from(more) + 1
        }));
        (&self.terms, &self.counts)
    }

    /// Counts the repeated terms that hold their place, and keeps the positions of those that lost
    /// it to another term: the number of them.
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
        let mut earlier = 0;
        for position in positions {
            self.positions[earlier % BLOCK] = position;
            earlier += usize::from(self.places[place(position)] != position);
        }
        let mut left = 0;
        for i in 0..earlier {
            let position = self.positions[i % BLOCK];
            let holder = self.places[place(position)];
            let is_equal = term(holder) == term(position);
            self.positions[left % BLOCK] = position;
            left += usize::from(!is_equal);
            self.count(holder, u16::from(is_equal));
        }
        left
    }

    #[inline]
    fn count(&mut self, holder: u16, times: u16) {
        let more = &mut self.more[usize::from(holder) % BLOCK];
        self.holders[self.found % BLOCK] = holder;
        self.found += usize::from(*more == 0 && times > 0);
        *more += times;
    }

    /// Counts the terms that are left, with all their bits.
    fn compare(&mut self, terms: &[u64], left: usize) {
        let mut left: Vec<(u64, u16)> = self.positions[..left]
            .iter()
            .map(|position| (terms[usize::from(*position)], *position))
            .collect();
        left.sort_unstable();
        for equal in left.chunk_by(|a, b| a.0 == b.0) {
            self.count(equal[0].1, equal.len() as u16 - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// The factors spread the terms over the places, or leave them none but a few.
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
