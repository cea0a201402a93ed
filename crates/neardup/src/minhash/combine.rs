//! New signatures from old ones (unions and packing), and from slots made elsewhere.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "at most MAX_SLOTS slots")]

use super::{Header, MAX_SLOTS, Signature, SignatureUnit, Sketch, is_slot_bits};
use crate::hash::Key;
use crate::{Error, Result};

/// Returns the stored signature of the union of the sets of `a` and `b`, bit for bit as if it were made from the union
/// itself.
///
/// # Errors
/// `Incomparable` if the parameters differ, `Invalid` for packed signatures.
pub fn union(a: &Signature<'_>, b: &Signature<'_>) -> Result<Vec<u8>> {
    a.header.check_comparable(&b.header)?;
    check_full_width(a)?;
    let mut sketch = Sketch(a.slots().collect::<Vec<_>>());
    sketch.merge(&b.slots().collect::<Vec<_>>());
    Ok(sketch.encode(a.header))
}

/// Rejects packed signatures, because their slots have no order.
///
/// # Errors
/// `Invalid` for packed signatures.
pub fn check_full_width(signature: &Signature<'_>) -> Result<()> {
    let bits = signature.header.slot_bits;
    if bits == 32 {
        return Ok(());
    }
    Err(Error::invalid(
        format!("a signature packed to {bits} bits per slot is too coarse for this function"),
        "Only signatures of 32 bits per slot have a union, a containment and a cardinality: pack last.",
    ))
}

/// Returns the stored signature with only the low `bits` bits of each slot.
///
/// # Errors
/// `Invalid` unless `bits` is 1, 2, 4, 8, 16 or 32 and no more than the signature has.
pub fn pack(signature: &Signature<'_>, bits: i64) -> Result<Vec<u8>> {
    let from = signature.header.slot_bits;
    match u8::try_from(bits) {
        Ok(slot_bits) if is_slot_bits(slot_bits) && slot_bits <= from => {
            let mut header = signature.header;
            header.slot_bits = slot_bits;
            Ok(header.encode(&signature.slots().collect::<Vec<_>>()))
        }
        _ => Err(Error::invalid(
            format!("slots of {from} bits cannot be packed to {bits}"),
            "Valid values are 1, 2, 4, 8, 16 and 32, up to the bits that the signature has.",
        )),
    }
}

/// Returns the stored signature of slots that were computed elsewhere, each the smallest of 32-bit hashes. Only
/// signatures of one `source` (tool, parameters and seed) are comparable. If all slots are `u32::MAX`, the document
/// is empty.
///
/// # Errors
/// `Invalid` unless there are 1 to 1024 slots and each is a 32-bit number.
pub fn import(slots: &[i64], source: &[u8]) -> Result<Vec<u8>> {
    if !(1..=MAX_SLOTS).contains(&slots.len()) {
        return Err(Error::invalid(
            format!("{} slots are out of range", slots.len()),
            format!("Valid numbers of slots are 1 to {MAX_SLOTS}."),
        ));
    }
    let narrow = |slot: &i64| {
        u32::try_from(*slot).map_err(|_| {
            Error::invalid(
                format!("slot {slot} is out of range"),
                "Valid slots are 0 to 4294967295; of 64-bit hashes, keep the upper 32 bits, as in (hash >> 32) & 4294967295.",
            )
        })
    };
    let slots = slots.iter().map(narrow).collect::<Result<Vec<u32>>>()?;
    let source = Key::from_seed(0).token_hash(source);
    let header = Header::of_set(SignatureUnit::Imported, 1, slots.len(), source);
    Ok(Sketch(slots).encode(header))
}

/// Returns the slots as a string of bits, each slot with its highest bit first. Each byte is filled from its highest
/// bit down; unused bits of the last byte are 0.
pub fn bits(signature: &Signature<'_>) -> Vec<u8> {
    let width = u32::from(signature.header.slot_bits);
    if width >= 8 {
        let bytes = |slot: u32| (0..width / 8).rev().map(move |i| (slot >> (8 * i)) as u8);
        return signature.slots().flat_map(bytes).collect();
    }
    let mut packed = vec![0; signature.payload.len()];
    for (i, slot) in signature.slots().enumerate() {
        let end = (i as u32 + 1) * width;
        packed[(end - 1) as usize / 8] |= (slot << (end.next_multiple_of(8) - end)) as u8;
    }
    packed
}
