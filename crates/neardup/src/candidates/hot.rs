//! Hot rows: rows that share a token with very many other rows, such as all documents made from one template.
//!
//! Rows that meet under a hot token are too many to be compared with each other, and most may be just below the
//! threshold. Their sets of elements distinguish them. Put the elements of all sets in one order, and let o be the
//! least number of elements that a set x and a larger set y of similarity t have in common. Then the first |x| - o +
//! 1 elements of x and the first |y| - o + 1 of y have at least one in common. The number o is at least 2t / (1 + t)
//! |x|, and at least t |y| (Bayardo, Ma, Srikant, "Scaling up all pairs similarity search", WWW 2007). The rarest
//! elements come first, so that documents with enough text of their own do not meet under an element of the
//! template.

use super::Frequencies;
use crate::Result;
use crate::bands::{Occurrence, element_key};
use crate::memory::{Grow, collected, filled};
use std::cmp::Ordering;
use std::ops::Range;

/// Keeps rounding errors from raising the number of elements in common.
const ROUNDING: f64 = 1e-9;

/// Number of counters of keys, for estimating meetings.
const PLACES: usize = 1 << 18;

/// The prefixes of the sets of hot rows. Memory: 28 bytes per row, and 4 for each element of a prefix that at least two
/// sets have.
pub struct Prefixes {
    threshold: f64,
    rows: Vec<Prefix>,
    elements: Vec<u32>,
}

/// The prefix of a row: the elements under which it meets larger rows, then the elements under which it meets only
/// smaller rows, each in ascending order. Empty for a row that is not hot.
#[derive(Clone, Default)]
struct Prefix {
    size: u32,
    larger: Range<usize>,
    end: usize,
}

impl Prefixes {
    /// Returns the prefixes of `rows` rows, none of them hot, for similarities of at least `threshold`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(rows: u32, threshold: f64) -> Result<Self> {
        Ok(Self {
            threshold,
            rows: filled(Prefix::default(), rows as usize)?,
            elements: Vec::new(),
        })
    }

    /// Returns how many bytes the elements take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.elements[..])
    }

    /// Sets the prefix of `row` to `chosen`, which [`choose_prefix`] made.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn set(&mut self, row: u32, chosen: &[u32]) -> Result<()> {
        let [size, larger, elements @ ..] = chosen else {
            return Ok(());
        };
        let start = self.elements.len();
        self.elements.try_extend_from_slice(elements)?;
        self.rows[row as usize] = Prefix {
            size: *size,
            larger: start..start + *larger as usize,
            end: self.elements.len(),
        };
        Ok(())
    }

    /// Returns the elements under which `row` meets larger rows, and the elements under which it meets only smaller
    /// rows.
    pub fn of_row(&self, row: u32) -> [&[u32]; 2] {
        let Prefix { larger, end, .. } = &self.rows[row as usize];
        [larger.clone(), larger.end..*end].map(|range| &self.elements[range])
    }

    /// Returns approximately how many pairs of rows meet; a pair counts once for each element.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn meetings(&self) -> Result<f64> {
        let rows = self.rows.iter().flat_map(|prefix| {
            let places = prefix.larger.start..prefix.end;
            places.map(|place| (self.elements[place], place < prefix.larger.end))
        });
        meetings(rows)
    }

    /// Returns the smallest element under which rows `a` and `b` meet, or None if they meet under none or cannot be
    /// similar.
    pub fn first_shared(&self, a: u32, b: u32) -> Option<u32> {
        let size = |row: u32| self.rows[row as usize].size;
        let x = std::cmp::min_by_key(a, b, |row| (size(*row), *row));
        let y = a ^ b ^ x;
        if f64::from(size(x)) < (self.threshold - ROUNDING) * f64::from(size(y)) {
            return None;
        }
        let [larger, _] = self.of_row(x);
        let shared = self.of_row(y).map(|of_y| first_shared(larger, of_y));
        shared.into_iter().flatten().min()
    }
}

/// Appends the prefix of `set` to `chosen`: the number of elements of `set`, the number of elements under which it
/// meets larger sets, these elements, and the elements under which it meets only smaller sets. Leaves out elements that
/// no other set has. Appends nothing for an empty set.
///
/// # Errors
/// `OutOfMemory`.
pub fn choose_prefix(
    set: &[i64],
    threshold: f64,
    counts: &Frequencies,
    chosen: &mut Vec<u32>,
) -> Result<()> {
    let share_of_larger = 2.0 * threshold / (1.0 + threshold) - ROUNDING;
    let probes = |share| Occurrence::contained(set.len(), share).map(|shared| shared.probes());
    let (Some(larger), Some(all)) = (probes(share_of_larger), probes(threshold)) else {
        return Ok(());
    };
    let mut ordered = Vec::new();
    ordered.try_extend(set.iter().map(|element| {
        let token = element_key(*element);
        (counts.count(token), token)
    }))?;
    ordered.sort_unstable();
    ordered.truncate(all.max(larger));
    // Elements that share a token count as one.
    let (first, mut rest) = ordered.split_at(larger);
    let last = first.last();
    while last.is_some() && rest.first() == last {
        rest = &rest[1..];
    }
    let (first, rest) = (tokens_of_several(first)?, tokens_of_several(rest)?);
    chosen.try_extend([set.len() as u32, first.len() as u32])?;
    chosen.try_extend_from_slice(&first)?;
    chosen.try_extend_from_slice(&rest)
}

