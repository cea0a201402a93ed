//! Checks of arguments, so that every interface rejects the same values in the same words.

use crate::Result;
use crate::error::{out_of_range, within};
use crate::minhash::MAX_SLOTS;

/// Checks and returns the number of slots of a signature.
///
/// # Errors
/// `Invalid` outside 1 to 1024.
pub fn slots(slots: i64) -> Result<usize> {
    within("slots", slots, 1, MAX_SLOTS as i64).map(|slots| slots as usize)
}

/// Checks and returns a similarity threshold.
///
/// # Errors
/// `Invalid` outside 0 < threshold <= 1.
#[inline]
pub fn threshold(threshold: f64) -> Result<f64> {
    if is_threshold(threshold) {
        return Ok(threshold);
    }
    let valid = "greater than 0 and at most 1";
    Err(out_of_range("threshold", &threshold, valid))
}

/// Returns whether 0 < threshold <= 1.
pub fn is_threshold(threshold: f64) -> bool {
    threshold > 0.0 && threshold <= 1.0
}
