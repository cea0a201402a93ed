//! The recall of a threshold on the estimate: the share of the pairs of similar documents that it finds, estimated
//! from pairs drawn from a sample of rows.

use crate::Result;
use crate::hash::{GOLDEN, split_mix};
use crate::memory::{Grow, filled};
use crate::minhash::interval::{Interval, share_limits};

/// Confidence of the interval.
const CONFIDENCE: f64 = 0.95;

/// Pairs of rows with their estimates. They are drawn from all pairs offered, each with the same probability
/// (Vitter, "Random sampling with a reservoir", ACM TOMS 1985, algorithm R).
pub struct DrawnPairs {
    most: usize,
    pub pairs: Vec<(usize, usize, f64)>,
    pub offered: u64,
}

impl DrawnPairs {
    /// Returns an empty sample of at most `most` pairs.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            pairs: Vec::new(),
            offered: 0,
        }
    }

    /// # Errors
    /// `OutOfMemory`.
    pub fn offer(&mut self, pair: (usize, usize, f64)) -> Result<()> {
        self.offered += 1;
        if self.pairs.len() < self.most {
            return self.pairs.try_push(pair);
        }
        let random = split_mix(self.offered.wrapping_mul(GOLDEN));
        let place = (u128::from(random) * u128::from(self.offered)) >> 64;
        if let Some(drawn) = self.pairs.get_mut(place as usize) {
            *drawn = pair;
        }
        Ok(())
    }

    /// Returns the share of the offered pairs that were drawn.
    pub fn share(&self) -> f64 {
        self.pairs.len() as f64 / (self.offered as f64).max(1.0)
    }
}

/// The shares of a table's rows, and of their pairs, that were drawn.
#[derive(Debug, Clone, Copy)]
pub struct DrawnShares {
    pub rows: f64,
    pub pairs: f64,
}

/// Returns the share of a table's similar pairs that are found, with the limits of 95 % confidence. `pairs` are
/// those drawn: two of `rows` rows, and whether the pair is found. None without pairs.
///
/// Pairs with a row in common are found or lost together, so that a thousand pairs of few rows contain little
/// information. The variance of the number found, with rows and pairs drawn independently, is estimated without bias
/// (Horvitz, Thompson, JASA 1952). The limits are those of the number of independent pairs that has the same
/// variance (Korn, Graubard, Survey Methodology 1998). Half a pair is added to either outcome, because a few pairs,
/// all found, do not prove that none is lost.
///
/// # Errors
/// `OutOfMemory`.
pub fn recall(
    pairs: &[(usize, usize, bool)],
    rows: usize,
    drawn: DrawnShares,
) -> Result<Option<Interval>> {
    let all = pairs.len() as f64;
    let found = pairs.iter().filter(|pair| pair.2).count() as f64;
    if pairs.is_empty() {
        return Ok(None);
    }
    let expected = (found + 0.5) / (all + 1.0);
    let (mut of_rows, mut of_pairs) = (filled(0.0, rows)?, 0.0);
    for &(a, b, is_found) in pairs {
        let deviation = f64::from(u8::from(is_found)) - expected;
        of_rows[a] += deviation;
        of_rows[b] += deviation;
        of_pairs += deviation * deviation;
    }
    let sharing_a_row = of_rows.iter().map(|sum| sum * sum).sum::<f64>() - 2.0 * of_pairs;
    let design_effect = (1.0 - drawn.rows) * sharing_a_row.max(0.0) / of_pairs
        + (1.0 - drawn.rows * drawn.rows * drawn.pairs);
    let estimate = found / all;
    if design_effect <= 0.0 {
        return Ok(Some(Interval {
            low: estimate,
            estimate,
            high: estimate,
        }));
    }
    let independent = all / design_effect;
    let (low, high) = share_limits(estimate * independent, independent, CONFIDENCE);
    Ok(Some(Interval {
        low,
        estimate,
        high,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number from 0 to 1 that depends on all numbers in `of`.
    fn chance(of: [usize; 4]) -> f64 {
        let mix = |hash, of| split_mix(hash ^ (of as u64).wrapping_mul(GOLDEN));
        of.into_iter().fold(1, mix) as f64 / 2f64.powi(64)
    }

    /// Returns all pairs of a table of `groups` groups of `size` rows, and whether each is found. The probability of
    /// this differs between rows, groups and pairs.
    fn table(groups: usize, size: usize) -> Vec<(usize, usize, bool)> {
        let mut pairs = Vec::new();
        for group in 0..groups {
            for a in 0..size {
                for b in 0..a {
                    let [a, b] = [a, b].map(|row| group * size + row);
                    let row = |row| 0.2 * chance([1, row, 0, 0]);
                    let likely = 0.3 + 0.3 * chance([2, group, 0, 0]) + row(a) + row(b);
                    pairs.push((a, b, chance([3, a, b, 0]) < likely));
                }
            }
        }
        pairs
    }

    fn share(pairs: &[(usize, usize, bool)]) -> f64 {
        pairs.iter().filter(|pair| pair.2).count() as f64 / pairs.len() as f64
    }

    #[test]
    fn the_interval_covers_the_truth() {
        let shares = [(1.0, 0.1), (0.5, 1.0), (0.3, 0.2), (0.1, 1.0)]
            .map(|(rows, pairs)| DrawnShares { rows, pairs });
        for (groups, size) in [(4000, 2), (200, 20), (50, 80), (8, 400)] {
            let pairs = table(groups, size);
            for shares in shares {
                let is_covered = |&seed: &usize| {
                    let drawn = |row| chance([4, seed, row, 0]) < shares.rows;
                    let mut sample = pairs.clone();
                    sample.retain(|&(a, b, _)| {
                        drawn(a) && drawn(b) && chance([5, seed, a, b]) < shares.pairs
                    });
                    let found = recall(&sample, groups * size, shares).unwrap().unwrap();
                    (found.low..=found.high).contains(&share(&pairs))
                };
                let covered = (0..100).filter(is_covered).count();
                assert!(covered >= 90, "{groups} of {size}, {shares:?}: {covered}");
            }
        }
    }

    #[test]
    fn all_pairs_leave_no_doubt_and_few_do() {
        let pairs = table(100, 5);
        let [all, few] = [1.0, 0.01].map(|rows| DrawnShares { rows, pairs: 1.0 });
        let exact = recall(&pairs, 500, all).unwrap().unwrap();
        assert_eq!([exact.low, exact.estimate, exact.high], [share(&pairs); 3]);
        let certain = recall(&[(0, 1, true), (2, 3, true)], 4, few);
        let certain = certain.unwrap().unwrap();
        assert!(certain.estimate == 1.0 && certain.high == 1.0 && certain.low < 0.4);
        assert_eq!(recall(&[], 4, few), Ok(None));
    }

    #[test]
    fn first_and_last_pairs_are_drawn_as_often() {
        let mut drawn = DrawnPairs::new(10_000);
        (0..100_000).for_each(|pair| drawn.offer((pair, 0, 0.0)).unwrap());
        assert_eq!((drawn.pairs.len(), drawn.share()), (10_000, 0.1));
        let mut tenths = [0; 10];
        for pair in &drawn.pairs {
            tenths[pair.0 / 10_000] += 1;
        }
        let are_alike = tenths.iter().all(|tenth| (900..1100).contains(tenth));
        assert!(are_alike, "{tenths:?}");
    }
}
