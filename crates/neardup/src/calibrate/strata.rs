//! Pairs worth a label: spread over all similarities, and over many documents.

use crate::Result;
use crate::hash::{Key, split_mix};
use crate::memory::Grow;
use std::collections::{BTreeMap, HashSet};

/// Strata of similarities, each a tenth wide.
const STRATA: usize = 10;

/// The largest number of pairs in a sample.
pub const MAX_DRAWN: usize = 10_000;

/// Two rows, the lower number first, and their similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub a: u32,
    pub b: u32,
    pub similarity: f64,
}

/// A sample of pairs, of about as many from every stratum of similarities that has enough. Which ones
/// depends on the seed and on the pairs, not on their order.
pub struct Strata {
    wanted: usize,
    seed: u64,
    /// The pairs of each stratum with the lowest hashes.
    kept: [BTreeMap<(u64, u32, u32), f64>; STRATA],
}

impl Strata {
    /// Prepares to draw `wanted` pairs, at most [`MAX_DRAWN`].
    pub fn new(wanted: usize, seed: i64) -> Self {
        Self {
            wanted: wanted.min(MAX_DRAWN),
            seed: Key::from_seed(seed).k0,
            kept: Default::default(),
        }
    }

    /// Offers two rows, in any order, any number of times.
    pub fn offer(&mut self, a: u32, b: u32, similarity: f64) {
        let (a, b) = (a.min(b), a.max(b));
        let stratum = (similarity * STRATA as f64) as usize;
        let kept = &mut self.kept[stratum.min(STRATA - 1)];
        let hash = split_mix(self.seed ^ (u64::from(a) << 32 | u64::from(b)));
        let is_full = kept.len() >= self.wanted;
        if is_full
            && kept
                .last_key_value()
                .is_none_or(|(last, _)| *last < (hash, a, b))
        {
            return;
        }
        kept.insert((hash, a, b), similarity);
        if kept.len() > self.wanted {
            kept.pop_last();
        }
    }

    /// Returns the sample: a pair of every stratum in turn, the most similar one first, of pairs without a document that the stratum has shown already, as long as there are such.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn draw(self) -> Result<Vec<Pair>> {
        let wanted = self.wanted;
        let mut strata = Vec::new();
        for kept in self.kept {
            strata.try_push(varied(kept)?.into_iter())?;
        }
        let mut drawn: Vec<Pair> = Vec::new();
        while drawn.len() < wanted {
            let before = drawn.len();
            for stratum in strata.iter_mut().rev() {
                if let Some(pair) = stratum.next()
                    && drawn.len() < wanted
                {
                    drawn.try_push(pair)?;
                }
            }
            if drawn.len() == before {
                break;
            }
        }
        Ok(drawn)
    }
}

/// Returns the pairs, those first whose documents none before them has.
fn varied(kept: BTreeMap<(u64, u32, u32), f64>) -> Result<Vec<Pair>> {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    let mut shown = HashSet::new();
    for ((_, a, b), similarity) in kept {
        shown.try_reserve(2)?;
        let is_new = !shown.contains(&a) && !shown.contains(&b);
        let list = if is_new { &mut first } else { &mut rest };
        shown.insert(a);
        shown.insert(b);
        list.try_push(Pair { a, b, similarity })?;
    }
    first.try_extend(rest)?;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(wanted: usize, seed: i64, pairs: &[(u32, u32, f64)]) -> Vec<Pair> {
        let mut strata = Strata::new(wanted, seed);
        for &(a, b, similarity) in pairs {
            strata.offer(a, b, similarity);
        }
        strata.draw().unwrap()
    }

    /// 1000 pairs, nine in ten of them unlike.
    fn skewed() -> Vec<(u32, u32, f64)> {
        let similarity = |i: u32| {
            if i < 900 {
                0.01
            } else {
                f64::from(i - 900) / 100.0
            }
        };
        (0..1000)
            .map(|i| (2 * i, 2 * i + 1, similarity(i)))
            .collect()
    }

    #[test]
    fn as_many_from_every_stratum() {
        let sample = drawn(50, 0, &skewed());
        assert_eq!(sample.len(), 50);
        for stratum in 0..STRATA {
            let is_in = |pair: &&Pair| (pair.similarity * 10.0) as usize == stratum;
            assert_eq!(sample.iter().filter(is_in).count(), 5, "{stratum}");
        }
    }

    #[test]
    fn what_a_stratum_lacks_others_give() {
        assert_eq!(drawn(500, 0, &skewed()).len(), 500);
        assert_eq!(drawn(5000, 0, &skewed()).len(), 1000);
        assert_eq!(drawn(3, 0, &[(1, 2, 1.0), (3, 4, 0.0)]).len(), 2);
        assert!(drawn(3, 0, &[]).is_empty());
    }

    #[test]
    fn neither_order_nor_repetition_matters() {
        let pairs = skewed();
        let mut others: Vec<_> = pairs.iter().rev().map(|&(a, b, s)| (b, a, s)).collect();
        others.extend(&pairs);
        assert_eq!(drawn(40, 7, &pairs), drawn(40, 7, &others));
        assert_ne!(drawn(40, 7, &pairs), drawn(40, 8, &pairs));
    }

    #[test]
    fn a_document_is_shown_once_while_there_are_others() {
        let mut pairs = vec![(0, 1, 0.0), (0, 2, 0.0), (1, 2, 0.0)];
        pairs.extend((0..20).map(|i| (10 + 2 * i, 11 + 2 * i, 0.95)));
        pairs.extend((0..20).map(|i| (10, 100 + i, 0.95)));
        let sample = drawn(43, 0, &pairs);
        assert_eq!(sample.len(), 43);
        let mut strata = Strata::new(43, 0);
        for &(a, b, similarity) in &pairs {
            strata.offer(a, b, similarity);
        }
        let [.., last] = strata.kept;
        let order = varied(last).unwrap();
        let documents: HashSet<u32> = order[..20]
            .iter()
            .flat_map(|pair| [pair.a, pair.b])
            .collect();
        assert_eq!(documents.len(), 40);
    }
}
