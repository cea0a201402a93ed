//! Plans for finding all similar pairs of a collection: the bands, and the number of bands that similar rows share.

use super::hamming::subsets;
use super::pigeonhole::most_differing;
use super::tail::{MISSED, least_shared, shared_keys};
use super::{Bands, HammingBlocks, MAX_BLOCKS, MAX_KEYS};
use crate::error::out_of_range;
use crate::minhash::MAX_SLOTS;
use crate::{Error, Result};

/// The probability with which the bands may lose a pair of different documents. The fields may lose it with the same
/// probability.
const LOST: f64 = MISSED / 2.0;

/// Maximum number of bits of a slot's field. Fields are compared before documents. With 4 bits, one of 16 differing
/// slots seems equal; 8 bits would take twice the memory and save hardly any comparisons.
const FIELD_BITS: u8 = 4;

/// Minimum number of slots of signatures made for a search.
const FEW_SLOTS: usize = 128;
/// Number of slots above which no more are added just to save comparisons.
const MANY_SLOTS: usize = 256;

/// Maximum share of pairs at half the threshold that may be compared. More slots lower it.
const STRANGERS: f64 = 0.1;

/// Number of bits that a band should hold so that unrelated rows do not share it by chance.
const WIDE_BAND_BITS: usize = 64;

/// Number of bits that a key of bit strings should hold: enough to distinguish tens of millions of rows.
const WIDE_KEY_BITS: usize = 24;

/// Bands of signatures, and the minimum number of them that similar rows share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandPlan {
    pub bands: Bands,
    pub needed: usize,
}

impl BandPlan {
    /// Returns the plan for pairs whose estimate reaches `threshold`. It misses none of them. With at most m differing
    /// slots, b bands leave b - m intact. There are 2 (m + 1) bands, if they stay wide enough: then a row looks for
    /// partners only in the rarer half of its bands, so that text that many rows share costs nothing.
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

/// A search for the pairs whose true Jaccard similarity reaches a threshold. The documents of rows that share a band
/// and have enough equal fields are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedPlan {
    pub bands: Bands,
    /// Number of bits of a slot's field.
    pub field_bits: u8,
    /// With fewer equal fields, a pair is excluded without reading its documents.
    pub equal_fields: usize,
    /// True if bands of signatures with this many slots would lose more than the allowed share of pairs.
    pub lossy: bool,
}

impl VerifiedPlan {
    /// Returns the plan with the fewest and widest bands that miss a pair at the threshold with a probability of at
    /// most half of 1e-9. That probability is (1 - t^r)^b over bands of r slots, with all slots used (36 bands of 3 and
    /// 4 slots at 0.8 with 128 slots). The fields may miss the pair with the other half. Slots are filled without
    /// replacement, so both lose fewer pairs than independent slots would.
    pub fn new(slots: usize, slot_bits: u8, threshold: f64) -> Self {
        let cut = |bands| Bands { slots, bands };
        let fits = |&bands: &usize| chance_of_no_band(&cut(bands), threshold) <= LOST;
        let fewest = (1..=slots).find(fits);
        let field_bits = slot_bits.min(FIELD_BITS);
        Self {
            bands: cut(fewest.unwrap_or(slots)),
            field_bits,
            equal_fields: least_shared(slots, field_equal(threshold, field_bits), LOST),
            lossy: fewest.is_none(),
        }
    }

    /// Returns the number of slots for signatures made for the search. Lower thresholds need more.
    pub fn slots(threshold: f64) -> usize {
        let serves = |&slots: &usize| {
            let plan = Self::new(slots, FIELD_BITS, threshold);
            let equal = shared_keys(slots, field_equal(threshold / 2.0, FIELD_BITS));
            let strangers: f64 = equal.skip(plan.equal_fields).sum();
            !plan.lossy && (strangers <= STRANGERS || slots >= MANY_SLOTS)
        };
        let mut choices = (FEW_SLOTS..=MAX_SLOTS).step_by(64);
        choices.find(serves).unwrap_or(MAX_SLOTS)
    }

    /// Returns the number of slots for signatures that may be compared with stored ones: the default number, unless
    /// with it bands would lose too many pairs at `threshold`.
    pub fn slots_as_stored(threshold: f64) -> usize {
        match Self::new(FEW_SLOTS, FIELD_BITS, threshold).lossy {
            false => FEW_SLOTS,
            true => Self::slots(threshold),
        }
    }

    /// Returns whether most bands have a single slot. In that case, every shingle that many rows share makes them
    /// candidates.
    pub fn narrow(&self) -> bool {
        self.bands.bands * 2 > self.bands.slots && self.bands.slots > 1
    }
}

fn chance_of_no_band(bands: &Bands, similarity: f64) -> f64 {
    (0..bands.bands)
        .map(|band| 1.0 - similarity.powi(bands.range(band).len() as i32))
        .product()
}

/// Returns the probability that two rows of Jaccard `similarity` have equal fields of `bits` bits for a slot.
fn field_equal(similarity: f64, bits: u8) -> f64 {
    similarity + (1.0 - similarity) / f64::from(1u32 << bits)
}

