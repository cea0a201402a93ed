//! The keys of documents: hashes of their shingles, all of them, or a sample that any two long documents share.
//!
//! A document of at most `most` shingles has a key for each, so a lookup of such documents is exact. A longer one has
//! keys only for the shingles whose hash has j low zero bits. j, the document's level, is the smallest number that
//! leaves at most `most` of them. A level contains the next. So two documents share the keys that they would if both
//! were sampled at the higher of their levels.
//!
//! A search for the documents that contain a short one may find none of its keys in a sample. So a sampled document
//! also has its level as a key, by which such a search finds it.
//!
//! Scheme 1, frozen by known-answer vectors because indexes store the keys: with `split_mix` of [`crate::hash`], a
//! shingle hash h of seed 0 becomes `m = split_mix(h ^ split_mix(seed))`; the key is the high half of m, and the low
//! half of m decides the level. The key of a level above 0 is its number, at most [`KEYED_LEVELS`].

use super::levels::{Levels, MISSED_AT_LEVEL, RowSize};
use super::occurrence::Occurrence;
use super::tail::least_shared;
use crate::Result;
use crate::hash::split_mix;
use crate::memory::{Grow, with_room};
use crate::shingle::{BLOCK, Key, Shingling, shingle_hashes};
use std::iter::repeat_n;

/// The smallest limit that can be chosen for the number of keys of a document.
pub const FEWEST_KEYS: usize = 64;
/// The largest limit that can be chosen for the number of keys of a document.
pub const MOST_KEYS: usize = 1024;
/// The usual limit for the number of keys of a document.
pub const USUAL_KEYS: usize = 512;

/// The rule that makes keys from documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShingleKeys {
    pub shingling: Shingling,
    most: usize,
    seed: u64,
}

/// A search for documents that resemble a given document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentSearch {
    pub keys: Vec<u32>,
    /// The number of shingles of the document.
    pub members: usize,
    /// Minimum number of keys that a match shares.
    pub least: usize,
    /// The number of keys that a match shares, by its size, except with a probability of
    /// [`MISSED`](super::tail::MISSED). None if all matches have all their keys.
    pub levels: Option<Levels>,
}

/// A search for documents by containment: in each direction, documents that have all their keys are found exactly.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainmentSearch {
    /// A repeated key counts each time.
    pub keys: Vec<u32>,
    /// Minimum number of keys that a match shares. For documents that the set contains, only if they are sampled.
    pub least: usize,
}

impl ShingleKeys {
    /// Returns the rule for at most `most` keys per document. Returns None unless `most` is from [`FEWEST_KEYS`] to
    /// [`MOST_KEYS`].
    pub fn new(shingling: Shingling, most: usize, seed: i64) -> Option<Self> {
        (FEWEST_KEYS..=MOST_KEYS).contains(&most).then(|| Self {
            shingling,
            most,
            seed: split_mix(seed as u64),
        })
    }

    /// Returns whether `key` can be the key of a level. Few shingles have such a key: one of 2^28.
    pub fn is_of_level(key: u32) -> bool {
        (1..=KEYED_LEVELS).contains(&key)
    }

