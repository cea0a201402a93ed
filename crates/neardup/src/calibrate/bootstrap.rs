//! Intervals of precision, recall and F1, by the percentile bootstrap (Efron, "Bootstrap methods: another look at
//! the jackknife", Annals of Statistics 1979).
//!
//! At a given threshold a pair is of one of four kinds. Drawing pairs with replacement is drawing kinds, each with
//! the weights of its pairs. Half a pair is added to each kind, like Jeffreys' prior (Goutte, Gaussier, "A
//! probabilistic interpretation of precision, recall and F-score", ECIR 2005), because ten pairs without an error do
//! not prove that there are none. The half pair has the least weight of its kind, or of all pairs if the kind is
//! empty.
//!
//! Frozen by known answers: draw number j from 0, counted over all resamples, is output j of SplitMix64 started at
//! the seed, scaled to the number of half pairs by a multiplication. All numbers are integers, so that every
//! processor gives the same result.

use super::{Outcomes, Scored};
use crate::Result;
use crate::hash::{GOLDEN, split_mix};
use crate::memory::{Grow, collected};

/// The number of resamples for an interval.
pub const RESAMPLES: usize = 1000;

/// The number of resamples outside at either end: one in forty, for an interval of 95 %.
const OUTSIDE: usize = RESAMPLES / 40;

/// Draws between two checks for interrupts.
const HEARTBEAT: u64 = 1 << 16;

/// The limits of 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceLimits {
    pub low: f64,
    pub high: f64,
}

/// The intervals of the figures of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    pub precision: ConfidenceLimits,
    pub recall: ConfidenceLimits,
    pub f1: ConfidenceLimits,
}

/// Returns the intervals in which precision, recall and F1 of a threshold vary between samples of as many pairs.
///
/// Time O(pairs), a few us a pair; memory in proportion to the pairs.
///
/// # Errors
/// `OutOfMemory`.
pub fn intervals(
    pairs: &[Scored],
    threshold: f64,
    seed: i64,
    check: &mut dyn FnMut(),
) -> Result<Intervals> {
    let kind_and_weight = |pair: &Scored| {
        let kind = match (pair.score >= threshold, pair.same) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        (kind, pair.weight)
    };
    let mut resamples = Resamples::new(collected(pairs.iter().map(kind_and_weight))?, seed)?;
    let drawn = collected((0..RESAMPLES).map(|_| resamples.draw(check)))?;
    let limits = |figure: fn(&Outcomes) -> f64| -> Result<ConfidenceLimits> {
        let mut figures = collected(drawn.iter().map(figure))?;
        figures.sort_unstable_by(f64::total_cmp);
        Ok(ConfidenceLimits {
            low: figures[OUTSIDE],
            high: figures[RESAMPLES - 1 - OUTSIDE],
        })
    };
    Ok(Intervals {
        precision: limits(Outcomes::precision)?,
        recall: limits(Outcomes::recall)?,
        f1: limits(Outcomes::f1)?,
    })
}

struct Resamples {
    pairs: u64,
    /// Kind and weight of equal pairs, and the end of their half pairs.
    classes: Vec<(usize, u64, u64)>,
    state: u64,
}

impl Resamples {
    /// Returns resamples of pairs, which are given by kind, in the order of [`Outcomes`], and weight.
    fn new(mut pairs: Vec<(usize, u64)>, seed: i64) -> Result<Self> {
        let count = pairs.len() as u64;
        let least = pairs.iter().map(|(_, weight)| *weight).min().unwrap_or(1);
        pairs.sort_unstable();
        let (mut classes, mut end) = (Vec::new(), 0);
        for kind in 0..4 {
            let of_kind = pairs
                .chunk_by(|a, b| a == b)
                .filter(|class| class[0].0 == kind);
            let before = classes.len();
            for class in of_kind {
                end += 2 * class.len() as u64 + u64::from(classes.len() == before);
                classes.try_push((kind, class[0].1, end))?;
            }
            if classes.len() == before {
                end += 1;
                classes.try_push((kind, least, end))?;
            }
        }
        Ok(Self {
            pairs: count,
            classes,
            state: seed as u64,
        })
    }

