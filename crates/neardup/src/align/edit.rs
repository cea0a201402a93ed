//! Edit distance in characters.

use super::characters::code_points;
use super::costs::Costs;
use super::edit_band::banded_distance;
use super::pace::Pace;
use crate::{Error, Result, with_room};
use rapidfuzz::distance::{lcs_seq, levenshtein};
use std::cell::RefCell;

/// Returns the minimum total cost of turning `a` into `b` by inserting, deleting and substituting characters, or `None`
/// if it is above `max`.
///
/// Time O(n d / 64) for n characters and d edits if a substitution costs the mean of the other two (Levenshtein) or no
/// less than both (longest common subsequence); O(n d) with any other costs. Memory at most 64 bytes per character.
///
/// # Errors
/// `Invalid` if `max` is negative, `TooLarge` above [`super::MAX_UNITS`] characters, `OutOfMemory`.
pub fn edit_distance(
    a: &[u8],
    b: &[u8],
    costs: Costs,
    max: Option<i64>,
    check: &mut dyn FnMut(),
) -> Result<Option<i64>> {
    if let Some(max) = max.filter(|max| *max < 0) {
        return Err(Error::invalid(
            format!("max = {max} is out of range"),
            "Valid values are 0 and above, or NULL for no limit.",
        ));
    }
    let mut pace = Pace::new(check);
    let [a, b] = code_points([a, b], &mut pace)?;
    let [start, end] = common_ends(&a, &b);
    let end = end.min(a.len().min(b.len()) - start);
    let [a, b] = [&a, &b].map(|text| &text[start..text.len() - end]);
    let max = max.unwrap_or(i64::MAX);
    if costs.insert + costs.delete == 0 {
        return Ok(Some(0));
    }
    match Uniform::of(costs, a.len(), b.len()) {
        Some(uniform) => uniform.distance(a, b, max, &mut pace),
        None => banded_distance(a, b, costs, max, &mut pace),
    }
}

/// Returns the lengths of the longest common prefix and of the longest common suffix of `a` and `b`.
pub(super) fn common_ends(a: &[u32], b: &[u32]) -> [usize; 2] {
    let same = |(x, y): &(&u32, &u32)| x == y;
    let start = a.iter().zip(b).take_while(same).count();
    let end = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    [start, end]
}

/// The first bound on the number of edits. Its band of 63 columns takes one machine word.
const FIRST_BOUND: usize = 31;

/// Costs under which the distance is a linear function of the number of edits. With I insertions, D deletions and S
/// substitutions, I - D is the difference of the lengths, so that `2 cost = (ins + del)(I + D) + 2 sub S + (ins -
/// del)(|b| - |a|)`.
struct Uniform {
    substitutions: bool,
    /// Twice the cost of one edit.
    step: i64,
    /// Twice the cost of no edit.
    base: i64,
}

impl Uniform {
    fn of(costs: Costs, a: usize, b: usize) -> Option<Self> {
        let both = costs.insert + costs.delete;
        let substitutions = 2 * costs.substitute == both;
        (substitutions || costs.substitute >= both).then(|| Self {
            substitutions,
            step: both,
            base: (costs.insert - costs.delete) * (b as i64 - a as i64),
        })
    }

    fn distance(&self, a: &[u32], b: &[u32], max: i64, pace: &mut Pace) -> Result<Option<i64>> {
        let spare = max.saturating_mul(2).saturating_sub(self.base);
        if spare < 0 {
            return Ok(None);
        }
        let most = usize::try_from(spare / self.step).unwrap_or(usize::MAX);
        let edits = self.edits(a, b, most.min(a.len() + b.len()), pace)?;
        Ok(edits.map(|edits| (self.step * edits as i64 + self.base) / 2))
    }

