//! Bands that use every slot once, so that close signatures must agree in some of them.
//!
//! Two signatures that differ in at most m of k slots differ in at most m of b disjoint bands:
//! they agree entirely in at least b - m.

use super::key;
use crate::minhash::{Signature, equal_slots_needed};
use std::ops::Range;

/// A cut of the slots of a signature into consecutive bands of almost equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bands {
    pub slots: usize,
    pub bands: usize,
}

impl Bands {
    /// The bands that an index for `threshold`, 0 < threshold <= 1, stores: with at most m
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

    /// The slots of band `band`, counted from 0.
    pub fn range(&self, band: usize) -> Range<usize> {
        // 32-bit divisions take half the time, and two of them most of the hash's.
        let start = |band: usize| (band * self.slots) as u32 / self.bands as u32;
        start(band) as usize..start(band + 1) as usize
    }

    /// How many bands at least are intact in a pair whose estimate reaches `threshold`. Zero or
    /// less: such a pair may have no intact band, and these bands cannot find it.
    pub fn intact_needed(&self, slot_bits: u32, threshold: f64) -> i64 {
        let differing = most_differing(self.slots, slot_bits, threshold);
        self.bands as i64 - differing as i64
    }

    /// The smallest number of bands of which every pair at or above `threshold` shares one,
    /// whichever bands are taken. None where [`Self::intact_needed`] is not positive.
    pub fn probes_needed(&self, slot_bits: u32, threshold: f64) -> Option<usize> {
        let probes = most_differing(self.slots, slot_bits, threshold) + 1;
        (probes <= self.bands).then_some(probes)
    }
}

/// The most slots in which two signatures may differ whose estimate reaches `threshold`.
fn most_differing(slots: usize, slot_bits: u32, threshold: f64) -> usize {
    slots - equal_slots_needed(slots, slot_bits, threshold)
}

/// One hash a band, in order of the bands. `bands` is for the signature's number of slots.
/// An empty document has no bands.
pub fn band_hashes<'a>(
    signature: &Signature<'a>,
    bands: &Bands,
) -> impl Iterator<Item = u64> + use<'a> {
    let bands = *bands;
    key::hashes(*signature, bands.bands, move |band| bands.range(band))
}

/// The keys that a B-tree stores: [`band_hashes`] as signed numbers.
pub fn band_keys<'a>(
    signature: &Signature<'a>,
    bands: &Bands,
) -> impl Iterator<Item = i64> + use<'a> {
    band_hashes(signature, bands).map(|hash| hash as i64)
}
