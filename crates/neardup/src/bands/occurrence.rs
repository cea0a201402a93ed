//! T-occurrence, the question behind every exact lookup: which rows share at least T of a query's keys?
//!
//! The lemma: values are cut into b disjoint parts, with one key each. A place in which two values differ (a slot of
//! a signature, a bit of a string) lies in one part. So values that differ in at most m places share at least b - m
//! keys, and values that share s keys differ in at least b - s places. Colliding keys only add to the shared ones,
//! so that neither bound excludes a near value.

use crate::set::reaches;

/// Number of keys checked after the first b - T + 1, to prune candidates early. Most candidates share only one of the
/// first b - T + 1 keys, by chance, so they are excluded as soon as one of the other T - 1 keys is missing.
const FEW: usize = 4;

/// The minimum number of keys that rows within a bound share among any `of` of the query's keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minimum {
    pub of: u32,
    pub shared: u32,
}

/// The number of keys that rows within a bound of a query share with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occurrence {
    /// T, the minimum number of keys that a row within the bound shares, 1 or more.
    pub needed: usize,
    /// A minimum over few keys and one over more keys. The first decides which rows become candidates, the second which
    /// of them remain candidates.
    pub minima: [Minimum; 2],
    /// The share of the keys that values at the bound have in common on average.
    pub typical_share: f64,
}

impl Occurrence {
    /// Returns how many of `keys` keys are shared by values that differ in at most `differing` places; `None` if
    /// they may share none, so that keys cannot find them all.
    pub fn within(keys: usize, differing: usize) -> Option<Self> {
        let needed = keys.checked_sub(differing).filter(|&needed| needed > 0)?;
        // Each place leaves a key intact with a probability of `1 - 1 / keys`.
        let typical_share = (1.0 - 1.0 / keys as f64).powf(differing as f64);
        Some(Self {
            needed,
            minima: minima(keys, needed),
            typical_share,
        })
    }

    /// Returns how many of a set's `members` are in every set that contains at least the share `containment` of
    /// them. It is the smallest number that [`reaches`] this share, searched next to `containment * members` because
    /// rounding that product can be wrong (0.07 of 100 members would be 8).
    ///
    /// `None` if there are no members, because nothing contains an empty set, and for a containment outside (0, 1].
    pub fn contained(members: usize, containment: f64) -> Option<Self> {
        let nearly = (containment * members as f64) as usize;
        let needed = (nearly.saturating_sub(1)..=nearly.saturating_add(1))
            .find(|&shared| reaches(shared, members, containment))
            .filter(|needed| (1..=members).contains(needed))?;
        Some(Self {
            needed,
            minima: minima(members, needed),
            typical_share: containment,
        })
    }

    /// Returns the smallest number of keys such that every row within the bound shares at least one of them,
    /// whichever keys are taken: b - T + 1 by the lemma.
    pub fn probes(&self) -> usize {
        self.minima[0].of as usize
    }
}

/// Returns two minima by the lemma: rows that share T = `needed` of b = `keys` keys share s of any b - T + s. Here s is
/// 1 and 1 + `FEW`, at most T.
pub fn minima(keys: usize, needed: usize) -> [Minimum; 2] {
    [1, 1 + FEW].map(|shared| {
        let shared = shared.min(needed);
        Minimum {
            of: (keys + shared).saturating_sub(needed) as u32,
            shared: shared as u32,
        }
    })
}