/// Returns the distinct tokens of `counted` that at least two sets have, in ascending order.
fn tokens_of_several(counted: &[(u8, u32)]) -> Result<Vec<u32>> {
    let of_several = counted.iter().filter(|(count, _)| *count >= 2);
    let mut tokens = collected(of_several.map(|(_, token)| *token))?;
    tokens.sort_unstable();
    tokens.dedup();
    Ok(tokens)
}

/// Returns approximately how many pairs of rows meet under `keys`. The flag of a key is true if its row meets every
/// other row under the key. If false, the row meets only rows whose flag is true.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn meetings(keys: impl Iterator<Item = (u32, bool)>) -> Result<f64> {
    let mut counts = [filled(0u32, PLACES)?, filled(0u32, PLACES)?];
    for (key, meets_all) in keys {
        counts[usize::from(meets_all)][key as usize % PLACES] += 1;
    }
    let [some, all] = counts.map(|counts| counts.into_iter().map(f64::from));
    let pairs = some.zip(all).map(|(some, all)| all * (all / 2.0 + some));
    Ok(pairs.sum())
}

/// Returns the smallest element that `a` and `b`, both in ascending order, have in common, or None if there is none.
fn first_shared(mut a: &[u32], mut b: &[u32]) -> Option<u32> {
    while let ([x, rest_of_a @ ..], [y, rest_of_b @ ..]) = (a, b) {
        match x.cmp(y) {
            Ordering::Less => a = rest_of_a,
            Ordering::Greater => b = rest_of_b,
            Ordering::Equal => return Some(*x),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::jaccard_at_least;
    use proptest::prelude::*;

    /// Returns a strategy for sets that have most elements of a template.
    fn set() -> impl Strategy<Value = Vec<i64>> {
        let own = prop::collection::btree_set(0i64..2000, 0..12);
        (0i64..8, 0i64..40, own).prop_map(|(from, len, own)| {
            let mut set: Vec<i64> = (10_000 + from..10_000 + from + len).chain(own).collect();
            set.sort_unstable();
            set
        })
    }

    fn prefixes(sets: &[Vec<i64>], threshold: f64) -> Prefixes {
        let mut counts = Frequencies::new(1000, 1 << 12).expect("memory");
        for element in sets.iter().flatten() {
            counts.add(element_key(*element));
        }
        let mut prefixes = Prefixes::new(sets.len() as u32, threshold).expect("memory");
        for (row, set) in (0..).zip(sets) {
            let mut chosen = Vec::new();
            choose_prefix(set, threshold, &counts, &mut chosen).expect("memory");
            prefixes.set(row, &chosen).expect("memory");
        }
        prefixes
    }

    proptest! {
        /// Similar rows meet under an element under which the smaller one meets larger rows.
        #[test]
        fn similar_rows_meet(
            sets in prop::collection::vec(set(), 2..30),
            threshold in prop_oneof![0.05..=1.0f64, Just(0.5), Just(0.8), Just(1.0)],
        ) {
            let prefixes = prefixes(&sets, threshold);
            for (a, x) in (0..).zip(&sets) {
                for (b, y) in (0..a).zip(&sets) {
                    let met = prefixes.first_shared(a, b);
                    prop_assert_eq!(met, prefixes.first_shared(b, a));
                    let has = |row, token| prefixes.of_row(row)[0].contains(&token);
                    prop_assert!(met.is_none_or(|token| has(a, token) || has(b, token)));
                    let similar = jaccard_at_least(x, y, threshold, &mut || ());
                    prop_assert!(similar.is_none() || met.is_some(), "{:?} {:?}", x, y);
                }
            }
        }
    }

    /// Documents made from one template meet only if they have few enough elements of their own to be similar.
    #[test]
    fn a_template_does_not_meet() {
        for (own, meets) in [(21, false), (9, true)] {
            let sets =
                (0..50i64).map(|row| (0..80).chain(1000 + own * row..1000 + own * (row + 1)));
            let sets: Vec<Vec<i64>> = sets.map(Iterator::collect).collect();
            let prefixes = prefixes(&sets, 0.8);
            let mut pairs = (0..50).flat_map(|a| (0..a).map(move |b| (a, b)));
            assert!(pairs.all(|(a, b)| prefixes.first_shared(a, b).is_some() == meets));
            let meetings = prefixes.meetings().expect("memory");
            assert_eq!(meetings >= 1225.0, meets, "{meetings}");
        }
    }
}