/// Returns blocks of bit strings of `length` bits for pairs at most `distance` apart, with the fewest keys that hold
/// enough bits each. Returns None if all strings of `length` bits are that close.
///
/// # Errors
/// `Invalid` if the distance is negative or would take too many keys.
pub fn hamming_blocks(length: usize, distance: i64) -> Result<Option<HammingBlocks>> {
    let apart = usize::try_from(distance);
    let apart = apart.map_err(|_| out_of_range("distance", &distance, "0 and above"))?;
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
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;
    use crate::hash::{GOLDEN, split_mix};
    use crate::minhash::{Header, Signature, Sketch, equal_slots_needed};
    use crate::shingle::Shingling;
    use crate::text::{Fold, Unit};
    use proptest::prelude::*;

    fn widths(bands: &Bands) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..bands.bands).map(|i| bands.range(i).len()).collect();
        widths.sort_unstable();
        widths
    }

    #[test]
    fn verified_plans_have_the_computed_widths() {
        let plan = VerifiedPlan::new(128, 32, 0.8);
        assert_eq!(widths(&plan.bands), [[3; 16].as_slice(), &[4; 20]].concat());
        assert_eq!((plan.field_bits, plan.equal_fields), (4, 74));
        assert!(!plan.lossy && !plan.narrow());
        assert_eq!(VerifiedPlan::new(128, 1, 0.8).equal_fields, 90);
        assert!(VerifiedPlan::new(128, 32, 0.15).lossy);
        let slots = [1.0, 0.8, 2.0 / 3.0, 0.6, 0.5, 0.3, 0.08, 0.03, 0.01];
        let wanted = [128, 128, 192, 192, 256, 256, 320, 704, 1024];
        assert_eq!(slots.map(VerifiedPlan::slots), wanted);
        let narrow = |threshold| VerifiedPlan::new(256, 32, threshold).narrow();
        assert_eq!([0.5, 0.4, 0.3].map(narrow), [false, false, true]);
    }

    /// Returns how many of `trials` pairs of sets of resemblance `threshold` share no band, and how many have fewer
    /// than `equal` equal fields.
    fn lost(plan: &VerifiedPlan, union: u64, threshold: f64, trials: u64) -> [f64; 2] {
        let slots = plan.bands.slots;
        let other = (union as f64 * (1.0 - threshold)).round() as u64;
        let mut lost = [0.0; 2];
        for trial in 0..trials {
            let sketch = |elements: &mut dyn Iterator<Item = u64>| {
                let hash = |element: u64| {
                    split_mix((trial << 20 | element).wrapping_mul(GOLDEN).wrapping_add(1))
                };
                let mut sketch = Sketch::new(slots);
                sketch.add(&elements.map(hash).collect::<Vec<_>>());
                let shingling = Shingling::new(3, Unit::Word, Fold::Case).unwrap();
                let header = Header::of_document(&shingling, slots, 0);
                let stored = sketch.encode(header);
                let signature = Signature::from_bytes(&stored).unwrap();
                signature.slots().collect::<Vec<u32>>()
            };
            let both = union - other;
            let a = sketch(&mut (0..both + other / 2));
            let b = sketch(&mut (0..both).chain(both + other / 2..union));
            let intact = |band| plan.bands.range(band).all(|slot| a[slot] == b[slot]);
            lost[0] += f64::from(!(0..plan.bands.bands).any(intact)) / trials as f64;
            let fields = a.iter().zip(&b).filter(|(a, b)| (**a ^ **b) & 15 == 0);
            lost[1] += f64::from(fields.count() < plan.equal_fields) / trials as f64;
        }
        lost
    }

    /// Bands and fields lose pairs of sets of every size less often than computed, where the formula predicts enough
    /// losses to be seen.
    #[test]
    fn pairs_at_the_threshold_are_lost_more_seldom_than_computed() {
        for (threshold, bands) in [(0.5, 40), (2.0 / 3.0, 28), (0.8, 20), (0.9, 12)] {
            let bands = Bands { slots: 128, bands };
            let chance = chance_of_no_band(&bands, threshold);
            let equal_fields = least_shared(128, field_equal(threshold, 4), chance);
            let plan = VerifiedPlan {
                bands,
                equal_fields,
                ..VerifiedPlan::new(128, 32, threshold)
            };
            for union in [10, 20, 60, 300, 1500] {
                let trials = 1000;
                let found = lost(&plan, union, threshold, trials);
                let most = chance + 5.0 * (chance / trials as f64).sqrt();
                assert!(
                    found.iter().all(|&found| found <= most),
                    "{threshold}, {union} elements: {found:?} are lost, not {chance}"
                );
            }
        }
    }

    #[test]
    fn estimate_plans_for_common_thresholds() {
        let plan = |threshold| {
            let plan = BandPlan::estimate(128, 32, threshold);
            (plan.bands.bands, plan.needed)
        };
        let plans = [0.5, 0.8, 0.9, 1.0].map(plan);
        assert_eq!(plans, [(75, 11), (52, 27), (26, 14), (2, 2)]);
    }

    #[test]
    fn hamming_plans_hold_enough_bits() {
        let blocks = |(length, of)| hamming_blocks(length, of).unwrap().unwrap().blocks;
        let of = [(64, 3), (64, 0), (8, 2), (256, 12)];
        assert_eq!(of.map(blocks), [5, 1, 8, 14]);
        assert_eq!(hamming_blocks(8, 8).unwrap(), None);
        assert!(hamming_blocks(64, -1).is_err());
        assert!(hamming_blocks(1000, 64).is_err());
    }

    proptest! {
        /// If any m slots differ, `needed` bands are intact; m + 1 differing slots could break one more.
        #[test]
        fn estimate_plans_leave_the_needed_bands(
            slots in 1usize..300,
            bits in prop::sample::select(vec![1u32, 2, 4, 8, 16, 32]),
            threshold in 0.001f64..=1.0,
        ) {
            let plan = BandPlan::estimate(slots, bits, threshold);
            let differing = slots - equal_slots_needed(slots, bits, threshold);
            prop_assert!(plan.needed >= 1);
            prop_assert!(plan.bands.bands <= slots);
            prop_assert_eq!(plan.needed + differing, plan.bands.bands);
        }
    }
}
