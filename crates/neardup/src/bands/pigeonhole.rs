//! Bands that use every slot once, so that similar signatures agree in some of them (the lemma of
//! [`super::occurrence`]).

use super::occurrence::Occurrence;
use crate::minhash::{equal_slots_needed, similarity};
use crate::{Error, Result};
use std::ops::Range;

/// A cut of the slots of a signature into consecutive bands of almost equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bands {
    pub slots: usize,
    pub bands: usize,
}

impl Bands {
    /// Returns the bands that an index stores for `threshold`, with 0 < threshold <= 1. With at most m differing slots,
    /// m + 1 bands would leave one intact. A further m / 6 bands leave more than one intact, and counting the intact
    /// ones avoids most false candidates. At Jaccard 0.3, 128 slots and threshold 0.8, the chance of becoming a
    /// candidate falls from 0.072 to 1.5e-6.
    pub fn for_threshold(slots: usize, slot_bits: u32, threshold: f64) -> Self {
        let differing = most_differing(slots, slot_bits, threshold);
        Self {
            slots,
            bands: slots.min(differing + 1 + differing / 6),
        }
    }

    /// Returns `bands` bands of `rows` slots each, without the slots after the last band: the classic scheme (Broder
    /// 1997; Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", section 3.4). Documents of Jaccard
    /// similarity s share a band with probability 1 - (1 - s^r)^b.
    ///
    /// # Errors
    /// `Invalid` unless both are positive and the bands fit into `slots` slots.
    pub fn classic(bands: i64, rows: i64, slots: usize) -> Result<Self> {
        let used = bands.checked_mul(rows);
        match used.map(usize::try_from) {
            Some(Ok(used)) if bands > 0 && rows > 0 && used <= slots => Ok(Self {
                slots: used,
                bands: bands as usize,
            }),
            _ => Err(Error::invalid(
                format!("{bands} bands of {rows} rows do not fit into {slots} slots"),
                format!(
                    "There must be at least 1 band and 1 row, and their product can be at most the number \
                     of slots, {slots}."
                ),
            )),
        }
    }

    /// Returns the slots of band `band`, counted from 0.
    pub fn range(&self, band: usize) -> Range<usize> {
        // 32-bit divisions take half the time, and two of them take most of the time of the hash.
        let start = |band: usize| (band * self.slots) as u32 / self.bands as u32;
        start(band) as usize..start(band + 1) as usize
    }

    /// Returns how many bands a signature shares with a query if their estimate reaches `threshold`, or `None` if it
    /// may share none, so these bands cannot find it.
    pub fn occurrence(&self, slot_bits: u32, threshold: f64) -> Option<Occurrence> {
        Occurrence::within(self.bands, most_differing(self.slots, slot_bits, threshold))
    }

    /// Returns the maximum estimate of a pair that shares `shared` bands: the [`similarity`] for the maximum number of
    /// equal slots. Other decisions use the same [`similarity`].
    pub fn greatest_similarity(&self, slot_bits: u32, shared: usize) -> f64 {
        let equal = self.slots - self.bands.saturating_sub(shared);
        similarity(equal, self.slots, slot_bits)
    }
}

/// Returns the maximum number of slots in which two signatures whose estimate reaches `threshold` can differ.
pub(super) fn most_differing(slots: usize, slot_bits: u32, threshold: f64) -> usize {
    slots - equal_slots_needed(slots, slot_bits, threshold)
}
