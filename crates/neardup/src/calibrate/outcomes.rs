//! Labeled pairs by label and by the answer of a threshold.

use std::cmp::Ordering;

/// The weights of pairs that a threshold takes for the same and for different, rightly or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes {
    pub true_positives: u64,
    pub false_positives: u64,
    pub false_negatives: u64,
    pub true_negatives: u64,
}

impl Outcomes {
    /// Returns outcomes of true positives, false positives, false negatives and true negatives.
    pub fn of(weights: [u64; 4]) -> Self {
        let [
            true_positives,
            false_positives,
            false_negatives,
            true_negatives,
        ] = weights;
        Self {
            true_positives,
            false_positives,
            false_negatives,
            true_negatives,
        }
    }

    /// Returns the share of the pairs found that are the same; 0 if none is found.
    pub fn precision(&self) -> f64 {
        share(
            self.true_positives,
            self.true_positives + self.false_positives,
        )
    }

    /// Returns the share of the same pairs that are found; 0 if none is the same.
    pub fn recall(&self) -> f64 {
        share(
            self.true_positives,
            self.true_positives + self.false_negatives,
        )
    }

    /// Returns the harmonic mean of precision and recall; 0 if nothing is found rightly.
    pub fn f1(&self) -> f64 {
        let (twice, all) = self.f1_fraction();
        share(twice, all)
    }

    /// Compares by F1, exactly.
    pub fn compare_f1(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (self.f1_fraction(), other.f1_fraction());
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b.max(1));
        product(ours.0, theirs.1).cmp(&product(theirs.0, ours.1))
    }

    fn f1_fraction(&self) -> (u64, u64) {
        let twice = 2 * self.true_positives;
        (twice, twice + self.false_positives + self.false_negatives)
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
        let found = Outcomes::of([6, 2, 3, 9]);
        assert_eq!(found.precision(), 0.75);
        assert_eq!(found.recall(), 6.0 / 9.0);
        assert_eq!(found.f1(), 12.0 / 17.0);
        assert_eq!(Outcomes::default().f1(), 0.0);
    }

    #[test]
    fn f1_is_compared_exactly() {
        let near = Outcomes::of([3_000_000_000, 1, 0, 0]);
        let nearer = Outcomes::of([3_000_000_001, 1, 0, 0]);
        assert_eq!(near.compare_f1(&nearer), Ordering::Less);
        assert_eq!(nearer.compare_f1(&near), Ordering::Greater);
        let (half, doubled) = (Outcomes::of([1, 2, 0, 5]), Outcomes::of([2, 1, 3, 0]));
        assert_eq!(half.compare_f1(&doubled), Ordering::Equal);
        let none = Outcomes::default();
        assert_eq!(
            none.compare_f1(&Outcomes::of([0, 4, 1, 0])),
            Ordering::Equal
        );
        assert_eq!(none.compare_f1(&half), Ordering::Less);
    }
}
