//! The keys of documents. Two documents that resemble each other share some keys with a chosen probability; the
//! index then compares the documents themselves.
//!
//! The keys are the hashes of [`BANDS`] bands of r slots of a MinHash signature that is not stored. A pair of
//! resemblance t shares each band with probability t^r. So it shares at least T of them, except for the lower tail
//! of the binomial distribution; T is the greatest number for which that tail is at most [`MISSED`]. The slots of a
//! sketch are filled without replacement, so that the number of shared bands varies less than the binomial's: the
//! tail is an upper bound (Dahlgaard, Knudsen, Thorup, "Fast Similarity Sketching", FOCS 2017, theorem 1, for slots;
//! simulated for bands below). Equal sets share all bands.
//!
//! Scheme 1, frozen by known-answer vectors because indexes store the keys: band hashes of the signature
//! of 64 r slots of the shingle hashes with seed 0; another seed s replaces each hash h by
//! `split_mix(h ^ split_mix(s))`.

use super::tail::{MISSED, least_shared, shared_keys};
use super::{Bands, Occurrence, band_hashes};
use crate::Result;
use crate::hash::split_mix;
use crate::memory::{Grow, collected, with_room};
use crate::minhash::{Header, Signature, Sketch};
use crate::shingle::{BLOCK, Key, Shingling, for_each_block};
use std::cell::Cell;

/// Bands of a document, one key each.
pub const BANDS: usize = 64;

/// The lowest threshold for which keys are made. At this threshold, one in five documents that share a tenth of
/// their shingles with the query is a candidate; at lower thresholds, most are.
pub const LOWEST_THRESHOLD: f64 = 0.5;

/// The most slots of a band: with more, signing takes longer and there are no fewer candidates.
const MOST_ROWS: usize = 4;

thread_local! {
    /// The last threshold and its number of slots of a band, because the indexes of all partitions ask for the same.
    static CHOSEN: Cell<(f64, usize)> = const { Cell::new((1.0, MOST_ROWS)) };
}

/// The keys of documents for lookups at or above a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentKeys {
    shingling: Shingling,
    seed: i64,
    /// The number of slots of a band.
    rows: usize,
}

impl DocumentKeys {
    /// Returns the keys for `threshold` with which the fewest pairs of half that resemblance share enough keys; None
    /// outside [`LOWEST_THRESHOLD`] to 1.
    pub fn new(shingling: Shingling, threshold: f64, seed: i64) -> Option<Self> {
        let is_served = (LOWEST_THRESHOLD..=1.0).contains(&threshold);
        let rows = is_served.then(|| rows_for(threshold))??;
        Some(Self {
            shingling,
            seed,
            rows,
        })
    }

    pub fn shingling(&self) -> &Shingling {
        &self.shingling
    }

    /// Returns the number of slots of a band.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns how many keys documents with a resemblance of at least `threshold` share, except with a probability
    /// of [`MISSED`]; None if they may share none.
    pub fn occurrence(&self, threshold: f64) -> Option<Occurrence> {
        let shared = band_shared(threshold.min(1.0), self.rows);
        Occurrence::likely(BANDS, shared, MISSED)
    }

    /// Returns the keys of a document in UTF-8; none if it is empty. `check` is called at least every 64 KiB of the
    /// document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn of_document(&self, doc: &[u8], check: &mut dyn FnMut()) -> Result<Vec<u64>> {
        self.of_hashes(&mut |sketch| {
            for_each_block(doc, &self.shingling, &Key::from_seed(0), &mut |hashes| {
                check();
                self.add(sketch, hashes)
            })
        })
    }

    /// Returns the keys of [`Self::of_document`] for a document with this set of shingle hashes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn of_set(&self, set: &[i64], check: &mut dyn FnMut()) -> Result<Vec<u64>> {
        let mut block = with_room(set.len().min(BLOCK))?;
        self.of_hashes(&mut |sketch| {
            set.chunks(BLOCK).try_for_each(|hashes| {
                check();
                block.clear();
                block.try_extend(hashes.iter().map(|&hash| hash as u64))?;
                self.add(sketch, &block)
            })
        })
    }

    fn of_hashes(&self, add_all: &mut dyn FnMut(&mut Sketch) -> Result<()>) -> Result<Vec<u64>> {
        let slots = BANDS * self.rows;
        let mut sketch = Sketch::new(slots);
        add_all(&mut sketch)?;
        let seed_id = Key::from_seed(self.seed).id();
        let stored = sketch.encode(Header::of_document(&self.shingling, slots, seed_id));
        let signature = Signature::from_bytes(&stored)?;
        let bands = Bands {
            slots,
            bands: BANDS,
        };
        collected(band_hashes(&signature, &bands))
    }

    fn add(&self, sketch: &mut Sketch, hashes: &[u64]) -> Result<()> {
        if self.seed == 0 {
            sketch.add(hashes);
        } else {
            let seed = split_mix(self.seed as u64);
            let hashes = hashes.iter().map(|hash| split_mix(hash ^ seed));
            sketch.add(&collected::<u64>(hashes)?);
        }
        Ok(())
    }
}

