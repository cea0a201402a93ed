//! What two signatures say about the resemblance of their documents.

use crate::Result;
use crate::kernels;
use crate::minhash::Signature;

/// The estimated Jaccard similarity of the two documents; 0 if one of them is empty.
///
/// # Errors
/// `Incomparable` if the signatures were made with different parameters.
pub fn estimate(a: &Signature<'_>, b: &Signature<'_>) -> Result<f64> {
    let (slots, bits) = (usize::from(a.header.slots), u32::from(a.header.slot_bits));
    Ok(equal_slots(a, b)?.map_or(0.0, |equal| similarity(equal, slots, bits)))
}

/// Whether the estimate reaches `threshold`, above 0. Incomparable signatures are no near-duplicates.
pub fn near_duplicates(a: &Signature<'_>, b: &Signature<'_>, threshold: f64) -> bool {
    a.header.comparable(&b.header) && estimate(a, b).is_ok_and(|sim| sim >= threshold)
}

/// The number of equal slots; `None` if one of the documents is empty.
pub(super) fn equal_slots(a: &Signature<'_>, b: &Signature<'_>) -> Result<Option<usize>> {
    a.check_comparable(b)?;
    if a.header.empty || b.header.empty {
        return Ok(None);
    }
    let (slots, bits) = (usize::from(a.header.slots), u32::from(a.header.slot_bits));
    Ok(Some(kernels::count_equal(
        a.payload(),
        b.payload(),
        slots,
        bits,
    )))
}

/// The estimate of Jaccard similarity from the number of equal slots, within [0, 1].
///
/// This very expression decides `near_dup`, index and sequential scan alike.
pub fn similarity(equal: usize, slots: usize, slot_bits: u32) -> f64 {
    correct_for_chance(equal as f64 / slots as f64, slot_bits)
}

/// Packed slots agree by chance, too: (p - 2^-b) / (1 - 2^-b) (Li, König, WWW 2010).
pub(super) fn correct_for_chance(share: f64, slot_bits: u32) -> f64 {
    if slot_bits == 32 {
        return share;
    }
    let chance = 0.5f64.powi(slot_bits as i32);
    ((share - chance) / (1.0 - chance)).clamp(0.0, 1.0)
}

/// The smallest number of equal slots at which [`similarity`] reaches `threshold`; at most `slots`
/// for a threshold of at most 1. By search, because `ceil(t k)` errs (k = 200, t = 0.55).
pub fn equal_slots_needed(slots: usize, slot_bits: u32, threshold: f64) -> usize {
    let (mut low, mut high) = (0, slots);
    while low < high {
        let middle = (low + high) / 2;
        if similarity(middle, slots, slot_bits) >= threshold {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
