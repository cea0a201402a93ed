//! The S-curve of classic bands, and the best (b, r) for a threshold.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "one number per point or slot"
)]

use crate::arguments;
use crate::error::out_of_range;
use crate::{Error, Result};

/// Number of midpoints for integrating each side of the threshold. With 1000, the areas are within 1e-6 of their limits
/// for every b and r of 128 slots.
const POINTS: usize = 1000;

const _: () = assert!(POINTS.is_multiple_of(8));

/// Returns the probability that documents of Jaccard `similarity` share one of `bands` bands of `rows` rows:
/// 1 - (1 - s^r)^b.
///
/// # Errors
/// `Invalid` for a similarity outside 0 to 1, or for bands or rows below 1.
pub fn lsh_probability(similarity: f64, bands: i64, rows: i64) -> Result<f64> {
    if !(0.0..=1.0).contains(&similarity) {
        return Err(out_of_range("similarity", &similarity, "0 to 1"));
    }
    if bands < 1 || rows < 1 {
        return Err(Error::invalid(
            format!("{bands} bands of {rows} rows are out of range"),
            "Valid numbers of bands and rows are 1 and above.",
        ));
    }
    Ok(s_curve(similarity, bands as f64, rows as f64))
}

/// Returns the probability of [`lsh_probability`], without loss of digits if it is small.
fn s_curve(similarity: f64, bands: f64, rows: f64) -> f64 {
    -(bands * (-similarity.powf(rows)).ln_1p()).exp_m1()
}

/// Bands, rows, the area under the S-curve below the threshold (false positives), and the area above the S-curve at or
/// above the threshold (false negatives).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LshParams {
    pub bands: usize,
    pub rows: usize,
    pub fp_area: f64,
    pub fn_area: f64,
}

/// Returns the (b, r) with b r <= slots that minimizes `fp_weight * fp_area + fn_weight * fn_area` (Zhu, Nargesian, Pu,
/// Miller, "LSH Ensemble", VLDB 2016, section 5.3). Takes 1.6 ms for 128 slots, 21 ms for 1024.
///
/// # Errors
/// `Invalid` for a threshold outside (0, 1], for slots outside 1 to 1024, and for weights that are negative, not finite
/// or both 0.
pub fn lsh_params(threshold: f64, slots: i64, fp_weight: f64, fn_weight: f64) -> Result<LshParams> {
    arguments::threshold(threshold)?;
    let slots = arguments::slots(slots)?;
    let valid = |weight: f64| weight.is_finite() && weight >= 0.0;
    if !valid(fp_weight) || !valid(fn_weight) || fp_weight + fn_weight == 0.0 {
        return Err(Error::invalid(
            format!("weights {fp_weight} and {fn_weight} are out of range"),
            "Valid weights are finite and not negative, and one of them is above 0.",
        ));
    }
    let cost = |p: &LshParams| fp_weight * p.fp_area + fn_weight * p.fn_area;
    (1..=slots)
        .flat_map(|rows| areas(threshold, rows, slots / rows))
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
        .ok_or_else(|| Error::invalid("no bands", "Valid numbers of slots begin with 1."))
}

/// Returns the areas for `rows` rows and 1 to `most_bands` bands, keeping the powers (1 - s^r)^b from one b to the
/// next.
fn areas(threshold: f64, rows: usize, most_bands: usize) -> Vec<LshParams> {
    let misses = |from: f64, to: f64| -> Vec<f64> {
        let step = (to - from) / POINTS as f64;
        let miss = |i| 1.0 - (from + (i as f64 + 0.5) * step).powi(rows as i32);
        (0..POINTS).map(miss).collect()
    };
    let (below, above) = (misses(0.0, threshold), misses(threshold, 1.0));
    let (mut below_powers, mut above_powers) = (vec![1.0; POINTS], vec![1.0; POINTS]);
    (1..=most_bands)
        .map(|bands| LshParams {
            bands,
            rows,
            fp_area: threshold * (1.0 - next_mean(&mut below_powers, &below)),
            fn_area: (1.0 - threshold) * next_mean(&mut above_powers, &above),
        })
        .collect()
}

/// Multiplies each of `powers` by its base in `misses`, and returns the mean of the new powers. Uses eight sums so that
/// the compiler adds them side by side, and avoids subnormal numbers, which processors multiply slowly.
fn next_mean(powers: &mut [f64], misses: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (powers, _) = powers.as_chunks_mut::<8>();
    let (misses, _) = misses.as_chunks::<8>();
    for (powers, misses) in powers.iter_mut().zip(misses) {
        for ((power, miss), sum) in powers.iter_mut().zip(misses).zip(&mut sums) {
            let next = *power * miss;
            *power = if next < f64::MIN_POSITIVE { 0.0 } else { next };
            *sum += *power;
        }
    }
    sums.iter().sum::<f64>() / POINTS as f64
}
