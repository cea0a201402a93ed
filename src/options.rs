//! Arguments that many functions share; one validator for each.

use crate::pg::call::Call;
use crate::pg::error::OrRaise;
use crate::pg::text::Text;
use neardup::minhash::{MAX_SLOTS, is_slot_bits};
use neardup::shingle::Shingling;
use neardup::{Error, quoted};
use std::fmt::Display;

/// Returns how to cut documents into shingles, from the arguments k, unit and fold.
///
/// # Errors
/// ERROR `invalid_parameter_value` with a HINT that lists what is valid.
pub fn shingling(k: i32, unit: &Text<'_>, fold: &Text<'_>) -> Shingling {
    let unit = unit.name().parse().or_raise();
    let fold = fold.name().parse().or_raise();
    Shingling::new(i64::from(k), unit, fold).or_raise()
}

/// Returns an integer argument between `low` and `high`.
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

/// Returns the number of slots of a signature.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 1 to 1024.
pub fn slots(slots: i32) -> usize {
    within("slots", slots, 1, MAX_SLOTS as i32) as usize
}

/// Returns the number of bits of a slot.
///
/// # Errors
/// ERROR `invalid_parameter_value` unless it is a power of two up to 32.
pub fn slot_bits(bits: i32) -> u32 {
    u8::try_from(bits)
        .ok()
        .filter(|&bits| is_slot_bits(bits))
        .map(u32::from)
        .ok_or_else(|| {
            Error::invalid(
                format!("bits = {bits} is out of range"),
                "Valid values are 1, 2, 4, 8, 16 and 32.",
            )
        })
        .or_raise()
}

/// Returns a similarity threshold.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 0 < threshold <= 1.
#[inline]
pub fn threshold(threshold: f64) -> f64 {
    if is_threshold(threshold) {
        return threshold;
    }
    out_of_range("threshold", &threshold, "greater than 0 and at most 1")
}

/// Returns argument `number` of a call, a similarity threshold.
///
/// # Errors
/// ERROR `null_value_not_allowed` if it is NULL, `invalid_parameter_value` as [`threshold`].
pub fn threshold_argument(call: &Call, number: usize) -> f64 {
    let datum = call.argument(number, "threshold");
    threshold(f64::from_bits(datum.value() as u64))
}

/// Returns the similarity threshold that a text holds.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 0 < threshold <= 1, and for what is no number.
pub fn threshold_in(text: &str) -> f64 {
    match text.trim().parse() {
        Ok(threshold) if is_threshold(threshold) => threshold,
        _ => out_of_range("threshold", &quoted(text), "greater than 0 and at most 1"),
    }
}

/// Returns whether 0 < threshold <= 1.
pub fn is_threshold(threshold: f64) -> bool {
    threshold > 0.0 && threshold <= 1.0
}

/// Returns a Hamming distance.
///
/// # Errors
/// ERROR `invalid_parameter_value` below 0.
#[inline]
pub fn distance(distance: i32) -> u32 {
    u32::try_from(distance).unwrap_or_else(|_| out_of_range("distance", &distance, "0 and above"))
}

/// Returns the Hamming distance that a text holds.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 0 to `most`, and for what is no number.
pub fn distance_in(text: &str, most: u32) -> u32 {
    match text.trim().parse() {
        Ok(distance) if distance <= most => distance,
        _ => out_of_range("distance", &quoted(text), &format!("0 to {most}")),
    }
}

#[cold]
fn out_of_range(name: &str, value: &dyn Display, valid: &str) -> ! {
    Err(Error::invalid(
        format!("{name} {value} is out of range"),
        format!("Valid values are {valid}."),
    ))
    .or_raise()
}
