//! The options that many functions share, checked.

use crate::pg::call::Call;
use crate::pg::error::OrRaise;
use crate::pg::text::Text;
use neardup::minhash::MAX_SLOTS;
use neardup::shingle::Shingling;
use neardup::{Error, Result};

/// How to cut documents into shingles, from the arguments k, unit and fold.
///
/// # Errors
/// ERROR `invalid_parameter_value` with a HINT that lists what is valid.
pub fn shingling(k: i32, unit: &Text<'_>, fold: &Text<'_>) -> Shingling {
    let unit = unit.name().parse().or_raise();
    let fold = fold.name().parse().or_raise();
    Shingling::new(i64::from(k), unit, fold).or_raise()
}

/// An integer argument between `low` and `high`.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside.
pub fn within(name: &str, value: i32, low: i32, high: i32) -> i32 {
    if (low..=high).contains(&value) {
        return value;
    }
    Err(Error::invalid(
        format!("{name} = {value} is out of range"),
        format!("Valid values are {low} to {high}."),
    ))
    .or_raise()
}

/// The number of slots of a signature.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 1 to 1024.
pub fn slots(slots: i32) -> usize {
    usize::try_from(slots)
        .ok()
        .filter(|slots| (1..=MAX_SLOTS).contains(slots))
        .ok_or_else(|| {
            Error::invalid(
                format!("slots = {slots} is out of range"),
                format!("Valid values are 1 to {MAX_SLOTS}."),
            )
        })
        .or_raise()
}

/// The number of bits of a slot.
///
/// # Errors
/// ERROR `invalid_parameter_value` unless it is a power of two up to 32.
pub fn slot_bits(bits: i32) -> u32 {
    u32::try_from(bits)
        .ok()
        .filter(|bits| matches!(bits, 1 | 2 | 4 | 8 | 16 | 32))
        .ok_or_else(|| {
            Error::invalid(
                format!("bits = {bits} is out of range"),
                "Valid values are 1, 2, 4, 8, 16 and 32.",
            )
        })
        .or_raise()
}

/// A similarity threshold.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 0 < threshold <= 1.
pub fn threshold(threshold: f64) -> f64 {
    check_threshold(threshold).or_raise()
}

/// Returns argument `number` of a call, a similarity threshold.
///
/// # Errors
/// ERROR `null_value_not_allowed` if it is NULL, `invalid_parameter_value` as [`threshold`].
pub fn threshold_argument(call: &Call, number: usize) -> f64 {
    let datum = call.argument(number, "threshold");
    threshold(f64::from_bits(datum.value() as u64))
}

fn check_threshold(threshold: f64) -> Result<f64> {
    if is_threshold(threshold) {
        return Ok(threshold);
    }
    Err(Error::invalid(
        format!("threshold {threshold} is out of range"),
        "Valid values are greater than 0 and at most 1.",
    ))
}

/// Whether 0 < threshold <= 1.
pub fn is_threshold(threshold: f64) -> bool {
    threshold > 0.0 && threshold <= 1.0
}

/// A Hamming distance.
///
/// # Errors
/// ERROR `invalid_parameter_value` below 0.
pub fn distance(distance: i32) -> u32 {
    u32::try_from(distance)
        .map_err(|_| {
            Error::invalid(
                format!("distance {distance} is out of range"),
                "Valid values are 0 and above.",
            )
        })
        .or_raise()
}
