//! Labeled pairs by label and by the answer of a threshold.

use std::cmp::Ordering;

/// The weights of pairs by a threshold's answer and its correctness: true positives, false positives, false
/// negatives and true negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes(pub [u64; 4]);

impl Outcomes {
    /// Returns the share of the found pairs that are labeled the same; 0 if no pair is found.
    pub fn precision(&self) -> f64 {
        let Self([right, wrong, ..]) = self;
        share(*right, right + wrong)
    }

    /// Returns the share of the pairs labeled the same that are found; 0 if there are none.
    pub fn recall(&self) -> f64 {
        let Self([right, _, missed, _]) = self;
        share(*right, right + missed)
    }

    /// Returns the harmonic mean of precision and recall; 0 if no pair is found correctly.
    pub fn f1(&self) -> f64 {
        let (twice, all) = self.f1_fraction();
        share(twice, all)
    }

    /// Compares by F1, without rounding.
    pub fn compare_f1(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (self.f1_fraction(), other.f1_fraction());
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b.max(1));
        product(ours.0, theirs.1).cmp(&product(theirs.0, ours.1))
    }

    fn f1_fraction(&self) -> (u64, u64) {
        let Self([right, wrong, missed, _]) = self;
        (2 * right, 2 * right + wrong + missed)
    }
}

fn share(of: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        _ => of as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        let found = Outcomes([6, 2, 3, 9]);
        let figures = [found.precision(), found.recall(), found.f1()];
        assert_eq!(figures, [0.75, 6.0 / 9.0, 12.0 / 17.0]);
        assert_eq!(Outcomes::default().f1(), 0.0);
    }

    #[test]
    fn f1_is_compared_exactly() {
        let half = [1, 2, 0, 5];
        for (low, high, order) in [
            (
                [3_000_000_000, 1, 0, 0],
                [3_000_000_001, 1, 0, 0],
                Ordering::Less,
            ),
            (half, [2, 1, 3, 0], Ordering::Equal),
            ([0; 4], [0, 4, 1, 0], Ordering::Equal),
            ([0; 4], half, Ordering::Less),
        ] {
            let [low, high] = [low, high].map(Outcomes);
            assert_eq!(low.compare_f1(&high), order, "{low:?} {high:?}");
            assert_eq!(high.compare_f1(&low), order.reverse());
        }
    }
}
