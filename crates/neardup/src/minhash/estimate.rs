//! What two signatures say about the resemblance of their documents.

use crate::Result;
use crate::kernels;
use crate::minhash::Signature;
use crate::minhash::signature::{HEADER_LEN, Header};

/// The estimated Jaccard similarity of the two documents; 0 if one of them is empty.
///
/// # Errors
/// `Incomparable` if the signatures were made with different parameters.
pub fn estimate(a: &Signature<'_>, b: &Signature<'_>) -> Result<f64> {
    let (slots, bits) = (usize::from(a.header.slots), u32::from(a.header.slot_bits));
    Ok(equal_slots(a, b)?.map_or(0.0, |equal| similarity(equal, slots, bits)))
}

/// [`estimate`] of two stored values.
///
/// # Errors
/// `Corrupt`; `Incomparable` if the signatures were made with different parameters.
#[inline]
pub fn estimate_stored(a: &[u8], b: &[u8]) -> Result<f64> {
    match estimate_alike(a, b) {
        Some(estimate) => Ok(estimate),
        None => estimate(&Signature::from_bytes(a)?, &Signature::from_bytes(b)?),
    }
}

/// [`near_duplicates`] of two stored values.
///
/// # Errors
/// `Corrupt`.
#[inline]
pub fn near_duplicates_stored(a: &[u8], b: &[u8], threshold: f64) -> Result<bool> {
    Ok(match estimate_alike(a, b) {
        Some(estimate) => estimate >= threshold,
        None => near_duplicates(
            &Signature::from_bytes(a)?,
            &Signature::from_bytes(b)?,
            threshold,
        ),
    })
}

/// The estimate where the headers agree byte by byte, as those of a table's rows do, so that one of
/// them is read: reading and comparing both takes longer than comparing 128 slots. `None` for empty
/// documents and corrupt values.
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
    let (slots, bits) = (usize::from(header.slots), u32::from(header.slot_bits));
    let equal = kernels::count_equal(a_slots, b_slots, slots, bits);
    Some(similarity(equal, slots, bits))
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
#[inline]
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
