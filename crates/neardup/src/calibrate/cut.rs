//! The threshold with the highest F1 among all that distinguish pairs.

use super::Outcomes;
use crate::Result;
use crate::memory::collected;
use crate::set::sort_by;

/// The scores that a threshold can take: above `floor`, up to `top`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub floor: f64,
    pub top: f64,
}

impl Scale {
    /// The scale of similarities.
    pub(super) const SIMILARITY: Self = Self {
        floor: 0.0,
        top: 1.0,
    };

    /// Returns a difference of scores as a share of the scale.
    pub fn share(&self, difference: f64) -> f64 {
        difference / (self.top - self.floor)
    }
}

/// A place between the scores of pairs: all thresholds above `below`, up to `lowest`, find the same pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// The lowest score found; the top of the scale if none is.
    pub lowest: f64,
    /// The highest score not found; the floor of the scale if all scores above it are found.
    pub below: f64,
    pub outcomes: Outcomes,
}

impl Cut {
    pub(super) fn new(lowest: f64, below: f64, outcomes: Outcomes) -> Self {
        Self {
            lowest,
            below,
            outcomes,
        }
    }

    /// Returns the distance between the pairs found and the others.
    pub fn gap(&self) -> f64 {
        self.lowest - self.below
    }

    /// Returns the number with the fewest decimals, at least one, that finds the same pairs; of several such
    /// numbers, the one nearest to the middle.
    pub fn roundest(&self) -> f64 {
        let middle = self.below + self.gap() / 2.0;
        let number = |decimals: i32| {
            let scale = 10f64.powi(decimals);
            let [first, last] = [self.below, self.lowest].map(|end| (end * scale).floor());
            let number = (middle * scale).round().min(last).max(first + 1.0) / scale;
            (number > self.below && number <= self.lowest).then_some(number)
        };
        (1..=15).find_map(number).unwrap_or(self.lowest)
    }
}

/// A labeled pair, its score by some method, and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub score: f64,
    pub same: bool,
    pub weight: u64,
}

impl Scored {
    pub fn new(score: f64, same: bool, weight: u64) -> Self {
        Self {
            score,
            same,
            weight,
        }
    }
}

/// Returns whole numbers in proportion to weights, so that their sums are exact: the largest such that
/// `weights.len()` times the largest of them does not exceed 2^60.
///
/// # Errors
/// `OutOfMemory`.
pub fn whole_weights(weights: &[f64]) -> Result<Vec<u64>> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let scale = (1u64 << 60) as f64 / weights.len() as f64;
    let whole = |weight: &f64| ((weight / largest * scale) as u64).max(1);
    collected(weights.iter().map(whole))
}

/// Returns the cut with the highest F1 through labeled pairs; of several with this F1, the highest cut. Pairs with
/// the same score stay together. Scores at or below the floor of the scale are never found.
///
/// Sorts the pairs: O(n log n), no memory.
pub fn best_cut(pairs: &mut [Scored], scale: Scale, check: &mut dyn FnMut()) -> Cut {
    let highest_first = |a: &Scored, b: &Scored| b.score.total_cmp(&a.score);
    sort_by(pairs, highest_first, check);
    let [same, different] = weights(pairs);
    let mut outcomes = Outcomes([0, 0, same, different]);
    let below = |place: usize| {
        pairs
            .get(place)
            .map_or(scale.floor, |pair| pair.score.max(scale.floor))
    };
    let mut best = (below(0) < scale.top).then(|| Cut::new(scale.top, below(0), outcomes));
    let mut place = 0;
    for tied in pairs.chunk_by(|a, b| a.score == b.score) {
        let score = tied[0].score;
        if score <= scale.floor {
            break;
        }
        for (kind, weight) in weights(tied).into_iter().enumerate() {
            outcomes.0[kind] += weight;
            outcomes.0[kind + 2] -= weight;
        }
        place += tied.len();
        let is_better = |best: &Cut| outcomes.compare_f1(&best.outcomes).is_gt();
        if best.as_ref().is_none_or(is_better) {
            best = Some(Cut::new(score, below(place), outcomes));
        }
    }
    best.expect("a score at the top of the scale is above its floor")
}

