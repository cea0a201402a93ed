//! Star clusters where the similar rows of every row are known.

use crate::Result;
use crate::memory::filled;

/// No row.
const NONE: u32 = u32::MAX;

/// The canonical row that each row is most similar to so far, or the row itself where it is canonical:
/// 12 bytes a row.
pub struct NeighborStars {
    nearest: Vec<u32>,
    similarities: Vec<f64>,
}

impl NeighborStars {
    /// Returns `rows` rows; none is canonical yet.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(rows: u32) -> Result<Self> {
        Ok(Self {
            nearest: filled(NONE, rows as usize)?,
            similarities: filled(0.0, rows as usize)?,
        })
    }

    /// Returns the canonical row that `row`, which comes after all rows placed so far, is most similar
    /// to (the earlier of equals), and how similar. None if there is none: `row` is canonical then, and
    /// `neighbors` is called once to visit the rows similar to it that are still to be placed. A row may
    /// come again, for an identical one; until its last time it is still to be placed.
    pub fn place(
        &mut self,
        row: u32,
        neighbors: impl FnOnce(&mut dyn FnMut(u32, f64)),
    ) -> Option<(u32, f64)> {
        let place = row as usize;
        if self.nearest[place] != NONE {
            return Some((self.nearest[place], self.similarities[place]));
        }
        (self.nearest[place], self.similarities[place]) = (row, 1.0);
        neighbors(&mut |other, similarity| self.offer(other, row, similarity));
        None
    }

    /// Makes a new canonical row the nearest one of another row, unless that has a better one.
    fn offer(&mut self, other: u32, canonical: u32, similarity: f64) {
        let (nearest, best) = (
            &mut self.nearest[other as usize],
            &mut self.similarities[other as usize],
        );
        let is_better = similarity > *best || (similarity == *best && canonical < *nearest);
        if *nearest != other && is_better {
            (*nearest, *best) = (canonical, similarity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Pair, stars_of_pairs};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn distinct(pairs: Vec<(u32, u32, u8)>) -> Vec<Pair> {
        let pairs = pairs.into_iter().filter(|(a, b, _)| a != b);
        let pairs: BTreeMap<_, _> = pairs.map(|(a, b, s)| ((a.min(b), a.max(b)), s)).collect();
        let pair = |((earlier, later), s)| Pair {
            earlier,
            later,
            similarity: f64::from(s) / 4.0,
        };
        pairs.into_iter().map(pair).collect()
    }

    /// Places a row among those of pairs.
    fn place(stars: &mut NeighborStars, pairs: &[Pair], row: u32) -> Option<(u32, f64)> {
        stars.place(row, |visit| {
            for pair in pairs {
                match (pair.earlier == row, pair.later == row) {
                    (true, _) => visit(pair.later, pair.similarity),
                    (_, true) => visit(pair.earlier, pair.similarity),
                    _ => {}
                }
            }
        })
    }

    proptest! {
        #[test]
        fn stars_are_those_of_the_pairs(
            pairs in prop::collection::vec((0u32..30, 0u32..30, 1u8..4), 0..120),
        ) {
            let mut pairs = distinct(pairs);
            let mut stars = NeighborStars::new(30).unwrap();
            let placed: Vec<_> = (0..30)
                .map(|row| place(&mut stars, &pairs, row).unwrap_or((row, 1.0)))
                .collect();
            let expected = stars_of_pairs(30, &mut pairs).unwrap();
            prop_assert_eq!(placed, expected);
        }
    }

    #[test]
    fn a_row_that_comes_again_sees_the_canonical_rows_since() {
        let pairs = distinct(vec![(0, 1, 1), (1, 2, 2)]);
        let mut stars = NeighborStars::new(3).unwrap();
        assert_eq!(place(&mut stars, &pairs, 0), None);
        assert_eq!(place(&mut stars, &pairs, 1), Some((0, 0.25)));
        assert_eq!(place(&mut stars, &pairs, 2), None);
        assert_eq!(place(&mut stars, &pairs, 1), Some((2, 0.5)));
        assert_eq!(place(&mut stars, &pairs, 0), Some((0, 1.0)));
    }
}
