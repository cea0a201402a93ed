//! Estimates of the resemblance of two documents from their signatures.

use crate::kernels::active;
use crate::minhash::signature::{HEADER_LEN, Header, is_slot_bits};
use crate::minhash::{MAX_SLOTS, Signature};
use crate::{Result, bisect};

/// Returns the estimated Jaccard similarity of two documents, or 0 if one of them is empty.
///
/// # Errors
/// `Incomparable` if the signatures were made with different parameters.
pub fn estimate(a: &Signature<'_>, b: &Signature<'_>) -> Result<f64> {
    let (slots, bits) = a.header.size();
    Ok(equal_slots(a, b)?.map_or(0.0, |equal| similarity(equal, slots, bits)))
}

/// Returns the [`estimate`] of two stored values.
///
/// # Errors
/// `Corrupt` if `a` or `b` is not a signature; `Incomparable` if the signatures were made with different parameters.
#[inline]
pub fn estimate_stored(a: &[u8], b: &[u8]) -> Result<f64> {
    match estimate_alike(a, b) {
        Some(estimate) => Ok(estimate),
        None => estimate(&Signature::from_bytes(a)?, &Signature::from_bytes(b)?),
    }
}

/// Returns the result of [`near_duplicates`] for two stored values, or None if they are incomparable.
///
/// # Errors
/// `Corrupt` if `a` or `b` is not a signature.
#[inline]
pub fn near_duplicates_stored(a: &[u8], b: &[u8], threshold: f64) -> Result<Option<bool>> {
    if let Some(estimate) = estimate_alike(a, b) {
        return Ok(Some(estimate >= threshold));
    }
    let (a, b) = (Signature::from_bytes(a)?, Signature::from_bytes(b)?);
    Ok(near_duplicates(&a, &b, threshold))
}

/// Returns the estimate if the headers are equal byte by byte, as in the rows of one table. Reads only one header then,
/// because reading and comparing both takes longer than comparing 128 slots. `None` for empty documents and corrupt
/// values.
#[inline]
fn estimate_alike(a: &[u8], b: &[u8]) -> Option<f64> {
    let (header, a_slots) = a.split_first_chunk::<HEADER_LEN>()?;
    let (other, b_slots) = b.split_first_chunk::<HEADER_LEN>()?;
    if header != other || a.len() != b.len() {
        return None;
    }
    let header = Header::parse(header).ok()?;
    if header.empty || a_slots.len() != header.payload_len() {
        return None;
    }
    let (slots, bits) = header.size();
    let equal = active().count_equal(a_slots, b_slots, slots, bits);
    Some(similarity(equal, slots, bits))
}

/// Returns whether the estimate reaches `threshold`, which is above 0. None if the signatures were made with
/// different parameters: then they are not near-duplicates.
pub fn near_duplicates(a: &Signature<'_>, b: &Signature<'_>, threshold: f64) -> Option<bool> {
    let reaches = || estimate(a, b).is_ok_and(|sim| sim >= threshold);
    a.header.comparable(&b.header).then(reaches)
}

/// Returns the number of equal slots, or `None` if one of the documents is empty.
pub(super) fn equal_slots(a: &Signature<'_>, b: &Signature<'_>) -> Result<Option<usize>> {
    a.header.check_comparable(&b.header)?;
    if a.header.empty || b.header.empty {
        return Ok(None);
    }
    let (slots, bits) = a.header.size();
    let equal = active().count_equal(a.payload, b.payload, slots, bits);
    Ok(Some(equal))
}

/// Returns the estimate of Jaccard similarity from the number of equal slots, within [0, 1].
///
/// Index scans and sequential scans both decide `near_dup` by this expression.
#[inline]
pub fn similarity(equal: usize, slots: usize, slot_bits: u32) -> f64 {
    correct_for_chance(equal as f64 / slots as f64, slot_bits)
}

/// Returns the estimate for a share p of equal slots. Packed slots of b bits are also equal by chance: (p - 2^-b) /
/// (1 - 2^-b) (Li, König, WWW 2010).
pub(super) fn correct_for_chance(share: f64, slot_bits: u32) -> f64 {
    if slot_bits == 32 {
        return share;
    }
    let chance = 0.5f64.powi(slot_bits as i32);
    ((share - chance) / (1.0 - chance)).clamp(0.0, 1.0)
}

/// Returns the minimum number of equal slots at which [`similarity`] reaches `threshold`; at most `slots` for a
/// threshold of at most 1. Found by search, because `ceil(t k)` can be wrong (k = 200, t = 0.55).
pub fn equal_slots_needed(slots: usize, slot_bits: u32, threshold: f64) -> usize {
    let reaches = |equal| similarity(equal as usize, slots, slot_bits) >= threshold;
    bisect::first(0..slots as u64, reaches) as usize
}

/// Returns whether an estimate can be at least `low` and below `high`, both at most 1: whether signatures of some
/// number and width of slots reach `low` with fewer equal slots than `high`.
pub fn is_estimate_between(low: f64, high: f64) -> bool {
    (1..=MAX_SLOTS).any(|slots| {
        (1..=32).filter(|&bits| is_slot_bits(bits)).any(|bits| {
            let bits = u32::from(bits);
            equal_slots_needed(slots, bits, low) < equal_slots_needed(slots, bits, high)
        })
    })
}

/// Returns the minimum similarity s above 0 with `1.0 - s <= distance`: exactly the pairs with a similarity of at least
/// s are within `distance`. Returns None if all pairs or no pairs are within `distance`.
pub fn least_similarity(distance: f64) -> Option<f64> {
    let is_within = |bits: u64| 1.0 - f64::from_bits(bits) <= distance;
    let one = 1f64.to_bits();
    // Positive numbers are ordered like their bits.
    let least = || f64::from_bits(bisect::first(1..one, is_within));
    (!is_within(0) && is_within(one)).then(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_the_similarities_that_they_come_from() {
        for slots in 1..=MAX_SLOTS {
            for hundredths in 1..100 {
                let distance = f64::from(hundredths) / 100.0;
                let least = least_similarity(distance);
                for equal in 1..=slots {
                    let similarity = similarity(equal, slots, 32);
                    let is_within = 1.0 - similarity <= distance;
                    assert_eq!(least.is_some_and(|least| similarity >= least), is_within);
                }
            }
        }
    }

    #[test]
    fn distances_of_everything_or_nothing_have_no_least_similarity() {
        for distance in [-0.1, 1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(least_similarity(distance), None);
        }
        assert_eq!(least_similarity(0.0), Some(1.0));
        assert_eq!(least_similarity(0.2), Some(0.8));
    }

    #[test]
    fn estimates_beside_a_threshold() {
        for threshold in [0.5f64, 0.7, 1.0] {
            assert!(!is_estimate_between(threshold.next_down(), threshold));
            assert!(is_estimate_between(threshold - 0.01, threshold));
        }
        // Packed slots come closer to a threshold.
        assert_eq!(similarity(17, 20, 2), 0.8f64.next_down());
        assert!(is_estimate_between(0.8f64.next_down(), 0.8));
    }
}
