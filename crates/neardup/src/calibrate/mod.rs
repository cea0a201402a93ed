//! From labeled pairs to parameters: which measure separates same from different best, at which threshold, with what
//! confidence; and which pairs are worth a label.

mod bootstrap;
mod cut;
mod grid;
mod outcomes;
mod strata;

pub use bootstrap::{ConfidenceLimits, Intervals, RESAMPLES, intervals};
pub use cut::{Cut, Scale, Scored, best_cut, whole_weights};
pub use grid::{BITS, Grid, GridMeasure, GridMethod, MAX_METHODS};
pub use outcomes::Outcomes;
pub use strata::{MAX_DRAWN, SampledPair, Strata};

use std::cmp::Ordering;

/// The best threshold of a method, and how well it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    pub method: GridMethod,
    pub cut: Cut,
    pub intervals: Intervals,
}

impl Calibration {
    /// Compares by F1, the better one first, then by the distance between the pairs above the threshold and those
    /// below.
    pub fn better_first(&self, other: &Self) -> Ordering {
        let of = |calibration: &Self| calibration.method.scale().share(calibration.cut.gap());
        let by_f1 = other.cut.outcomes.compare_f1(&self.cut.outcomes);
        by_f1.then_with(|| of(other).total_cmp(&of(self)))
    }
}