    /// Returns the minimum number of edits, or None if it is above `most`. The bound doubles with each step, which
    /// keeps the band of the dynamic programming as narrow as the distance.
    fn edits(&self, a: &[u32], b: &[u32], most: usize, pace: &mut Pace) -> Result<Option<usize>> {
        reserve_for_crate(a.len() + b.len())?;
        let mut bound = FIRST_BOUND.max(a.len().abs_diff(b.len())).min(most);
        if self.substitutions {
            return Ok(levenshtein_within(a, b, bound, most, pace));
        }
        loop {
            let found = indel_within(a, b, bound, pace);
            if found.is_some() || bound == most {
                return Ok(found);
            }
            bound = (bound * 2).min(most);
        }
    }
}

/// Checks that memory suffices for rapidfuzz, which cannot report a failed allocation. It takes 64 bytes for each of
/// `characters` characters, for their places in blocks of 64, and a few lists of machine words.
///
/// # Errors
/// `OutOfMemory`.
fn reserve_for_crate(characters: usize) -> Result<()> {
    const BYTES: usize = 80;
    const SMALL: usize = 1 << 16;
    with_room::<u8>(BYTES * characters + SMALL).map(drop)
}

/// Returns the minimum number of insertions, deletions and substitutions, or None if it is above `most`. The search
/// starts with `bound` and doubles it.
fn levenshtein_within(
    a: &[u32],
    b: &[u32],
    bound: usize,
    most: usize,
    pace: &mut Pace,
) -> Option<usize> {
    let pace = RefCell::new(pace);
    let work = column_work(a, b, most);
    levenshtein::distance_with_args(
        Paced::new(a, work, &pace),
        Paced::new(b, work, &pace),
        &levenshtein::Args::default()
            .score_cutoff(most)
            .score_hint(bound),
    )
}

/// Returns the number of insertions and deletions, or None if it is above `bound`. These are all characters outside the
/// longest common subsequence.
///
/// The band of rapidfuzz 0.5.0 lacks the last column of every row but the first, so it may miss a subsequence of
/// exactly the requested length. Therefore one character less is requested.
fn indel_within(a: &[u32], b: &[u32], bound: usize, pace: &mut Pace) -> Option<usize> {
    let pace = RefCell::new(pace);
    let total = a.len() + b.len();
    let work = column_work(a, b, bound);
    let wanted = total.saturating_sub(bound).div_ceil(2);
    let common = lcs_seq::similarity_with_args(
        Paced::new(a, work, &pace),
        Paced::new(b, work, &pace),
        &lcs_seq::Args::default().score_cutoff(wanted.saturating_sub(1)),
    )?;
    (common >= wanted).then(|| total - 2 * common)
}

/// Returns the number of machine words that the band has in one column.
fn column_work(a: &[u32], b: &[u32], bound: usize) -> u32 {
    let band = (2 * bound).min(a.len().max(b.len()));
    1 + (band / 64) as u32
}

/// Iterator over characters that calls the interrupt check regularly. The loops of rapidfuzz take one character of one
/// side for every column; unwinding leaves them safely.
#[derive(Clone)]
struct Paced<'s, 'p, 'c> {
    characters: std::slice::Iter<'s, u32>,
    work: u32,
    pace: &'p RefCell<&'p mut Pace<'c>>,
}

impl<'s, 'p, 'c> Paced<'s, 'p, 'c> {
    fn new(characters: &'s [u32], work: u32, pace: &'p RefCell<&'p mut Pace<'c>>) -> Self {
        Self {
            characters: characters.iter(),
            work,
            pace,
        }
    }
}

impl Iterator for Paced<'_, '_, '_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.pace.borrow_mut().steps(self.work);
        self.characters.next().copied()
    }

    fn count(self) -> usize {
        self.characters.len()
    }
}