    fn draw(&mut self, check: &mut dyn FnMut()) -> Outcomes {
        let all = self.classes.last().map_or(1, |(.., end)| *end);
        let mut weights = [0; 4];
        for number in 0..self.pairs {
            if number.is_multiple_of(HEARTBEAT) {
                check();
            }
            self.state = self.state.wrapping_add(GOLDEN);
            let draw = ((u128::from(split_mix(self.state)) * u128::from(all)) >> 64) as u64;
            let class = self.classes.partition_point(|(.., end)| *end <= draw);
            let (kind, weight, _) = self.classes[class];
            weights[kind] += weight;
        }
        Outcomes(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minhash::interval::share_limits;
    use proptest::prelude::*;

    fn of(counts: [u64; 4], seed: i64) -> Intervals {
        of_weight(counts, 1, seed)
    }

    /// Returns the intervals for a count of pairs of each kind, all with one weight.
    fn of_weight(counts: [u64; 4], weight: u64, seed: i64) -> Intervals {
        let kinds = [(1.0, true), (1.0, false), (0.0, true), (0.0, false)];
        let scored = kinds.map(|(score, same)| Scored::new(score, same, weight));
        let mut pairs = Vec::new();
        for (pair, count) in scored.into_iter().zip(counts) {
            pairs.resize(pairs.len() + count as usize, pair);
        }
        intervals(&pairs, 0.5, seed, &mut || {}).unwrap()
    }

    #[test]
    fn one_weight_changes_nothing() {
        assert_eq!(
            of_weight([40, 5, 10, 45], 1 << 50, 0),
            of([40, 5, 10, 45], 0)
        );
    }

    /// A pair of large weight is drawn more or less often, which moves the figures more.
    #[test]
    fn unequal_weights_make_intervals_wider() {
        let width = |heavy| {
            let weight = |place: u32| if place.is_multiple_of(20) { heavy } else { 1 };
            let pair = |place| Scored::new(1.0, place < 150, weight(place));
            let pairs: Vec<_> = (0..200).map(pair).collect();
            let found = intervals(&pairs, 0.5, 0, &mut || {}).unwrap().precision;
            found.high - found.low
        };
        assert!(width(50) > 1.5 * width(1), "{} {}", width(50), width(1));
    }

    /// The first outputs of SplitMix64 started at 0, from its authors' reference implementation, are
    /// e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f and f88bb8a8724c81ec. Of 16 half pairs these are numbers
    /// 14, 6, 0 and 15.
    /// numbers 14, 6, 0 and 15.
    #[test]
    fn the_first_resample_by_hand() {
        let pairs = vec![(3, 1), (0, 1), (0, 1), (1, 1), (0, 1), (2, 1)];
        let mut resamples = Resamples::new(pairs, 0).unwrap();
        assert_eq!(
            resamples.classes,
            [(0, 1, 7), (1, 1, 10), (2, 1, 13), (3, 1, 16)]
        );
        resamples.pairs = 4;
        assert_eq!(resamples.draw(&mut || {}), Outcomes([2, 0, 0, 2]));
    }

    #[test]
    fn known_answers() {
        let found = of([40, 5, 10, 45], 0);
        let limits = |of: ConfidenceLimits| [of.low, of.high].map(|x| (x * 1e6).round());
        let figures = [found.precision, found.recall, found.f1];
        assert_eq!(figures.map(limits), KNOWN);
        assert_ne!(of([40, 5, 10, 45], 1), found);
    }

    /// Computed by another program, from the description above.
    const KNOWN: [[f64; 2]; 3] = [
        [782_609.0, 960_784.0],
        [679_245.0, 895_833.0],
        [747_253.0, 905_263.0],
    ];

    #[test]
    fn ten_pairs_without_an_error_prove_little() {
        let few = of([5, 0, 0, 5], 0);
        assert!(few.f1.low < 0.8, "{few:?}");
        assert_eq!(few.f1.high, 1.0);
        let many = of([5000, 0, 0, 5000], 0);
        assert!(many.f1.low > 0.999, "{many:?}");
    }

    /// Precision and recall are shares, for which there is an exact interval.
    #[test]
    fn close_to_the_exact_interval_of_a_share() {
        for counts in [[400, 100, 50, 500], [90, 10, 10, 90], [30, 20, 5, 45]] {
            let found = of(counts, 3);
            let [tp, fp, missed, _] = counts.map(|count| count as usize);
            for (interval, all) in [(found.precision, tp + fp), (found.recall, tp + missed)] {
                let (low, high) = share_limits(tp as f64, all as f64, 0.95);
                let width = high - low;
                assert!((interval.low - low).abs() < 0.35 * width, "{counts:?}");
                assert!((interval.high - high).abs() < 0.35 * width, "{counts:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_figures_lie_inside(counts in prop::array::uniform4(0u64..40), seed: i64) {
            prop_assume!(counts[0] > 0);
            let (found, figures) = (of(counts, seed), Outcomes(counts));
            for (interval, figure) in [
                (found.precision, figures.precision()),
                (found.recall, figures.recall()),
                (found.f1, figures.f1()),
            ] {
                prop_assert!(interval.low <= figure && figure <= interval.high, "{interval:?} {figure}");
                prop_assert!((0.0..=1.0).contains(&interval.low) && interval.high <= 1.0);
            }
        }
    }
}
