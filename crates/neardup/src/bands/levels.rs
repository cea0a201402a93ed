//! Samples of sets of different sizes: how many keys two sets share if each has the keys of a sample.
//!
//! A set of level j has the keys of those elements whose hash has j low zero bits; [`RowSize`] holds the number of all
//! elements. Each of a query's keys at the higher of two levels is shared with the same probability: the share of the
//! query's elements that the sets have in common. So the number of shared keys is at least the lower tail of the
//! binomial distribution (strictly, of the hypergeometric one, which varies less).

use super::tail::{MISSED, least_shared};

/// The number of elements of a set, and its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowSize(pub u32);

impl RowSize {
    /// The number of levels.
    pub const LEVELS: u32 = 32;

    /// Maximum count; stands for this many elements or more.
    pub const MOST: usize = (1 << Self::COUNT_BITS) - 1;

    const COUNT_BITS: u32 = 27;

    /// Returns the size of a set of `count` elements of `level`, which is below [`Self::LEVELS`].
    pub fn new(level: u32, count: usize) -> Self {
        Self(level << Self::COUNT_BITS | count.min(Self::MOST) as u32)
    }

    pub fn level(self) -> u32 {
        self.0 >> Self::COUNT_BITS
    }

    /// Returns the number of elements, at most [`Self::MOST`].
    pub fn count(self) -> usize {
        self.0 as usize & Self::MOST
    }
}

/// Number of levels of rows that one search finds. Rows of a higher one are more than 32 times as large as the query.
const AT_ONCE: usize = 6;

/// Number of equal steps from [`Tail::lowest`] to 1. A level stores the number of shared keys at both ends of each
/// step.
const STEPS: usize = 6;

/// The probability that a row is missed at one level. For hardly any row, more than two levels are possible.
pub(super) const MISSED_AT_LEVEL: f64 = MISSED / 4.0;

/// A probability that is treated as 0.
const NEVER: f64 = 1e-12;

/// How many of a query's keys rows share, by their levels and sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// The level of the query: rows of lower levels share its keys as if they were of this level.
    first: u32,
    count: usize,
    tails: [Tail; AT_ONCE],
}

/// How many keys of a level are shared by rows that have at least a given share of the query's elements.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Tail {
    lowest: f32,
    /// The numbers of shared keys for shares from `lowest` to 1, in equal steps.
    shared: [u16; STEPS + 1],
}

impl Tail {
    fn new(keys: usize, least_share: f64) -> Self {
        // Below `least_share` even if it is rounded up, so that no number of shared keys is too high.
        let lowest = (least_share * (1.0 - 1e-7)) as f32;
        let from = f64::from(lowest);
        let share = |step: usize| from + (1.0 - from) * step as f64 / STEPS as f64;
        let shared =
            std::array::from_fn(|step| least_shared(keys, share(step), MISSED_AT_LEVEL) as u16);
        Self { lowest, shared }
    }

    fn at(&self, share: f64) -> usize {
        let from = f64::from(self.lowest);
        let step = (share - from) / (1.0 - from) * STEPS as f64;
        // `step` is NaN if `lowest` is 1; `max` turns NaN into 0.
        self.shared[(step.max(0.0) as usize).min(STEPS)].into()
    }
}

impl Levels {
    /// Returns the levels of rows that can have similarity `threshold` with a query of `members` elements. The query is
    /// of level `first`, and `at[j]` of its elements belong to level j and to no higher one. Sets have at most `most`
    /// keys. Returns None if there are too many levels, or if such rows may share no key with a probability above
    /// [`MISSED`].
    pub fn new(
        threshold: f64,
        members: usize,
        most: usize,
        first: u32,
        at: &[usize; RowSize::LEVELS as usize],
    ) -> Option<Self> {
        let all = members as f64;
        let mut levels = Self {
            first,
            count: 0,
            tails: Default::default(),
        };
        for level in first..RowSize::LEVELS {
            let fewest = match level {
                level if level == first => 0.0,
                level => fewest_elements(level, most),
            };
            // The quotient may be rounded down.
            if fewest > all / threshold * (1.0 + 1e-9) {
                break;
            }
            let share = threshold / (1.0 + threshold) * (1.0 + fewest / all);
            let keys = at[level as usize..].iter().sum();
            let tail = levels.tails.get_mut(levels.count)?;
            *tail = Tail::new(keys, share.clamp(threshold, 1.0));
            if level > 0 && tail.shared[0] == 0 {
                return None;
            }
            levels.count += 1;
        }
        Some(levels)
    }

    /// Returns the minimum number of keys that any row shares, if unsampled rows share `exact` with an unsampled query.
    pub fn least(&self, exact: usize) -> usize {
        let tails = self.tails[..self.count].iter();
        let sampled = tails.skip(usize::from(self.first == 0));
        let least = sampled.map(|tail| tail.shared[0].into()).min();
        match self.first {
            0 => least.unwrap_or(exact).min(exact),
            _ => least.unwrap_or(1),
        }
    }

    /// Returns how many keys a row of `level` shares if it has `exact` of the query's `members` elements. Returns None
    /// for levels of rows that are too large to be found.
    pub fn shared(&self, level: u32, exact: usize, members: usize) -> Option<usize> {
        let place = level.saturating_sub(self.first) as usize;
        let tail = self.tails[..self.count].get(place)?;
        Some(match self.first.max(level) {
            0 => exact,
            _ => tail.at(exact as f64 / members as f64).max(1),
        })
    }
}

/// Returns the minimum number of elements of a set of `level`, above 0. The level below has more than `most` of them,
/// each with the same probability. In smaller sets, it has as many with a probability below [`NEVER`].
fn fewest_elements(level: u32, most: usize) -> f64 {
    let most = most as f64;
    if level == 1 {
        return most + 1.0;
    }
    // The logarithm of Chernoff's bound on the probability that a binomial variable of this mean reaches `most`.
    let is_rare = |mean: f64| most - mean - most * (most / mean).ln() < NEVER.ln();
    let (mut low, mut high) = (0.0, most);
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        match is_rare(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low * f64::from(1u32 << (level - 1))
}

#[cfg(test)]
mod tests {
    use super::{Levels, Tail};
    use crate::bands::RowSize;

    #[test]
    fn no_tail_begins_above_its_least_share() {
        for share in (1..=1000).map(|step| f64::from(step) / 1000.0) {
            assert!(f64::from(Tail::new(64, share).lowest) <= share, "{share}");
        }
    }

    #[test]
    fn the_smallest_sampled_row_at_the_threshold_is_found() {
        let mut at = [0; RowSize::LEVELS as usize];
        for most in 64..=1024 {
            // A row of one element more than `most` contains a query of `members` elements.
            for members in most / 2..=most {
                (at[0], at[1]) = (members / 2, members - members / 2);
                let threshold = members as f64 / (most + 1) as f64;
                let levels = Levels::new(threshold, members, most, 0, &at);
                let shared = levels.map(|levels| levels.shared(1, members, members));
                assert_ne!(shared, Some(None), "{members} of {most}");
            }
        }
    }
}
