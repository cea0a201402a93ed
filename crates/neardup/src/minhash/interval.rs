//! Confidence intervals of estimates.

use super::Signature;
use super::estimate::{correct_for_chance, equal_slots};
use crate::Result;
use crate::error::out_of_range;
use statrs::function::beta::inv_beta_reg;

/// An estimate and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

/// Returns the interval that holds the true Jaccard similarity with at least the given confidence: the Clopper-Pearson
/// interval (Biometrika 1934) of the share of equal slots, corrected for packing like the estimate. The estimate and
/// its limits are 0 if one of the documents is empty.
///
/// Equal slots are treated as binomial, which is the worst case: estimates of short documents err less.
///
/// # Errors
/// `Incomparable` if the parameters differ, `Invalid` for a confidence outside (0, 1).
pub fn interval(a: &Signature<'_>, b: &Signature<'_>, confidence: f64) -> Result<Interval> {
    if !(confidence > 0.0 && confidence < 1.0) {
        let valid = "above 0 and below 1, such as 0.95";
        return Err(out_of_range("confidence", &confidence, valid));
    }
    let Some(equal) = equal_slots(a, b)? else {
        return Ok(Interval::default());
    };
    let (slots, bits) = a.header.size();
    let (low, high) = share_limits(equal as f64, slots as f64, confidence);
    Ok(Interval {
        low: correct_for_chance(low, bits),
        estimate: correct_for_chance(equal as f64 / slots as f64, bits),
        high: correct_for_chance(high, bits),
    })
}

/// Returns the Clopper-Pearson limits of a share that was seen `equal` times in `slots`, with a confidence within
/// (0, 1). Both counts may be fractions.
pub fn share_limits(equal: f64, slots: f64, confidence: f64) -> (f64, f64) {
    let tail = (1.0 - confidence) / 2.0;
    let differing = slots - equal;
    let low = match equal {
        0.0 => 0.0,
        _ => inv_beta_reg(equal, differing + 1.0, tail),
    };
    let high = match differing {
        0.0 => 1.0,
        _ => inv_beta_reg(equal + 1.0, differing, 1.0 - tail),
    };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns P[Binomial(slots, p) >= from] as a sum.
    fn upper_tail(slots: usize, p: f64, from: usize) -> f64 {
        let mut ln_choose = 0.0;
        let mut sum = 0.0;
        for i in 0..=slots {
            if i >= from {
                let rest = (slots - i) as f64;
                sum += (ln_choose + i as f64 * p.ln() + rest * (-p).ln_1p()).exp();
            }
            ln_choose += ((slots - i) as f64 / (i + 1) as f64).ln();
        }
        sum
    }

    #[test]
    fn limits_leave_the_tails_they_are_asked_to() {
        for slots in [1, 2, 16, 128, 200, 1024] {
            for equal in (0..=slots).step_by((slots / 7).max(1)) {
                for confidence in [0.5, 0.9, 0.95, 0.999] {
                    let (low, high) = share_limits(equal as f64, slots as f64, confidence);
                    let tail = (1.0 - confidence) / 2.0;
                    let below = (equal > 0).then(|| upper_tail(slots, low, equal));
                    let above = (equal < slots).then(|| 1.0 - upper_tail(slots, high, equal + 1));
                    for left in below.into_iter().chain(above) {
                        assert!((left - tail).abs() < 1e-7, "{equal}/{slots} {left}");
                    }
                }
            }
        }
    }

    /// For 0 of 10, the upper limit is 1 - 0.025^(1/10), as in textbooks.
    #[test]
    fn known_limits() {
        let (low, high) = share_limits(138.0, 200.0, 0.95);
        assert!(
            (low - 0.6209).abs() < 5e-4 && (high - 0.7533).abs() < 5e-4,
            "{low} {high}"
        );
        let (low, high) = share_limits(0.0, 10.0, 0.95);
        assert!(low == 0.0 && (high - 0.3085).abs() < 5e-5, "{high}");
    }
}
