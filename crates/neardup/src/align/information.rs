//! Matching by information: any word of a common run counts, but a run that a document repeats counts once.

use super::pace::Pace;
use super::suffixes::Suffixes;
use super::tiling::CommonRun;
use crate::Result;
use crate::memory::{Grow, filled};
use std::ops::Range;

/// Words of the two documents that carry information.
pub(super) struct Information {
    /// Words of each document that repeat no run of it.
    pub counted: [usize; 2],
    /// Those of them that lie in a common run.
    pub common: [usize; 2],
    /// The fewest maximal common runs that cover all of `common`, in the order of the first
    /// document.
    pub runs: Vec<CommonRun>,
}

/// Runs have at least `min_words` words. Time O(n log n) for the sorting of the runs, else O(n).
pub(super) fn information(
    suffixes: &Suffixes,
    min_words: u32,
    pace: &mut Pace,
) -> Result<Information> {
    let repeats = repeating_windows(suffixes, min_words, pace)?;
    let longest = longest_matches(suffixes, pace)?;
    let mut result = Information {
        counted: [0; 2],
        common: [0; 2],
        runs: Vec::new(),
    };
    for (side, range) in suffixes.sides().into_iter().enumerate() {
        let cover = Cover::new(&repeats, &longest, min_words, range, pace)?;
        result.counted[side] = cover.counted;
        result.common[side] = cover.common;
        result
            .runs
            .try_extend(cover.runs.into_iter().map(|(p, found)| {
                let (a, b) = if side == 0 {
                    (p, found.at)
                } else {
                    (found.at, p)
                };
                CommonRun {
                    a,
                    b: suffixes.to_b(b),
                    words: found.length,
                }
            }))?;
    }
    pace.sort_by_key(&mut result.runs, |run| *run);
    result.runs.dedup();
    Ok(result)
}

/// Marks the joint positions whose first `length` words start earlier in the same document too.
fn repeating_windows(suffixes: &Suffixes, length: u32, pace: &mut Pace) -> Result<Vec<bool>> {
    let mut repeats = filled(false, suffixes.order.len())?;
    for group in suffixes.groups(length) {
        let mut first = [u32::MAX; 2];
        for &p in group {
            let side = usize::from(!suffixes.in_a(p));
            first[side] = first[side].min(p);
        }
        for &p in group {
            pace.step();
            repeats[p as usize] = !first.contains(&p);
        }
    }
    Ok(repeats)
}

/// One document from left to right.
struct Cover {
    counted: usize,
    common: usize,
    /// Joint positions of the runs that cover the common words.
    runs: Vec<(u32, Longest)>,
}

impl Cover {
    fn new(
        repeats: &[bool],
        longest: &[Longest],
        min_words: u32,
        range: Range<u32>,
        pace: &mut Pace,
    ) -> Result<Self> {
        let mut cover = Self {
            counted: 0,
            common: 0,
            runs: Vec::new(),
        };
        let (mut repeated_until, mut covered_until) = (0, 0);
        // The leftmost of the runs that reach furthest: reaches never fall from left to right.
        let (mut best, mut reach) = (None, 0);
        for p in range {
            pace.step();
            let found = longest[p as usize];
            if found.length >= min_words && p + found.length > reach {
                reach = p + found.length;
                best = Some((p, found));
            }
            if repeats[p as usize] {
                repeated_until = p + min_words;
            }
            if p < repeated_until {
                continue;
            }
            cover.counted += 1;
            if p < reach {
                cover.common += 1;
                if p >= covered_until {
                    cover.runs.try_extend(best)?;
                    covered_until = reach;
                }
            }
        }
        Ok(cover)
    }
}

/// Longest prefix of a suffix that occurs in the other document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Longest {
    /// Units shared; 0 if the first one already occurs nowhere in the other document.
    pub length: u32,
    /// Joint position of the first occurrence in the other document.
    pub at: u32,
}

const NOTHING: Longest = Longest {
    length: 0,
    at: u32::MAX,
};

/// Returns the matches of every joint position. Time O(n), memory 24 bytes a unit at most.
pub(super) fn longest_matches(suffixes: &Suffixes, pace: &mut Pace) -> Result<Vec<Longest>> {
    let n = suffixes.order.len();
    let mut found = filled(NOTHING, n)?;
    let mut above = [Nearest::default(), Nearest::default()];
    for r in 0..n {
        pace.step();
        visit(suffixes, r, suffixes.shared[r], &mut above, &mut found)?;
    }
    let mut below = [Nearest::default(), Nearest::default()];
    for r in (0..n).rev() {
        pace.step();
        let shared = suffixes.shared.get(r + 1).copied().unwrap_or(0);
        visit(suffixes, r, shared, &mut below, &mut found)?;
    }
    Ok(found)
}

/// Visits a suffix in the sweep: notes its longest match among the suffixes seen, then joins them.
fn visit(
    suffixes: &Suffixes,
    rank: usize,
    shared: u32,
    seen: &mut [Nearest; 2],
    found: &mut [Longest],
) -> Result<()> {
    for side in seen.iter_mut() {
        side.cut(shared)?;
    }
    let p = suffixes.order[rank];
    let side = usize::from(!suffixes.in_a(p));
    let best = &mut found[p as usize];
    if let Some(&other) = seen[1 - side].stack.last() {
        if other.length > best.length {
            *best = other;
        } else if other.length == best.length {
            best.at = best.at.min(other.at);
        }
    }
    if p != suffixes.split {
        seen[side].stack.try_push(Longest {
            length: u32::MAX,
            at: p,
        })?;
    }
    Ok(())
}

/// Suffixes of one document seen so far, grouped by the prefix that they share with the present one, the
/// longest last; each group with its leftmost position.
#[derive(Default)]
struct Nearest {
    stack: Vec<Longest>,
}

impl Nearest {
    /// The next suffix shares `shared` units with the present one.
    fn cut(&mut self, shared: u32) -> Result<()> {
        let mut at = u32::MAX;
        while let Some(top) = self.stack.pop_if(|top| top.length >= shared) {
            at = at.min(top.at);
        }
        if at != u32::MAX && shared > 0 {
            self.stack.try_push(Longest { length: shared, at })?;
        }
        Ok(())
    }
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
