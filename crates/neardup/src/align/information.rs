//! Matching by information: any word of a common run counts, but a run that a document repeats counts once.

use super::classes::Classes;
use super::pace::Pace;
use super::suffixes::Suffixes;
use super::tiling::CommonRun;
use crate::{Grow, Result, filled};
use std::cmp::Reverse;
use std::ops::Range;

/// The words of two documents that carry information.
#[derive(Default)]
pub(super) struct Information {
    /// Number of words of each document outside runs that repeat earlier runs of the same document.
    pub counted: [usize; 2],
    /// Number of counted words of each document that lie in a common run.
    pub common: [usize; 2],
    /// The fewest maximal common runs that cover all words counted in `common`, in the order of the first document.
    pub runs: Vec<CommonRun>,
}

/// Returns the numbers of words that carry information, and the common runs of at least `min_words` words that cover
/// them. Time O(n log n).
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn information(
    suffixes: &Suffixes,
    min_words: u32,
    pace: &mut Pace,
) -> Result<Information> {
    let repeats = repeating_windows(suffixes, min_words, pace)?;
    let longest = longest_matches(suffixes, pace)?;
    let mut result = Information::default();
    let mut covering = Vec::new();
    for (side, range) in suffixes.sides().into_iter().enumerate() {
        let words = (&repeats[..], &longest[..]);
        (result.counted[side], result.common[side]) =
            cover(words, min_words, range, &mut covering, pace)?;
    }
    pace.sort_by_key(&mut covering, |&(p, words)| (Reverse(words), p));
    let mut classes = Classes::new(suffixes, min_words, pace)?;
    for (p, words) in covering {
        classes.merge(words, pace)?;
        let class = classes.class(suffixes.ranks[p as usize]);
        let side = suffixes.side(p);
        let found = classes.leftmost(class, 1 - side).unwrap_or(p);
        let [a, b] = if side == 0 { [p, found] } else { [found, p] };
        result.runs.try_push(CommonRun {
            a,
            b: suffixes.to_b(b),
            words,
        })?;
    }
    pace.sort_by_key(&mut result.runs, |run| *run);
    result.runs.dedup();
    Ok(result)
}

/// Returns, for every joint position, whether its first `length` words also occur earlier in the same document.
fn repeating_windows(suffixes: &Suffixes, length: u32, pace: &mut Pace) -> Result<Vec<bool>> {
    let mut repeats = filled(false, suffixes.order.len())?;
    for group in suffixes.groups(length) {
        let mut first = [u32::MAX; 2];
        for &p in group {
            let side = suffixes.side(p);
            first[side] = first[side].min(p);
        }
        for &p in group {
            pace.step();
            repeats[p as usize] = !first.contains(&p);
        }
    }
    Ok(repeats)
}

/// Covers the common words in `range` by runs, from left to right. Appends the joint positions and lengths of these to
/// `runs`. Returns the number of counted words in `range`, and how many of them are common.
fn cover(
    (repeats, longest): (&[bool], &[u32]),
    min_words: u32,
    range: Range<u32>,
    runs: &mut Vec<(u32, u32)>,
    pace: &mut Pace,
) -> Result<(usize, usize)> {
    let (mut counted, mut common) = (0, 0);
    let (mut repeated_until, mut covered_until) = (0, 0);
    // The leftmost of the runs that reach furthest. From left to right, the ends of runs never decrease.
    let (mut best, mut reach) = (None, 0);
    for p in range {
        pace.step();
        let words = longest[p as usize];
        if words >= min_words && p + words > reach {
            reach = p + words;
            best = Some((p, words));
        }
        if repeats[p as usize] {
            repeated_until = p + min_words;
        }
        if p < repeated_until {
            continue;
        }
        counted += 1;
        if p < reach {
            common += 1;
            if p >= covered_until {
                runs.try_extend(best)?;
                covered_until = reach;
            }
        }
    }
    Ok((counted, common))
}

/// Returns, for every joint position, the length of the longest prefix of its suffix that occurs in the other
/// document. Time O(n).
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn longest_matches(suffixes: &Suffixes, pace: &mut Pace) -> Result<Vec<u32>> {
    let Suffixes { order, shared, .. } = suffixes;
    let mut longest = filled(0, order.len())?;
    let mut sweep = |ranks: &mut dyn Iterator<Item = usize>, shared: &dyn Fn(usize) -> u32| {
        // Units that the last suffix of each document shares with the current one.
        let mut nearest = [0; 2];
        for rank in ranks {
            pace.step();
            nearest = nearest.map(|length| shared(rank).min(length));
            let p = order[rank];
            let side = suffixes.side(p);
            longest[p as usize] = nearest[1 - side].max(longest[p as usize]);
            nearest[side] = u32::MAX;
        }
    };
    sweep(&mut (0..order.len()), &|rank| shared[rank]);
    let with_next = |rank| shared.get(rank + 1).copied().unwrap_or(0);
    sweep(&mut (0..order.len()).rev(), &with_next);
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn brute_force_counts(a: &[u32], b: &[u32], w: usize) -> ([usize; 2], [usize; 2]) {
        let mut counted = [0; 2];
        let mut common = [0; 2];
        for (side, (own, other)) in [(a, b), (b, a)].into_iter().enumerate() {
            for p in 0..own.len() {
                let mut windows = (p.saturating_sub(w - 1)..=p).filter(|s| s + w <= own.len());
                let repeated = windows
                    .clone()
                    .any(|s| (0..s).any(|t| own[t..t + w] == own[s..s + w]));
                let shared = windows.any(|s| other.windows(w).any(|x| x == &own[s..s + w]));
                counted[side] += usize::from(!repeated);
                common[side] += usize::from(!repeated && shared);
            }
        }
        (counted, common)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn as_brute_force(
            letters in 1u32..6,
            w in 1u32..5,
            a in prop::collection::vec(0u32..100, 0..40),
            b in prop::collection::vec(0u32..100, 0..40),
        ) {
            let [a, b] = [a, b].map(|x| x.into_iter().map(|y| y % letters).collect::<Vec<u32>>());
            let mut check = || {};
            let pace = &mut Pace::new(&mut check);
            let suffixes = Suffixes::new(&a, &b, 100, pace)?;
            let found = information(&suffixes, w, pace)?;
            prop_assert_eq!((found.counted, found.common), brute_force_counts(&a, &b, w as usize));
            for run in &found.runs {
                let (i, j, n) = (run.a as usize, run.b as usize, run.words as usize);
                prop_assert!(run.words >= w && a[i..i + n] == b[j..j + n]);
                prop_assert!(i + n == a.len() || j + n == b.len() || a[i + n] != b[j + n]);
            }
            prop_assert!(found.runs.iter().map(|r| r.words as usize).sum::<usize>() <= 2 * (a.len() + b.len()));
        }
    }
}
