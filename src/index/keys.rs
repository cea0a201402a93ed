//! The keys of signatures and bit strings: two values that are near each other share some.
//!
//! A value cut into b parts that differs from another in at most m places agrees with it in at least
//! b - m parts; the hashes of the parts are the keys.
#![allow(clippy::disallowed_methods, reason = "at most 1024 keys")]

use crate::options;
use bitvec::prelude::*;
use neardup::bands::{Bands, HammingBlocks, Occurrence, band_hashes};
use neardup::minhash::{Header, Signature, is_estimate_between};

/// The keys of signatures for lookups at or above a threshold: one for each pigeonhole band. Which
/// bands a signature has depends on its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct MinhashKeys {
    threshold: f64,
}

impl MinhashKeys {
    /// Returns None for a threshold out of range.
    pub fn new(threshold: f64) -> Option<Self> {
        options::is_threshold(threshold).then_some(Self { threshold })
    }

    fn bands(&self, header: &Header) -> Bands {
        let slots = usize::from(header.slots);
        Bands::for_threshold(slots, u32::from(header.slot_bits), self.threshold)
    }

    /// Returns the keys of a signature, one a band; none if it is empty.
    pub fn of(&self, signature: &Signature<'_>) -> Vec<u64> {
        band_hashes(signature, &self.bands(&signature.header)).collect()
    }

    /// Returns how many keys every signature at or above `threshold` shares with one of these
    /// parameters; None if it may share none.
    pub fn occurrence(&self, header: &Header, threshold: f64) -> Option<Occurrence> {
        self.bands(header)
            .occurrence(u32::from(header.slot_bits), threshold)
    }

    /// Returns [`Self::occurrence`] at the threshold that the keys are made for.
    pub fn own_occurrence(&self, header: &Header) -> Option<Occurrence> {
        self.occurrence(header, self.threshold)
    }

    /// Returns the greatest similarity of two signatures that share `shared` keys.
    pub fn greatest_similarity(&self, header: &Header, shared: usize) -> f64 {
        self.bands(header)
            .greatest_similarity(u32::from(header.slot_bits), shared)
    }

    /// Returns the threshold that the keys are made for.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Returns whether lookups at `threshold` find everything by the keys: those for signatures of
    /// these parameters or, without any, those for all. A threshold that is lower by a rounding is
    /// reached by the same numbers of equal slots.
    pub fn serve(&self, header: Option<&Header>, threshold: f64) -> bool {
        threshold >= self.threshold
            || match header {
                Some(header) => self.occurrence(header, threshold).is_some(),
                None => !is_estimate_between(threshold, self.threshold),
            }
    }
}

/// The keys of bit strings for lookups up to a Hamming distance: one for each block.
#[derive(Debug, Clone, Copy)]
pub struct HammingKeys(HammingBlocks);

impl HammingKeys {
    /// Returns the keys for lookups up to `distance`.
    ///
    /// # Errors
    /// `Invalid` unless 0 <= distance < 64.
    pub fn new(distance: i32) -> neardup::Result<Self> {
        let distance = i64::from(distance);
        HammingBlocks::new(distance, distance + 1).map(Self)
    }

    /// Returns the keys of a bit string, one a block.
    pub fn of(&self, bits: &BitSlice<u8, Msb0>) -> Vec<u64> {
        self.0.block_hashes(bits).collect()
    }

    /// Returns how many keys all bit strings within `distance` share; None if they may share none.
    pub fn occurrence(&self, distance: u32) -> Option<Occurrence> {
        self.0.occurrence(distance as usize)
    }

    /// Returns [`Self::occurrence`] for the distance that the keys are made for.
    pub fn own_occurrence(&self) -> Option<Occurrence> {
        self.0.occurrence(self.0.distance())
    }

    /// Returns the least distance of two bit strings that share `shared` keys.
    pub fn least_distance(&self, shared: usize) -> usize {
        self.0.least_distance(shared)
    }

    /// Returns the distance that the keys are made for.
    pub fn distance(&self) -> u32 {
        self.0.distance() as u32
    }
}
