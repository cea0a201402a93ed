//! T-occurrence: the one question behind every exact lookup, which rows share at least T of a
//! query's keys.
//!
//! The lemma: values are cut into b disjoint parts, one key each. A place in which two values differ
//! (a slot of a signature, a bit of a string) lies in one part. So values that differ in at most m
//! places share at least b - m keys, and values that share s keys differ in at least b - s places.
//! Keys that collide only add to those shared, so that neither bound excludes a near value.

use crate::set::reaches;

/// Number of keys that rows within a bound of a query share with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occurrence {
    keys: usize,
    needed: usize,
    typical_share: f64,
}

impl Occurrence {
    /// Returns how many of `keys` keys values share that differ in at most `differing` places;
    /// `None` where they may share none, so that keys cannot find them all.
    pub fn within(keys: usize, differing: usize) -> Option<Self> {
        let needed = keys.checked_sub(differing).filter(|&needed| needed > 0)?;
        // Each place spares a key with the chance `1 - 1 / keys`.
        let typical_share = (1.0 - 1.0 / keys as f64).powf(differing as f64);
        Some(Self {
            keys,
            needed,
            typical_share,
        })
    }

    /// Returns the same of values at the bound that share each key with a probability.
    pub fn with_typical_share(self, typical_share: f64) -> Self {
        Self {
            typical_share,
            ..self
        }
    }

    /// Returns how many of a set's `members` every set shares that holds at least the share
    /// `containment` of them: the smallest number that [`reaches`] it, among
    /// those beside `containment * members`, which errs (0.07 of 100 members would be 8).
    ///
    /// `None` for no members, which nothing contains, and for a containment outside (0, 1].
    pub fn contained(members: usize, containment: f64) -> Option<Self> {
        let nearly = (containment * members as f64) as usize;
        let needed = (nearly.saturating_sub(1)..=nearly.saturating_add(1))
            .find(|&shared| reaches(shared, members, containment))
            .filter(|needed| (1..=members).contains(needed))?;
        Some(Self {
            keys: members,
            needed,
            typical_share: containment,
        })
    }

    /// Returns the number of the query's keys.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Returns T, 1 to [`Self::keys`]: every row within the bound shares at least as many keys.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Returns the share of the keys that values at the bound have in common, on average.
    pub fn typical_share(&self) -> f64 {
        self.typical_share
    }

    /// Returns the smallest number of keys, whichever are taken, such that every row within the bound shares
    /// at least one: b - T + 1.
    pub fn probes(&self) -> usize {
        self.keys - self.needed + 1
    }
}