impl DoubleEndedIterator for Paced<'_, '_, '_> {
    fn next_back(&mut self) -> Option<u32> {
        self.characters.next_back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::costs::MAX_COST;
    use super::*;
    use proptest::prelude::*;

    fn distance(a: &str, b: &str, costs: [i64; 3], max: Option<i64>) -> Option<i64> {
        let costs = Costs::new(costs[0], costs[1], costs[2]).unwrap();
        edit_distance(a.as_bytes(), b.as_bytes(), costs, max, &mut || {}).unwrap()
    }

    #[test]
    fn known_answers() {
        assert_eq!(distance("kitten", "sitting", [1, 1, 1], None), Some(3));
        assert_eq!(distance("kitten", "sitting", [1, 1, 2], None), Some(5));
        assert_eq!(distance("kitten", "sitting", [1, 1, 1], Some(3)), Some(3));
        assert_eq!(distance("kitten", "sitting", [1, 1, 1], Some(2)), None);
        // From the manual of PostgreSQL's fuzzystrmatch.
        assert_eq!(distance("GUMBO", "GAMBOL", [2, 1, 1], None), Some(3));
        assert_eq!(distance("", "größe", [3, 1, 1], None), Some(15));
        assert_eq!(distance("größe", "", [3, 0, 1], None), Some(0));
        assert_eq!(distance("abc", "xyz", [0, 0, 0], Some(0)), Some(0));
    }

    #[test]
    fn negative_maximum() {
        let costs = Costs::new(1, 1, 1).unwrap();
        assert!(edit_distance(b"a", b"b", costs, Some(-1), &mut || {}).is_err());
    }

    fn wagner_fischer(a: &[char], b: &[char], [insert, delete, substitute]: [i64; 3]) -> i64 {
        let mut row: Vec<i64> = (0..=b.len() as i64).map(|j| j * insert).collect();
        for x in a {
            let mut corner = row[0];
            row[0] += delete;
            for (j, y) in b.iter().enumerate() {
                let substituted = corner + if x == y { 0 } else { substitute };
                corner = row[j + 1];
                row[j + 1] = substituted.min(corner + delete).min(row[j] + insert);
            }
        }
        row[b.len()]
    }

    /// Two texts of up to 300 characters, from very similar to unrelated.
    fn pair() -> impl Strategy<Value = (String, String)> {
        let edit = (any::<prop::sample::Index>(), 0..3, "[a-c\u{e9}\u{4e2d}]");
        let edits = prop::collection::vec(edit, 0..80);
        ("[a-c\u{e9}\u{4e2d}]{0,300}", edits).prop_map(|(a, edits)| {
            let mut b: Vec<char> = a.chars().collect();
            for (at, kind, other) in edits {
                let at = at.index(b.len() + 1);
                match kind {
                    0 => b.insert(at, other.chars().next().unwrap_or('x')),
                    _ if at == b.len() => {}
                    1 => drop(b.remove(at)),
                    _ => b[at] = other.chars().next().unwrap_or('x'),
                }
            }
            (a, b.into_iter().collect())
        })
    }

    /// A common subsequence of exactly the requested length runs along the edge of the band.
    #[test]
    fn a_distance_of_exactly_the_maximum() {
        for extra in 1..200 {
            let a = "x".repeat(extra) + &"ab".repeat(60);
            let b = "ab".repeat(60) + "y";
            let distance = |max| distance(&a, &b, [1, 1, 2], Some(max));
            let exact = extra as i64 + 1;
            assert_eq!(distance(exact), Some(exact), "{extra}");
            assert_eq!(distance(exact - 1), None, "{extra}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn as_wagner_and_fischer(
            (a, b) in prop_oneof![pair(), ("[a-e]{0,150}", "[c-h]{0,150}")],
            costs in prop_oneof![
                Just([1, 1, 1]), Just([1, 1, 2]), Just([1, 3, 2]), Just([2, 5, 9]), Just([0, 4, 2]),
                [0i64..6, 0i64..6, 0i64..6],
            ],
            max in prop::option::of(0i64..200),
        ) {
            let chars: [Vec<char>; 2] = [a.chars().collect(), b.chars().collect()];
            let expected = wagner_fischer(&chars[0], &chars[1], costs);
            let kept = max.is_none_or(|max| expected <= max);
            prop_assert_eq!(distance(&a, &b, costs, max), kept.then_some(expected));
        }
    }

    #[test]
    fn costs_out_of_range() {
        assert!(Costs::new(0, 0, MAX_COST).is_ok());
        assert!(Costs::new(-1, 1, 1).is_err());
        assert!(Costs::new(1, 1, MAX_COST + 1).is_err());
    }
}