/// Returns the number of slots of a band with which the fewest pairs of half the threshold's resemblance share
/// enough bands.
fn rows_for(threshold: f64) -> Option<usize> {
    let (known, rows) = CHOSEN.get();
    if known == threshold {
        return Some(rows);
    }
    let strangers = |rows| {
        let needed = least_shared(BANDS, band_shared(threshold, rows), MISSED);
        let shared = shared_keys(BANDS, band_shared(threshold / 2.0, rows));
        (needed > 0).then(|| shared.skip(needed).sum())
    };
    let candidates = (1..=MOST_ROWS).filter_map(|rows| Some((rows, strangers(rows)?)));
    let (rows, _) = candidates.min_by(|(_, a), (_, b): &(usize, f64)| a.total_cmp(b))?;
    CHOSEN.set((threshold, rows));
    Some(rows)
}

/// Returns the probability that documents of this resemblance share a band of `rows` slots.
fn band_shared(resemblance: f64, rows: usize) -> f64 {
    (0..rows).fold(1.0, |power, _| power * resemblance)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;
    use crate::hash::GOLDEN;
    use crate::text::{Fold, Unit};

    fn keys(threshold: f64) -> DocumentKeys {
        let shingling = Shingling::new(3, Unit::Word, Fold::Case).unwrap();
        DocumentKeys::new(shingling, threshold, 0).unwrap()
    }

    #[test]
    fn bands_and_numbers_needed_are_the_computed_ones() {
        let of = |threshold| {
            let keys = keys(threshold);
            (keys.rows, keys.occurrence(threshold).unwrap().needed())
        };
        let thresholds = [0.5, 2.0 / 3.0, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0].map(of);
        assert_eq!(thresholds.map(|of| of.0), [1, 2, 2, 3, 3, 4, 4, 4]);
        assert_eq!(thresholds.map(|of| of.1), [9, 6, 9, 10, 16, 18, 31, 64]);
        // Lower thresholds need fewer of the same keys, down to a threshold with none.
        let lower = [0.79, 0.7, 0.67, 0.6].map(|threshold| {
            let occurrence = keys(0.8).occurrence(threshold);
            occurrence.map(|occurrence| occurrence.needed())
        });
        assert_eq!(lower, [Some(9), Some(2), Some(1), None]);
        let shingling = *keys(0.8).shingling();
        for out_of_range in [0.49, 1.01, f64::NAN] {
            assert_eq!(DocumentKeys::new(shingling, out_of_range, 0), None);
        }
    }

    #[test]
    fn the_tail_is_at_most_the_probability_chosen_and_the_next_one_above() {
        for threshold in [0.5, 0.6, 2.0 / 3.0, 0.8, 0.9, 0.99] {
            let keys = keys(threshold);
            let shared: Vec<f64> = shared_keys(BANDS, band_shared(threshold, keys.rows)).collect();
            let needed = keys.occurrence(threshold).unwrap().needed();
            let missed: f64 = shared[..needed].iter().sum();
            assert!(missed <= MISSED, "{threshold}: {missed}");
            assert!(missed + shared[needed] > MISSED, "{threshold}");
            assert!((shared.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn minima_are_those_of_the_fewest_keys_that_the_rest_of_the_probability_allows() {
        let minima = |threshold| {
            let occurrence = keys(threshold).occurrence(threshold).unwrap();
            occurrence
                .minima()
                .map(|minimum| (minimum.of, minimum.shared))
        };
        let wanted = [
            (0.5, [(32, 1), (37, 2)]),
            (2.0 / 3.0, [(37, 1), (43, 2)]),
            (0.8, [(32, 1), (37, 2)]),
            (0.9, [(21, 1), (24, 2)]),
            (1.0, [(1, 1), (2, 2)]),
        ];
        for (threshold, wanted) in wanted {
            assert_eq!(minima(threshold), wanted, "{threshold}");
            let keys = keys(threshold);
            let band = band_shared(threshold, keys.rows);
            let below = |of: u32, shared: u32| {
                let fewer = shared_keys(of as usize, band).take(shared as usize);
                fewer.sum::<f64>()
            };
            let needed = keys.occurrence(threshold).unwrap().needed();
            let all = wanted.into_iter().chain([(BANDS as u32, needed as u32)]);
            let missed: f64 = all.map(|(of, shared)| below(of, shared)).sum();
            assert!(missed <= MISSED, "{threshold}: {missed}");
        }
    }

    #[test]
    fn known_answers_are_frozen() {
        let document = "The quick brown fox jumps over the lazy dog";
        let of = |threshold, seed| {
            let keys = DocumentKeys {
                seed,
                ..keys(threshold)
            };
            let all = keys.of_document(document.as_bytes(), &mut || ()).unwrap();
            assert_eq!(all.len(), BANDS);
            all.iter().fold(0, |digest, &key| split_mix(digest ^ key))
        };
        let frozen = [
            5107572098520262976,
            5499786837648397354,
            9825146787301499924,
            14553713986077793115,
        ];
        assert_eq!([of(0.5, 0), of(0.8, 0), of(0.9, 0), of(0.8, 7)], frozen);
    }

    #[test]
    fn a_document_and_its_set_have_the_same_keys() {
        let document = "one two three four five six seven eight nine ten ".repeat(2000);
        for seed in [0, 7] {
            let keys = DocumentKeys { seed, ..keys(0.8) };
            let (document, shingling) = (document.as_bytes(), keys.shingling());
            let key = Key::from_seed(0);
            let set = crate::shingle::shingle_hashes(document, shingling, &key, &mut || ());
            let of_set = keys.of_set(&set.unwrap(), &mut || ()).unwrap();
            assert_eq!(keys.of_document(document, &mut || ()).unwrap(), of_set);
        }
        let of_nothing = keys(0.8).of_document(b" ... ", &mut || ()).unwrap();
        assert!(of_nothing.is_empty());
    }

    /// Returns the keys of pairs of sets that have `both` elements in common and `other` others.
    fn pairs(
        keys: &DocumentKeys,
        both: usize,
        other: usize,
        trials: u64,
    ) -> impl Iterator<Item = Vec<(u64, u64)>> {
        (0..trials).map(move |trial| {
            let element = |place: usize| {
                let number = trial << 20 | place as u64;
                split_mix(number.wrapping_mul(GOLDEN).wrapping_add(1)) as i64
            };
            let all: Vec<i64> = (0..both + other).map(element).collect();
            // Half of the elements that they do not share are in one set, half in the other.
            let middle = both + other / 2;
            let second = [&all[..both], &all[middle..]].concat();
            let of = |set| keys.of_set(set, &mut || ()).unwrap();
            of(&all[..middle]).into_iter().zip(of(&second)).collect()
        })
    }

    /// Counts, for each number of keys, the pairs of sets that share fewer. The sets have `both` elements in common
    /// and `other` others.
    fn missed(keys: &DocumentKeys, both: usize, other: usize, trials: u64) -> [f64; BANDS + 1] {
        let mut counts = [0u64; BANDS + 2];
        for pair in pairs(keys, both, other, trials) {
            counts[1 + pair.iter().filter(|(a, b)| a == b).count()] += 1;
        }
        let mut below = 0;
        std::array::from_fn(|shared| {
            below += counts[shared];
            below as f64 / trials as f64
        })
    }

    /// The binomial tail bounds how often pairs just at the threshold share too few keys, for sets of every size. A
    /// higher `NEARDUP_TRIALS` tests more pairs, which reach farther into the tail.
    #[test]
    fn pairs_at_the_threshold_are_missed_more_seldom_than_the_binomial_says() {
        let trials = std::env::var("NEARDUP_TRIALS").map_or(3000, |trials| trials.parse().unwrap());
        for (threshold, sizes) in [
            (0.5, &[2, 4, 6, 10, 20, 60, 300, 1500][..]),
            (2.0 / 3.0, &[3, 6, 12, 30, 60, 300, 1500]),
            (0.8, &[5, 10, 15, 20, 50, 100, 300, 1500]),
            (0.9, &[10, 20, 50, 100, 300, 1500]),
        ] {
            let keys = keys(threshold);
            let band = band_shared(threshold, keys.rows);
            for &union in sizes {
                let other = (union as f64 * (1.0 - threshold)).round() as usize;
                let missed = missed(&keys, union - other, other, trials);
                let mut tail = 0.0;
                for (shared, probability) in shared_keys(BANDS, band).enumerate() {
                    let noise = 5.0 * (tail / trials as f64).sqrt() + 3.0 / trials as f64;
                    let found = missed[shared];
                    assert!(
                        tail > 0.05 || found <= tail + noise,
                        "{threshold}, {union} elements: {found} share fewer than {shared}, not {tail}"
                    );
                    tail += probability;
                }
            }
        }
    }

    /// A search looks up the lowest keys first. Pairs share none of these as seldom as none of any other keys.
    #[test]
    fn pairs_at_the_threshold_seldom_share_none_of_the_first_keys() {
        let trials = 3000;
        let (keys, threshold) = (keys(0.8), 0.8);
        for union in [5, 20, 100, 300] {
            let other = (union as f64 * (1.0 - threshold)).round() as usize;
            let mut first_shared = [0u64; BANDS];
            for mut pair in pairs(&keys, union - other, other, trials) {
                pair.sort_unstable();
                if let Some(place) = pair.iter().position(|(a, b)| a == b) {
                    first_shared[place] += 1;
                }
            }
            let (mut left, mut none) = (trials, 1.0);
            for (place, shared) in first_shared.iter().enumerate() {
                left -= shared;
                none *= 1.0 - band_shared(threshold, keys.rows);
                let (found, trials) = (left as f64 / trials as f64, trials as f64);
                let noise = 5.0 * (none / trials).sqrt() + 3.0 / trials;
                assert!(
                    found <= none + noise,
                    "{union} elements: {found} after {place}, not {none}"
                );
            }
        }
    }
}