/// Returns the weight of the pairs labeled the same, and of the pairs labeled different.
fn weights(pairs: &[Scored]) -> [u64; 2] {
    [true, false].map(|same| {
        let labeled = pairs.iter().filter(|pair| pair.same == same);
        labeled.map(|pair| pair.weight).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(pairs: &[(f64, bool)]) -> Cut {
        let scored = |&(score, same): &_| Scored::new(score, same, 1);
        weighted_cut(pairs.iter().map(scored).collect())
    }

    fn weighted_cut(mut pairs: Vec<Scored>) -> Cut {
        best_cut(&mut pairs, Scale::SIMILARITY, &mut || {})
    }

    #[test]
    fn a_weight_counts_as_so_many_pairs() {
        let weighted = [
            (0.9, true, 3),
            (0.5, false, 2),
            (0.4, true, 1),
            (0.2, false, 5),
        ];
        let repeated: Vec<_> = weighted
            .iter()
            .flat_map(|&(score, same, weight)| vec![(score, same); weight as usize])
            .collect();
        let weighted = weighted.map(|(score, same, weight)| Scored::new(score, same, weight));
        assert_eq!(weighted_cut(weighted.to_vec()), cut(&repeated));
    }

    #[test]
    fn whole_weights_keep_proportions() {
        assert_eq!(whole_weights(&[1.0, 1.0]).unwrap(), [1 << 59; 2]);
        assert_eq!(
            whole_weights(&[4e9, 1e9, 1e-300, 4e9]).unwrap()[1..3],
            [1 << 56, 1]
        );
        assert!(whole_weights(&[]).unwrap().is_empty());
    }

    #[test]
    fn worked_examples() {
        let (same, other) = (|score| (score, true), |score| (score, false));
        let tied = [0.9, 0.7, 0.5, 0.5, 0.2, 0.0].map(same);
        for (pairs, lowest, below, outcomes) in [
            // Down to 0.5: 4 right, 1 wrong, 2 missing, F1 8/11; down to 0.2: 5, 2, 1, F1 10/13.
            (
                [&tied[..], &[0.6, 0.3].map(other)].concat(),
                0.2,
                0.0,
                [5, 2, 1, 0],
            ),
            // Pairs with equal scores are found together.
            (
                [&[0.8, 0.4].map(same)[..], &[0.4, 0.4, 0.1].map(other)].concat(),
                0.8,
                0.4,
                [1, 0, 1, 3],
            ),
            (
                vec![other(0.8), same(0.8), other(0.2)],
                0.8,
                0.2,
                [1, 1, 0, 1],
            ),
            // No pair can be found.
            (vec![same(0.0), other(0.0)], 1.0, 0.0, [0, 0, 1, 1]),
            (vec![other(0.3), same(0.0)], 1.0, 0.3, [0, 0, 1, 1]),
            (vec![other(1.0), same(0.0)], 1.0, 0.0, [0, 1, 1, 0]),
        ] {
            let found = cut(&pairs);
            assert_eq!((found.lowest, found.below), (lowest, below), "{pairs:?}");
            assert_eq!(found.outcomes, Outcomes(outcomes), "{pairs:?}");
        }
    }

    #[test]
    fn round_numbers() {
        let next = f64::from_bits(0.5f64.to_bits() + 1);
        for (below, lowest, number) in [
            (0.5, 1.0, 0.8),
            (0.0, 0.35, 0.2),
            (0.61, 0.69, 0.65),
            (0.6, 0.7, 0.7),
            (0.0, 0.05, 0.03),
            (1.0 / 3.0, 0.334, 0.334),
            (0.5, next, next),
        ] {
            assert_eq!(
                Cut::new(lowest, below, Outcomes::default()).roundest(),
                number
            );
        }
    }

    proptest! {
        /// Every threshold of a fine grid, tried one by one.
        #[test]
        fn no_threshold_is_better(pairs in prop::collection::vec((0u32..=20, any::<bool>()), 1..60)) {
            let pairs: Vec<_> = pairs.into_iter().map(|(s, same)| (f64::from(s) / 20.0, same)).collect();
            let found = cut(&pairs);
            let at = |threshold: f64| {
                let count = |is_found: bool, same: bool| {
                    let alike = |pair: &&(f64, bool)| (pair.0 >= threshold) == is_found && pair.1 == same;
                    pairs.iter().filter(alike).count() as u64
                };
                let of_each = [(true, true), (true, false), (false, true), (false, false)];
                Outcomes(of_each.map(|(is_found, same)| count(is_found, same)))
            };
            let best = (1..=1000).map(|step| at(f64::from(step) / 1000.0)).max_by(Outcomes::compare_f1);
            prop_assert!(found.outcomes.compare_f1(&best.unwrap()).is_eq());
            for threshold in [found.roundest(), found.lowest] {
                prop_assert!(threshold > 0.0 && threshold <= 1.0);
                prop_assert_eq!(at(threshold), found.outcomes);
            }
        }
    }
}