    /// Returns the keys of a document in UTF-8, and its size. An empty document has no keys. Calls `check` at least
    /// every 64 KiB of the document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn of_document(&self, doc: &[u8], check: &mut dyn FnMut()) -> Result<(Vec<u32>, RowSize)> {
        let set = shingle_hashes(doc, &self.shingling, &Key::from_seed(0), check)?;
        self.of_set(&set, check)
    }

    /// Returns the keys of [`Self::of_document`] for a document with the shingle hashes `set`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn of_set(&self, set: &[i64], check: &mut dyn FnMut()) -> Result<(Vec<u32>, RowSize)> {
        let (mut keys, size) = self.sample(set, check)?;
        if size.level() > 0 {
            keys.try_push(size.level().min(KEYED_LEVELS))?;
        }
        Ok((keys, size))
    }

    /// Returns the keys of the shingles of a document with the shingle hashes `set`, and its size.
    fn sample(&self, set: &[i64], check: &mut dyn FnMut()) -> Result<(Vec<u32>, RowSize)> {
        let level = match set.len() <= self.most {
            true => 0,
            false => self.level_of(&self.elements_at(set, check)),
        };
        Ok((
            self.keys_from(level, set, check)?,
            RowSize::new(level, set.len()),
        ))
    }

    /// Returns the keys of the elements of `set` that belong to `level`.
    fn keys_from(&self, level: u32, set: &[i64], check: &mut dyn FnMut()) -> Result<Vec<u32>> {
        let mut keys = with_room(set.len() >> level)?;
        for block in set.chunks(BLOCK) {
            check();
            let mixed = block.iter().map(|hash| self.mix(*hash));
            let sampled = mixed.filter(|mixed| level_of(*mixed) >= level);
            keys.try_extend(sampled.map(|mixed| (mixed >> 32) as u32))?;
        }
        Ok(keys)
    }

    /// Returns the search for documents whose resemblance with a document is at least `threshold`, above 0. `set` holds
    /// the shingle hashes of that document, at least one. Returns None if documents that share none of the keys may
    /// match.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn search(
        &self,
        set: &[i64],
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<Option<DocumentSearch>> {
        let (keys, size) = self.sample(set, check)?;
        let members = set.len();
        let exact = least_reaching(members, threshold);
        let mut search = DocumentSearch {
            keys,
            members,
            least: exact,
            levels: None,
        };
        if members as f64 / threshold > self.most as f64 {
            let at = self.elements_at(set, check);
            let levels = Levels::new(threshold, members, self.most, size.level(), &at);
            let Some(levels) = levels else {
                return Ok(None);
            };
            search.least = levels.least(exact);
            search.levels = Some(levels);
        }
        Ok(Some(search))
    }

    /// Returns the search for documents that contain at least the share `threshold`, above 0, of `set`, which holds at
    /// least one shingle hash. A sampled document is missed with a probability of at most
    /// [`MISSED`](super::tail::MISSED).
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn search_containing(
        &self,
        set: &[i64],
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<ContainmentSearch> {
        let exact = least_reaching(set.len(), threshold);
        // Documents with at least this many shingles have at least this level. At a lower one, they have on average at
        // least 4 times `most` keys, and no more than `most` with a probability below e^-70.
        let first = match exact > self.most {
            true => (usize::BITS - (exact / (4 * self.most)).leading_zeros()).clamp(1, LAST),
            false => 0,
        };
        let at = self.elements_at(set, check);
        // Each of the set's keys at the level of a sampled document is shared with a probability of at least
        // `threshold`.
        let shared = |level: u32| {
            let keys: usize = at[level as usize..].iter().sum();
            match level {
                KEYED_LEVELS => 0,
                _ => least_shared(keys.min(MOST_KEYS), threshold, MISSED_AT_LEVEL),
            }
        };
        let keyed = first.clamp(1, KEYED_LEVELS)..=KEYED_LEVELS;
        let of_levels = keyed.map(|level| (level, shared(level)));
        let most_shared = || of_levels.clone().map(|(_, shared)| shared).max();
        let least = match first {
            0 => exact,
            _ => most_shared().unwrap_or(0).max(1),
        };
        let mut keys = self.keys_from(first, set, check)?;
        for (level, shared) in of_levels {
            // Repeats the level's key so that a sampled document shares `least` keys, as an unsampled one does.
            keys.try_extend(repeat_n(level, least.saturating_sub(shared)))?;
        }
        Ok(ContainmentSearch { keys, least })
    }

    /// Returns the search for documents with at least the share `threshold`, above 0, of their shingles in `set`, which
    /// holds at least one shingle hash. A sampled document is missed with a probability of at most
    /// [`MISSED`](super::tail::MISSED).
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn search_contained(
        &self,
        set: &[i64],
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<ContainmentSearch> {
        let mut keys = self.keys_from(0, set, check)?;
        // At the level below its own, a document has more than `most` keys. Each of them belongs to its own level with
        // a probability of 1/2, and to the set with a probability of at least `threshold`.
        let least = least_shared(self.most, threshold / 2.0, MISSED_AT_LEVEL);
        if least == 0 && set.len() >= least_reaching(self.most + 1, threshold) {
            keys.try_extend(1..=KEYED_LEVELS)?;
        }
        let least = least.max(1);
        Ok(ContainmentSearch { keys, least })
    }

    /// Returns, for each level, how many elements of `set` belong to it and to no higher one.
    fn elements_at(&self, set: &[i64], check: &mut dyn FnMut()) -> [usize; LEVELS] {
        let mut at = [0; LEVELS];
        for block in set.chunks(BLOCK) {
            check();
            for hash in block {
                at[level_of(self.mix(*hash)) as usize] += 1;
            }
        }
        at
    }

    /// Returns the lowest level that has no more elements than a document can have keys. `at` is the result of
    /// [`Self::elements_at`].
    fn level_of(&self, at: &[usize; LEVELS]) -> u32 {
        let mut left: usize = at.iter().sum();
        let above = at.iter().take_while(|count| {
            let is_above = left > self.most;
            left -= **count;
            is_above
        });
        (above.count() as u32).min(LAST)
    }

    fn mix(&self, hash: i64) -> u64 {
        split_mix(hash as u64 ^ self.seed)
    }
}

const LEVELS: usize = RowSize::LEVELS as usize;

/// Number of levels with a key of their own. Documents of a higher level, which have thousands of times as many
/// shingles as keys, have the key of the last of these levels, because a search looks up the keys of all of them.
const KEYED_LEVELS: u32 = 12;

/// The highest level.
const LAST: u32 = RowSize::LEVELS - 1;

/// Returns the minimum number of elements, above 0, that is at least the share `threshold` of `members` elements.
fn least_reaching(members: usize, threshold: f64) -> usize {
    Occurrence::contained(members, threshold).map_or(members.max(1), |found| found.needed)
}

/// Returns the highest level at which the hash `mixed` is sampled.
fn level_of(mixed: u64) -> u32 {
    mixed.trailing_zeros().min(LAST)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::super::tail::least_shared;
    use super::*;
    use crate::hash::GOLDEN;
    use crate::postings::Needed;
    use std::collections::BTreeSet;

    fn of(most: usize, seed: i64) -> ShingleKeys {
        ShingleKeys::new(Shingling::default(), most, seed).unwrap()
    }

    fn set(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
        let mut set: Vec<i64> = numbers
            .map(|number| split_mix(number.wrapping_mul(GOLDEN).wrapping_add(1)) as i64)
            .collect();
        set.sort_unstable();
        set
    }

    #[test]
    fn known_answers_are_frozen() {
        let short = "The quick brown fox jumps over the lazy dog";
        let long = set(0..3000);
        let of = |most, seed| {
            let (keys, size) = of(most, seed)
                .of_document(short.as_bytes(), &mut || ())
                .unwrap();
            assert_eq!((keys.len(), size), (7, RowSize::new(0, 7)));
            let (more, size) = of(most, seed).of_set(&long, &mut || ()).unwrap();
            let all = keys.iter().chain(&more);
            let digest = all.fold(0, |digest, &key| split_mix(digest ^ u64::from(key)));
            (size.level(), more.len(), digest)
        };
        assert_eq!([of(512, 0), of(64, 0), of(512, 7)], FROZEN);
    }

    const FROZEN: [(u32, usize, u64); 3] = [
        (3, 369, 875515407517735710),
        (6, 41, 9250444625107801572),
        (3, 356, 15256188071946394960),
    ];

    #[test]
    fn a_level_is_the_lowest_with_few_enough_keys_and_contains_the_next() {
        for count in [0, 1, 63, 64, 65, 127, 128, 129, 700, 5000] {
            let (by, set) = (of(64, 0), set(0..count as u64));
            let (keys, size) = by.sample(&set, &mut || ()).unwrap();
            assert_eq!(size.count(), count);
            assert!(keys.len() <= 64);
            let (all, _) = by.of_set(&set, &mut || ()).unwrap();
            let level = (size.level() > 0).then(|| size.level());
            assert!(keys.iter().copied().chain(level).eq(all));
            let at_least = |level| {
                let mixed = set.iter().map(|hash| by.mix(*hash));
                let sampled = mixed.filter(move |mixed| level_of(*mixed) >= level);
                sampled.map(|mixed| (mixed >> 32) as u32)
            };
            assert!(at_least(size.level()).eq(keys.iter().copied()));
            assert!(size.level() == 0 || at_least(size.level() - 1).count() > 64);
        }
    }

    /// Returns a query and a row that have `both` elements in common, and `own` further elements each.
    fn pair(trial: u64, both: u64, own: [u64; 2]) -> [Vec<i64>; 2] {
        let from = trial << 24;
        let query = set(from..from + both + own[0]);
        let rest = from + both + own[0];
        [query, set((from..from + both).chain(rest..rest + own[1]))]
    }

    /// Returns how many of the query's keys the row shares.
    fn shared(query: &[u32], row: &[u32]) -> usize {
        let row: BTreeSet<u32> = row.iter().copied().collect();
        query.iter().filter(|key| row.contains(key)).count()
    }

    /// Tests pairs exactly at the threshold, and of every ratio of sizes, on both sides of the levels.
    #[test]
    fn pairs_at_the_threshold_share_as_many_keys_as_a_search_needs() {
        let mut sampled = 0;
        for (both, own) in [
            (60, [10, 10]),
            (64, [0, 16]),
            (64, [16, 0]),
            (60, [0, 5]),
            (100, [20, 20]),
            (128, [0, 64]),
            (128, [64, 0]),
            (130, [500, 500]),
            (600, [100, 100]),
            (600, [0, 1500]),
            (600, [1500, 0]),
            (2000, [500, 0]),
            (5000, [10, 3000]),
        ] {
            let threshold = both as f64 / (both + own[0] + own[1]) as f64;
            for (most, trial) in [64, 512]
                .into_iter()
                .flat_map(|most| (0..40).map(move |t| (most, t)))
            {
                let by = of(most, trial as i64);
                let [query, row] = pair(trial, both, own);
                let (keys, size) = by.of_set(&row, &mut || ()).unwrap();
                let Some(search) = by.search(&query, threshold, &mut || ()).unwrap() else {
                    continue;
                };
                let needed = Needed::Resembling {
                    similarity: threshold,
                    members: search.members,
                    least: search.least,
                    levels: search.levels,
                };
                let shared = shared(&search.keys, &keys);
                assert!(
                    shared >= search.least && needed.is_reached(shared, size),
                    "{both} and {own:?}, {most} keys: {shared} of {:?}",
                    needed.of_row(size),
                );
                sampled += usize::from(size.level() > 0);
            }
        }
        assert!(sampled > 400, "only {sampled} rows were sampled");
    }

    /// Tests pairs exactly at the threshold, parts and wholes of every ratio of sizes, in both directions.
    #[test]
    fn pairs_at_the_threshold_are_found_by_containment() {
        let mut by_level = [0; 2];
        for (both, own) in [
            (1, [0, 1]),
            (3, [0, 60]),
            (3, [1, 70]),
            (5, [0, 3000]),
            (60, [10, 500]),
            (60, [60, 5000]),
            (64, [0, 1]),
            (65, [0, 5]),
            (100, [900, 20]),
            (600, [60, 3000]),
            (2000, [20, 10]),
            (2000, [8000, 200]),
            (5000, [100, 3000]),
        ] {
            let threshold = both as f64 / (both + own[0]) as f64;
            for (most, trial) in [64, 512]
                .into_iter()
                .flat_map(|most| (0..20).map(move |t| (most, t)))
            {
                let by = of(most, trial as i64);
                let [part, whole] = pair(trial, both, own);
                let containing = by.search_containing(&part, threshold, &mut || ()).unwrap();
                let contained = by.search_contained(&whole, threshold, &mut || ()).unwrap();
                let own_share = Needed::OwnShare {
                    share: threshold,
                    members: whole.len(),
                    sampled: contained.least,
                };
                let elements = Needed::Elements(containing.least);
                for (row, search, needed) in [
                    (&whole, containing, elements),
                    (&part, contained, own_share),
                ] {
                    let (keys, size) = by.of_set(row, &mut || ()).unwrap();
                    let shared = shared(&search.keys, &keys);
                    assert!(
                        needed.is_reached(shared, size),
                        "{both} and {own:?}, {most} keys: {shared} of {:?}",
                        needed.of_row(size),
                    );
                    by_level[usize::from(size.level() > 0)] += 1;
                }
            }
        }
        assert!(by_level.iter().all(|found| *found > 200), "{by_level:?}");
    }

    /// Long documents that have nothing in common with a long query are not candidates. With a short query, they may
    /// be.
    #[test]
    fn keys_of_samples_exclude_strangers() {
        let by = of(64, 0);
        let stranger = set(10_000..13_000);
        let (keys, _) = by.of_set(&stranger, &mut || ()).unwrap();
        for (count, is_candidate) in [(3, true), (3000, false)] {
            let own = set(0..count);
            let search = by.search_containing(&own, 0.8, &mut || ()).unwrap();
            assert_eq!(shared(&search.keys, &keys) >= search.least, is_candidate);
        }
        let whole = by.search_contained(&set(0..3000), 0.8, &mut || ()).unwrap();
        assert!(shared(&whole.keys, &keys) < whole.least);
    }

    /// The binomial tail bounds how often pairs share few keys of a sample. A higher `NEARDUP_TRIALS` tests more pairs,
    /// which reach farther into the tail.
    #[test]
    fn pairs_share_few_keys_more_seldom_than_the_binomial_says() {
        let trials = std::env::var("NEARDUP_TRIALS").map_or(5000, |trials| trials.parse().unwrap());
        for (both, own) in [
            (100, [25, 25]),
            (100, [0, 50]),
            (300, [150, 150]),
            (90, [10, 300]),
            (60, [3, 12]),
        ] {
            let share = both as f64 / (both + own[0]) as f64;
            let tails = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
            let needed = |missed| move |keys| least_shared(keys, share, missed);
            let needed = tails.map(|missed| (0..=64).map(needed(missed)).collect::<Vec<_>>());
            let mut few = [0; 6];
            for trial in 0..trials {
                let by = of(64, trial as i64);
                let [query, row] = pair(trial, both, own);
                let [(query, a), (row, b)] =
                    [query, row].map(|set| by.sample(&set, &mut || ()).unwrap());
                if a.level() >= b.level() {
                    let shared = shared(&query, &row);
                    for (few, needed) in few.iter_mut().zip(&needed) {
                        *few += u64::from(shared < needed[query.len()]);
                    }
                }
            }
            for (few, missed) in few.into_iter().zip(tails) {
                let (few, trials) = (few as f64 / trials as f64, trials as f64);
                let noise = 5.0 * (missed / trials).sqrt() + 3.0 / trials;
                assert!(
                    few <= missed + noise,
                    "{both}, {own:?}: {few} instead of {missed}"
                );
            }
        }
    }

    /// A sample of a set is drawn without replacement, so the number of drawn elements that are in another set is
    /// hypergeometric. The binomial distribution bounds it in every tail that is used.
    #[test]
    fn the_binomial_tail_bounds_the_hypergeometric_one() {
        for all in [65, 100, 200, 600] {
            for both in [all / 4, all / 2, all * 4 / 5, all * 19 / 20, all - 1] {
                for drawn in [16, 32, 48, 64] {
                    let mut tail = 0.0;
                    let mut needed = 0;
                    let ways = |from: usize, of: usize| {
                        (0..of)
                            .map(|i| ((from - i) as f64 / (i + 1) as f64).ln())
                            .sum::<f64>()
                    };
                    for shared in 0..=drawn.min(both) {
                        if drawn - shared > all - both {
                            continue;
                        }
                        let of_shared = ways(both, shared) + ways(all - both, drawn - shared);
                        tail += (of_shared - ways(all, drawn)).exp();
                        needed = shared + 1;
                        for missed in [1e-3, 1e-4, 1e-5, 1e-6, 1e-9] {
                            let likely = least_shared(drawn, both as f64 / all as f64, missed);
                            assert!(likely < needed || tail <= missed * (1.0 + 1e-9));
                        }
                    }
                    assert!(needed > 0);
                }
            }
        }
    }

    #[test]
    fn documents_may_share_no_key_where_too_few_are_expected() {
        let long = set(0..3000);
        let search = |threshold| of(512, 0).search(&long, threshold, &mut || ()).unwrap();
        assert!(search(0.001).is_none());
        assert!(search(0.2).is_some());
        assert!(ShingleKeys::new(Shingling::default(), 63, 0).is_none());
        assert!(ShingleKeys::new(Shingling::default(), 1025, 0).is_none());
    }
}
