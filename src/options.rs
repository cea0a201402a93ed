//! Arguments that many functions share, with one validator each.

use crate::pg::prelude::*;
use neardup::arguments;
use neardup::error::{self, out_of_range};
use neardup::minhash::Signing;
use neardup::shingle::{Key, Shingling};
use neardup::{quoted, unknown};

pub use neardup::arguments::is_threshold;

/// Returns how to cut documents into shingles, given the arguments k, unit and fold.
///
/// # Errors
/// ERROR `invalid_parameter_value` with a HINT that lists the valid values.
pub fn shingling(k: i32, unit: &Text<'_>, fold: &Text<'_>) -> Shingling {
    let unit = unit.name().parse().or_raise();
    let fold = fold.name().parse().or_raise();
    Shingling::new(i64::from(k), unit, fold).or_raise()
}

/// Returns the parameters of signatures, given the arguments k, unit, fold, slots and seed.
///
/// # Errors
/// The errors of [`shingling`] and [`slots`].
pub fn signing(k: i32, unit: &Text<'_>, fold: &Text<'_>, slots: i32, seed: i64) -> Signing {
    Signing {
        shingling: shingling(k, unit, fold),
        slots: self::slots(slots),
        key: Key::from_seed(seed),
    }
}

/// The names of the arguments that specify how to cut documents.
pub const CUT: [&str; 3] = ["k", "unit", "fold"];

/// Returns k, unit and fold, given by three arguments of `call`, starting with number `first`.
///
/// # Errors
/// ERROR `null_value_not_allowed` if one is NULL; the errors of [`shingling`].
pub fn shingling_arguments(call: &Call, first: usize) -> Shingling {
    for (number, name) in (first..).zip(CUT) {
        call.argument(number, name);
    }
    let mut given = cut_arguments(call, first);
    given.try_fold(Shingling::default(), with_text).or_raise()
}

/// Returns the names and texts of the arguments k, unit and fold of `call`, starting with number `first`. Skips NULLs.
pub fn cut_arguments(call: &Call, first: usize) -> impl Iterator<Item = (&'static str, String)> {
    (first..).zip(CUT).filter_map(|(number, name)| {
        let text = match name {
            "k" => call.optional::<i32>(number)?.to_string(),
            _ => call.optional::<Text<'_>>(number)?.name().into_owned(),
        };
        Some((name, text))
    })
}

/// Returns k, unit and fold as texts.
pub fn cut_texts(Shingling { k, unit, fold }: Shingling) -> [String; 3] {
    [k.to_string(), unit.to_string(), fold.to_string()]
}

/// Returns `cut` with the parameter called `name` (k, unit or fold) set to the value that `text` holds.
///
/// # Errors
/// `Invalid` for a text that is not a valid value.
pub fn with_text(cut: Shingling, (name, text): (&str, impl AsRef<str>)) -> Result<Shingling> {
    let (Shingling { unit, fold, .. }, text) = (cut, text.as_ref());
    match name {
        "k" => Shingling::new(text.parse().unwrap_or_default(), unit, fold),
        "unit" => text.parse().map(|unit| Shingling { unit, ..cut }),
        _ => text.parse().map(|fold| Shingling { fold, ..cut }),
    }
}

/// Returns the choice that argument `number` of a call names. Errors call it `name`.
///
/// # Errors
/// ERROR `null_value_not_allowed` if it is NULL, `invalid_parameter_value` with a HINT that lists both choices.
pub fn one_of<T: Copy>(call: &Call, number: usize, name: &str, choices: [(&str, T); 2]) -> T {
    let given = call.get::<Text<'_>>(number, name).name().into_owned();
    let chosen = choices.iter().find(|(choice, _)| *choice == given);
    let valid = choices.map(|(choice, _)| choice);
    chosen
        .map(|(_, choice)| *choice)
        .ok_or_else(|| unknown(name, &given, &valid))
        .or_raise()
}

/// Returns `value` if it is between `low` and `high`. Errors call it `name`.
///
/// # Errors
/// ERROR `invalid_parameter_value` otherwise.
pub fn within(name: &str, value: i32, low: i32, high: i32) -> i32 {
    let [value, low, high] = [value, low, high].map(i64::from);
    error::within(name, value, low, high).or_raise() as i32
}

/// Returns argument `number` of `call`, an integer between `low` and `high`. Errors call it `name`.
///
/// # Errors
/// ERROR `null_value_not_allowed` if it is NULL; the errors of [`within`].
pub fn integer(call: &Call, number: usize, name: &str, low: i32, high: i32) -> i32 {
    within(name, call.get(number, name), low, high)
}

/// Checks and returns the number of slots of a signature.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 1 to 1024.
pub fn slots(slots: i32) -> usize {
    arguments::slots(i64::from(slots)).or_raise()
}

/// Checks and returns a similarity threshold.
///
/// # Errors
/// ERROR `invalid_parameter_value` outside 0 < threshold <= 1.
#[inline]
pub fn threshold(threshold: f64) -> f64 {
    arguments::threshold(threshold).or_raise()
}

/// Returns argument `number` of `call`, a similarity threshold.
///
/// # Errors
/// ERROR `null_value_not_allowed` if it is NULL; the errors of [`threshold`].
pub fn threshold_argument(call: &Call, number: usize) -> f64 {
    threshold(call.get(number, "threshold"))
}

/// Parses a similarity threshold.
///
/// # Errors
/// ERROR `invalid_parameter_value` unless it is a number above 0 and at most 1.
pub fn threshold_in(text: &str) -> f64 {
    match text.trim().parse() {
        Ok(threshold) if is_threshold(threshold) => threshold,
        _ => {
            let valid = "greater than 0 and at most 1";
            Err(out_of_range("threshold", &quoted(text), valid)).or_raise()
        }
    }
}

/// Checks and returns a Hamming distance.
///
/// # Errors
/// ERROR `invalid_parameter_value` below 0.
#[inline]
pub fn distance(distance: i32) -> u32 {
    u32::try_from(distance)
        .map_err(|_| out_of_range("distance", &distance, "0 and above"))
        .or_raise()
}

/// Returns argument `number` of `call`, called threshold, as a Hamming distance.
///
/// # Errors
/// ERROR `null_value_not_allowed` if it is NULL, `invalid_parameter_value` unless it is a whole number of at least 0.
pub fn distance_argument(call: &Call, number: usize) -> u32 {
    let distance: f64 = call.get(number, "threshold");
    if distance.fract() != 0.0 || !(0.0..=f64::from(i32::MAX)).contains(&distance) {
        let valid = "whole numbers from 0: the Hamming distance of bit strings";
        return Err(out_of_range("threshold", &distance, valid)).or_raise();
    }
    distance as u32
}

/// Parses a Hamming distance.
///
/// # Errors
/// ERROR `invalid_parameter_value` unless it is a whole number from 0 to `most`.
pub fn distance_in(text: &str, most: u32) -> u32 {
    match text.trim().parse() {
        Ok(distance) if distance <= most => distance,
        _ => {
            let valid = format!("0 to {most}");
            Err(out_of_range("distance", &quoted(text), &valid)).or_raise()
        }
    }
}
