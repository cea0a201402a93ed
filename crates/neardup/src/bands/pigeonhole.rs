//! Bands that use every slot once, so that close signatures must agree in some of them (the lemma
//! of [`super::occurrence`]).

use super::key;
use super::occurrence::{Occurrence, least_differing};
use crate::minhash::{Signature, equal_slots_needed, similarity};
use std::ops::Range;

/// A cut of the slots of a signature into consecutive bands of almost equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bands {
    pub slots: usize,
    pub bands: usize,
}

impl Bands {
    /// Returns the bands that an index for `threshold`, 0 < threshold <= 1, stores: with at most m
    /// differing slots, m + 1 bands would leave one intact; m / 6 more leave several, and counting
    /// them spares most false candidates (at Jaccard 0.3, 128 slots and threshold 0.8 it takes the
    /// chance of becoming a candidate from 0.072 to 1.5e-6).
    pub fn for_threshold(slots: usize, slot_bits: u32, threshold: f64) -> Self {
        let differing = most_differing(slots, slot_bits, threshold);
        Self {
            slots,
            bands: slots.min(differing + 1 + differing / 6),
        }
    }

    /// Returns the slots of band `band`, counted from 0.
    pub fn range(&self, band: usize) -> Range<usize> {
        // 32-bit divisions take half the time, and two of them most of the hash's.
        let start = |band: usize| (band * self.slots) as u32 / self.bands as u32;
        start(band) as usize..start(band + 1) as usize
    }

    /// Returns how many bands the signatures whose estimate reaches `threshold` share with a query;
    /// `None` where they may share none, so that these bands cannot find them.
    pub fn occurrence(&self, slot_bits: u32, threshold: f64) -> Option<Occurrence> {
        Occurrence::within(self.bands, most_differing(self.slots, slot_bits, threshold))
    }

    /// Returns the greatest estimate of a pair that shares `shared` of these bands: [`similarity`],
    /// which decides elsewhere too, of the slots that can be equal at most.
    pub fn greatest_similarity(&self, slot_bits: u32, shared: usize) -> f64 {
        let equal = self.slots - least_differing(self.bands, shared);
        similarity(equal, self.slots, slot_bits)
    }
}

/// Returns the most slots in which two signatures may differ whose estimate reaches `threshold`.
pub(super) fn most_differing(slots: usize, slot_bits: u32, threshold: f64) -> usize {
    slots - equal_slots_needed(slots, slot_bits, threshold)
}

/// Returns one hash a band, in order of the bands. `bands` is for the signature's number of slots.
/// An empty document has no bands.
pub fn band_hashes<'a>(
    signature: &Signature<'a>,
    bands: &Bands,
) -> impl Iterator<Item = u64> + use<'a> {
    let bands = *bands;
    key::hashes(*signature, bands.bands, move |band| bands.range(band))
}

/// Returns the keys that a B-tree stores: [`band_hashes`] as signed numbers.
pub fn band_keys<'a>(
    signature: &Signature<'a>,
    bands: &Bands,
) -> impl Iterator<Item = i64> + use<'a> {
    band_hashes(signature, bands).map(|hash| hash as i64)
}
