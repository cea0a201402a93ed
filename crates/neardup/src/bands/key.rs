//! The hash of one band.
//!
//! Scheme 1, frozen by known-answer vectors because indexes store it. With `finish` and
//! `split_mix` of [`crate::hash`], additions modulo 2^64:
//! - digest of the parameters: `finish(finish(w0) ^ seed_id)`, where w0 holds, from its low end, 8 bits of unit code,
//!   16 of k, 16 of the number of slots, 8 of bits per slot, 8 of fold code;
//! - band: start with `digest + GOLDEN * (number of bands * 2^16 + band)`; take the band's slots
//!   as little-endian 64-bit words, the last padded with zeros, `h = finish(h ^ word)`; the result
//!   is `split_mix(h + number of bytes)`. Slots of fewer than 8 bits take one byte each.

use super::Bands;
use crate::hash::{GOLDEN, finish, split_mix};
use crate::kernels::first_bytes;
use crate::minhash::{Header, MAX_SLOTS, Signature};

/// Returns the digest of everything that makes signatures comparable. Emptiness is not part of it.
pub fn header_digest(header: &Header) -> u64 {
    let parameters = header.unit as u64
        | u64::from(header.k) << 8
        | u64::from(header.slots) << 24
        | u64::from(header.slot_bits) << 40
        | (header.fold as u64) << 48;
    finish(finish(parameters) ^ header.seed_id)
}

/// Returns the hash of band number `band` of `bands`. It is well mixed in every bit, so any part of it can serve as a
/// shorter key. Takes about 3 ns for 16 bytes of slots. Every step is a bijection of the state: bands of at most 8
/// bytes never collide within one partition.
#[inline]
pub fn band_hash(header_digest: u64, bands: usize, band: usize, slots: &[u8]) -> u64 {
    let place = (bands << 16 | band) as u64;
    let (words, rest) = slots.as_chunks::<8>();
    let mut hash = words.iter().fold(
        header_digest.wrapping_add(GOLDEN.wrapping_mul(place)),
        |hash, word| finish(hash ^ u64::from_le_bytes(*word)),
    );
    if !rest.is_empty() {
        hash = finish(hash ^ u64::from_le_bytes(first_bytes(rest)));
    }
    split_mix(hash.wrapping_add(slots.len() as u64))
}

/// Returns one hash for each band, in order; none for an empty document. The signature must have at least as many slots
/// as `bands` uses.
pub fn band_hashes<'a>(
    signature: &Signature<'a>,
    bands: &Bands,
) -> impl Iterator<Item = u64> + use<'a> {
    let (signature, bands) = (*signature, *bands);
    let digest = header_digest(&signature.header);
    let unpacked = unpacked(&signature);
    let empty = signature.header.empty;
    let stored = if empty { 0 } else { bands.bands };
    (0..stored).map(move |band| {
        let slots = bands.range(band);
        let bytes = match &unpacked {
            Some(slot_bytes) => &slot_bytes[slots],
            None => {
                let width = usize::from(signature.header.slot_bits) / 8;
                &signature.payload[slots.start * width..slots.end * width]
            }
        };
        band_hash(digest, bands.bands, band, bytes)
    })
}

/// Returns the keys for a B-tree: [`band_hashes`] as signed numbers.
pub fn band_keys<'a>(
    signature: &Signature<'a>,
    bands: &Bands,
) -> impl Iterator<Item = i64> + use<'a> {
    band_hashes(signature, bands).map(|hash| hash as i64)
}

/// Returns slots of fewer than 8 bits as one byte each, because their bands need not begin at a byte. Returns None for
/// wider slots.
fn unpacked(signature: &Signature) -> Option<Box<[u8; MAX_SLOTS]>> {
    (signature.header.slot_bits < 8).then(|| {
        let mut bytes = Box::new([0; MAX_SLOTS]);
        for (byte, slot) in bytes.iter_mut().zip(signature.slots()) {
            *byte = slot as u8;
        }
        bytes
    })
}
