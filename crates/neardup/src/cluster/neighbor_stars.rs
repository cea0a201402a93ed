//! Star clusters where the similar rows of every row are known.

use super::Pair;
use crate::Result;
use crate::memory::filled;

/// The similar rows of every row, and which rows are canonical so far: 32 bytes a pair.
pub struct NeighborStars {
    is_canonical: Vec<bool>,
    /// The end of each row's neighbors.
    ends: Vec<usize>,
    neighbors: Vec<(u32, f64)>,
}

impl NeighborStars {
    /// Returns the neighbors of `rows` rows, given all similar pairs.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(rows: u32, pairs: &[Pair]) -> Result<Self> {
        let mut ends = filled(0usize, rows as usize)?;
        for pair in pairs {
            ends[pair.earlier as usize] += 1;
            ends[pair.later as usize] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut neighbors = filled((0, 0.0), start)?;
        for pair in pairs {
            for (row, other) in [(pair.earlier, pair.later), (pair.later, pair.earlier)] {
                let end = &mut ends[row as usize];
                neighbors[*end] = (other, pair.similarity);
                *end += 1;
            }
        }
        Ok(Self {
            is_canonical: filled(false, rows as usize)?,
            ends,
            neighbors,
        })
    }

    /// Returns the canonical row that `row`, which comes after all rows placed so far, is most similar
    /// to (the earlier of equals), and how similar. None if there is none: `row` is canonical then. A
    /// row may come again, for an identical one.
    pub fn place(&mut self, row: u32) -> Option<(u32, f64)> {
        let row = row as usize;
        if self.is_canonical[row] {
            return Some((row as u32, 1.0));
        }
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let neighbors = self.neighbors[start..self.ends[row]].iter();
        let canonical = neighbors.filter(|(other, _)| self.is_canonical[*other as usize]);
        let best = canonical.copied().reduce(|best, found| {
            let is_better = found.1 > best.1 || (found.1 == best.1 && found.0 < best.0);
            if is_better { found } else { best }
        });
        self.is_canonical[row] = best.is_none();
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::stars_of_pairs;
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

    proptest! {
        #[test]
        fn stars_are_those_of_the_pairs(
            pairs in prop::collection::vec((0u32..30, 0u32..30, 1u8..4), 0..120),
        ) {
            let mut pairs = distinct(pairs);
            let mut stars = NeighborStars::new(30, &pairs).unwrap();
            let expected = stars_of_pairs(30, &mut pairs).unwrap();
            let placed: Vec<_> = (0..30).map(|row| stars.place(row).unwrap_or((row, 1.0))).collect();
            prop_assert_eq!(placed, expected);
        }
    }

    #[test]
    fn a_row_that_comes_again_sees_the_canonical_rows_since() {
        let pairs = distinct(vec![(0, 1, 1), (1, 2, 2)]);
        let mut stars = NeighborStars::new(3, &pairs).unwrap();
        assert_eq!(stars.place(0), None);
        assert_eq!(stars.place(1), Some((0, 0.25)));
        assert_eq!(stars.place(2), None);
        assert_eq!(stars.place(1), Some((2, 0.5)));
        assert_eq!(stars.place(0), Some((0, 1.0)));
    }
}
