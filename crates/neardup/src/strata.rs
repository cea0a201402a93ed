//! Samples of pairs to label, spread over all similarities and over many documents.

use crate::hash::{Key, split_mix};
use crate::{Grow, Result, collected};
use std::collections::{BTreeMap, HashSet};

/// Number of strata of similarities, each a tenth wide.
const STRATA: usize = 10;

/// Maximum number of pairs in a sample.
pub const MAX_DRAWN: usize = 10_000;

/// Two rows, the lower number first, their similarity, and the number of pairs that they represent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledPair {
    pub a: u32,
    pub b: u32,
    pub similarity: f64,
    pub weight: f64,
}

/// A sample of pairs, with about the same number of pairs from every stratum of similarities that has enough pairs. The
/// sample depends on the seed and on the pairs, not on their order.
pub struct Strata {
    wanted: usize,
    seed: u64,
    /// The pairs with the lowest hashes in each stratum.
    kept: [SampledPairs; STRATA],
    /// The number of pairs in each layer.
    sizes: [f64; LAYERS],
}

/// Pairs by their hashes, each with its similarity and its layer.
type SampledPairs = BTreeMap<(u64, u32, u32), (f64, usize)>;

/// Number of layers. The pairs drawn from a layer represent all pairs of that layer. The first layer holds all pairs
/// that are not counted; then comes one layer for each stratum.
const LAYERS: usize = 1 + STRATA;

/// Returns the stratum of `similarity`.
fn stratum(similarity: f64) -> usize {
    ((similarity * STRATA as f64) as usize).min(STRATA - 1)
}

impl Strata {
    /// Returns strata from which to draw `wanted` pairs, or [`MAX_DRAWN`] if that is less.
    pub fn new(wanted: usize, seed: i64) -> Self {
        Self {
            wanted: wanted.min(MAX_DRAWN),
            seed: Key::from_seed(seed).k0,
            kept: Default::default(),
            sizes: Default::default(),
        }
    }

    /// Offers the pair of rows `a` and `b`, in any order, any number of times. If pairs like this one are counted, it
    /// counts as `counted` pairs of its stratum.
    pub fn offer(&mut self, a: u32, b: u32, similarity: f64, counted: Option<f64>) {
        let layer = counted.map_or(0, |_| 1 + stratum(similarity));
        self.sizes[layer] += counted.unwrap_or_default();
        let (a, b) = (a.min(b), a.max(b));
        let kept = &mut self.kept[stratum(similarity)];
        let hash = split_mix(self.seed ^ (u64::from(a) << 32 | u64::from(b)));
        let is_later = |(last, _): (&_, _)| *last < (hash, a, b);
        if kept.len() >= self.wanted && kept.last_key_value().is_none_or(is_later) {
            return;
        }
        kept.insert((hash, a, b), (similarity, layer));
        if kept.len() > self.wanted {
            kept.pop_last();
        }
    }

    /// Returns the sample. Takes one pair of every stratum in turn, beginning with the most similar stratum. Pairs
    /// whose documents the stratum has not shown yet come first. Every pair represents its share of the pairs of its
    /// layer. The pairs that were not counted, out of `all` pairs, are one layer.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn draw(self, all: f64) -> Result<Vec<SampledPair>> {
        let wanted = self.wanted;
        let mut strata = Vec::new();
        for kept in self.kept {
            strata.try_push(varied(kept)?.into_iter())?;
        }
        let mut drawn: Vec<(SampledPair, usize)> = Vec::new();
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
        let mut counts = [0.0; LAYERS];
        drawn.iter().for_each(|(_, layer)| counts[*layer] += 1.0);
        let mut sizes = self.sizes;
        sizes[0] = all - sizes[1..].iter().sum::<f64>();
        // The lowest stratum has two layers.
        for (layer, other) in [(0, 1), (1, 0)] {
            if counts[layer] == 0.0 {
                sizes[other] += std::mem::take(&mut sizes[layer]);
            }
        }
        collected(drawn.into_iter().map(|(pair, layer)| SampledPair {
            weight: (sizes[layer] / counts[layer]).max(1.0),
            ..pair
        }))
    }
}

/// Returns the pairs of `kept`, beginning with the pairs whose documents occur in no earlier pair.
fn varied(kept: SampledPairs) -> Result<Vec<(SampledPair, usize)>> {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    let mut shown = HashSet::new();
    for ((_, a, b), (similarity, layer)) in kept {
        shown.try_reserve(2)?;
        let is_new = !shown.contains(&a) && !shown.contains(&b);
        let list = if is_new { &mut first } else { &mut rest };
        shown.insert(a);
        shown.insert(b);
        let pair = SampledPair {
            a,
            b,
            similarity,
            weight: 1.0,
        };
        list.try_push((pair, layer))?;
    }
    first.try_extend(rest)?;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(wanted: usize, seed: i64, pairs: &[(u32, u32, f64)]) -> Vec<SampledPair> {
        let mut strata = Strata::new(wanted, seed);
        for &(a, b, similarity) in pairs {
            strata.offer(a, b, similarity, (similarity > 0.02).then_some(1.0));
        }
        strata.draw(pairs.len() as f64).unwrap()
    }

    #[test]
    fn the_pairs_of_a_stratum_stand_for_all_of_it() {
        let weights = |wanted| {
            let drawn = drawn(wanted, 0, &skewed()).into_iter();
            drawn.map(|pair| pair.weight).collect::<Vec<f64>>()
        };
        let few = weights(50);
        assert!((few.iter().sum::<f64>() - 1000.0).abs() < 1e-6);
        assert_eq!(few.iter().filter(|weight| **weight == 2.0).count(), 45);
        assert!(few.iter().any(|weight| *weight > 100.0));
        assert!(weights(5000).iter().all(|weight| *weight == 1.0));
    }

    /// Returns 1000 pairs, nine in ten of them dissimilar.
    fn skewed() -> Vec<(u32, u32, f64)> {
        let similarity = |i: u32| i.checked_sub(900).map_or(0.01, |i| f64::from(i) / 100.0);
        let pair = |i| (2 * i, 2 * i + 1, similarity(i));
        (0..1000).map(pair).collect()
    }

    #[test]
    fn as_many_from_every_stratum() {
        let sample = drawn(50, 0, &skewed());
        assert_eq!(sample.len(), 50);
        for stratum in 0..STRATA {
            let is_in = |pair: &&SampledPair| (pair.similarity * 10.0) as usize == stratum;
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
        let rows = |seed, pairs: &[_]| -> Vec<_> {
            let drawn = drawn(40, seed, pairs).into_iter();
            drawn.map(|pair| (pair.a, pair.b)).collect()
        };
        assert_eq!(rows(7, &pairs), rows(7, &others));
        assert_ne!(rows(7, &pairs), rows(8, &pairs));
    }

    #[test]
    fn a_document_is_shown_once_while_there_are_others() {
        let mut pairs = vec![(0, 1, 0.0), (0, 2, 0.0), (1, 2, 0.0)];
        pairs.extend((0..20).map(|i| (10 + 2 * i, 11 + 2 * i, 0.95)));
        pairs.extend((0..20).map(|i| (10, 100 + i, 0.95)));
        let sample = drawn(43, 0, &pairs);
        assert_eq!(sample.len(), 43);
        let alike = |pair: &&SampledPair| pair.similarity == 0.95;
        let first = sample.iter().filter(alike).take(20);
        let documents: HashSet<u32> = first.flat_map(|pair| [pair.a, pair.b]).collect();
        assert_eq!(documents.len(), 40);
    }
}
