//! How to look for all similar pairs of a collection: which bands, and how many must be shared.

use super::curve::equal_slots_kept;
use super::hamming::subsets;
use super::pigeonhole::most_differing;
use super::{Bands, HammingBlocks, MAX_BLOCKS, MAX_KEYS};
use crate::{Error, Result};

/// The probability with which the bands, and again the prefilter, may lose a true pair where pairs are
/// verified by their documents: together they keep it with 0.999. Copies are kept or lost together.
const LOSS: f64 = 5e-4;

/// Bits that a band should hold, so that unrelated rows do not share it by chance.
const WIDE_BAND_BITS: usize = 64;

/// Bits that a key of bit strings should hold: enough to tell tens of millions of rows apart.
const WIDE_KEY_BITS: usize = 24;

/// Bands of signatures, and how many of them similar rows share at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub bands: Bands,
    pub needed: usize,
}

impl Plan {
    /// Plans for pairs whose estimate reaches `threshold`: none is missed. With at most m differing
    /// slots, b bands leave b - m intact. Twice as many bands as could differ, where they stay wide
    /// enough: a row then looks for partners in the rarer half of its bands only, so that text
    /// which many rows share costs nothing.
    pub fn estimate(slots: usize, slot_bits: u32, threshold: f64) -> Self {
        let differing = most_differing(slots, slot_bits, threshold);
        let wide = slots * slot_bits as usize / WIDE_BAND_BITS;
        let bands = (2 * (differing + 1))
            .min(wide)
            .max(Bands::for_threshold(slots, slot_bits, threshold).bands);
        Self {
            bands: Bands { slots, bands },
            needed: bands - differing,
        }
    }
}

/// Search for the pairs whose true Jaccard similarity reaches a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedPlan {
    pub plan: Plan,
    /// Fewer equal slots than this rule a pair out without a look at the documents.
    pub equal_slots: usize,
    /// No bands of this many slots keep 0.999 of the pairs.
    pub lossy: bool,
}

impl VerifiedPlan {
    /// Plans as few and wide bands as find a pair at the threshold with a probability of 1 - 5e-4:
    /// (1 - t^r)^b over bands of r slots, all slots used (23 bands of 5 and 6 slots at 0.8,
    /// 46 of 2 and 3 at 0.5 with 128 slots).
    pub fn new(slots: usize, threshold: f64) -> Self {
        let cut = |bands| Bands { slots, bands };
        let fits = |&bands: &usize| chance_of_no_band(&cut(bands), threshold) <= LOSS;
        let fewest = (1..=slots).find(fits);
        Self {
            plan: Plan {
                bands: cut(fewest.unwrap_or(slots)),
                needed: 1,
            },
            equal_slots: equal_slots_kept(threshold, slots, 1.0 - LOSS),
            lossy: fewest.is_none(),
        }
    }

    /// Returns whether most bands have a single slot: every shingle that many rows share makes them
    /// candidates.
    pub fn narrow(&self) -> bool {
        self.plan.bands.bands * 2 > self.plan.bands.slots && self.plan.bands.slots > 1
    }
}

fn chance_of_no_band(bands: &Bands, similarity: f64) -> f64 {
    (0..bands.bands)
        .map(|band| 1.0 - similarity.powi(bands.range(band).len() as i32))
        .product()
}

/// Returns the lowest threshold, to 2 decimals, at which no band of a verified plan has only one
/// slot.
pub fn lowest_wide_threshold(slots: usize) -> f64 {
    (1..100)
        .map(|percent| f64::from(percent) / 100.0)
        .find(|&threshold| !VerifiedPlan::new(slots, threshold).narrow())
        .unwrap_or(1.0)
}

/// Returns blocks of bit strings of `length` bits for pairs at most `distance` apart: the fewest
/// keys that hold enough bits each. None if all such strings are that close.
///
/// # Errors
/// `Invalid` for a negative distance, and for one that would take too many keys.
pub fn hamming_blocks(length: usize, distance: i64) -> Result<Option<HammingBlocks>> {
    let apart = usize::try_from(distance).map_err(|_| {
        Error::invalid(
            format!("distance {distance} is out of range"),
            "Valid distances are 0 and above.",
        )
    })?;
    if apart >= length {
        return Ok(None);
    }
    let wide = |&blocks: &usize| (blocks - apart) * length / blocks >= WIDE_KEY_BITS;
    let few = |&blocks: &usize| subsets(blocks, apart) <= MAX_KEYS as u128;
    let feasible = || (apart + 1..=MAX_BLOCKS.min(length)).filter(few);
    let blocks = feasible().find(wide).or_else(|| feasible().next_back());
    match blocks {
        Some(blocks) => HammingBlocks::new(distance, blocks as i64).map(Some),
        None => Err(Error::invalid(
            format!("no blocks serve a Hamming distance of {distance}"),
            format!("Valid distances are 0 to {}.", MAX_BLOCKS - 1),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minhash::equal_slots_needed;
    use proptest::prelude::*;

    fn widths(bands: &Bands) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..bands.bands).map(|i| bands.range(i).len()).collect();
        widths.sort_unstable();
        widths
    }

    #[test]
    fn verified_plans_have_the_computed_widths() {
        let plan = VerifiedPlan::new(128, 0.8);
        assert_eq!(
            widths(&plan.plan.bands),
            [[5; 10].as_slice(), &[6; 13]].concat()
        );
        assert_eq!(
            (plan.equal_slots, plan.lossy, plan.narrow()),
            (87, false, false)
        );
        let plan = VerifiedPlan::new(128, 0.5);
        assert_eq!(
            widths(&plan.plan.bands),
            [[2; 10].as_slice(), &[3; 36]].concat()
        );
        assert!(VerifiedPlan::new(128, 0.05).lossy);
        assert_eq!(lowest_wide_threshold(128), 0.34);
    }

    #[test]
    fn estimate_plans_for_common_thresholds() {
        let plan = |threshold| {
            let plan = Plan::estimate(128, 32, threshold);
            (plan.bands.bands, plan.needed)
        };
        assert_eq!(plan(0.8), (52, 27));
        assert_eq!(plan(0.9), (26, 14));
        assert_eq!(plan(0.5), (75, 11));
        assert_eq!(plan(1.0), (2, 2));
    }

    #[test]
    fn hamming_plans_hold_enough_bits() {
        let blocks = |length, distance| hamming_blocks(length, distance).unwrap().unwrap().blocks();
        assert_eq!(blocks(64, 3), 5);
        assert_eq!(blocks(64, 0), 1);
        assert_eq!(blocks(8, 2), 8);
        assert_eq!(blocks(256, 12), 14);
        assert_eq!(hamming_blocks(8, 8).unwrap(), None);
        assert!(hamming_blocks(64, -1).is_err());
        assert!(hamming_blocks(1000, 64).is_err());
    }

    proptest! {
        /// Whatever m slots differ, `needed` bands are intact, and m + 1 could break one more.
        #[test]
        fn estimate_plans_leave_the_needed_bands(
            slots in 1usize..300,
            bits in prop::sample::select(vec![1u32, 2, 4, 8, 16, 32]),
            threshold in 0.001f64..=1.0,
        ) {
            let plan = Plan::estimate(slots, bits, threshold);
            let differing = slots - equal_slots_needed(slots, bits, threshold);
            prop_assert!(plan.needed >= 1);
            prop_assert!(plan.bands.bands <= slots);
            prop_assert_eq!(plan.needed + differing, plan.bands.bands);
        }
    }
}
