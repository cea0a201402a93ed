//! One-to-one matching, longest first: greedy string tiling (Wise, 'String similarity via greedy
//! string tiling and running Karp-Rabin matching', 1993), in O(n log n) instead of Wise's O(n^3).
//!
//! Lengths are visited in descending order. At length l, positions whose first l words agree form a class. As l falls,
//! classes merge, at the lengths that neighboring suffixes share. A position is open at l if its next l words are all
//! still free. After length l no class has open positions in both documents, because they would have made another tile.
//! So only classes that have just been merged, or in which a position opened again, need a look. A tile of length l
//! closes at most 2 l positions per side, and tiles never overlap, so there are O(n) events.

use super::classes::Classes;
use super::pace::Pace;
use super::suffixes::Suffixes;
use crate::{Grow, Result, filled};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A run of words common to both documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommonRun {
    /// Index of the run's first word in the first document.
    pub a: u32,
    /// Index of the run's first word in the second document.
    pub b: u32,
    /// Length of the run in words.
    pub words: u32,
}

/// Returns disjoint common runs of at least `min_words` words, in the order of `a`. Longer runs are chosen first;
/// among equals, the leftmost in `a`, then in `b`.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn tiles(
    suffixes: &Suffixes,
    min_words: u32,
    pace: &mut Pace,
) -> Result<Vec<CommonRun>> {
    let mut tiling = Tiling::new(suffixes, min_words, pace)?;
    while let Some(length) = tiling.next_length() {
        let mut touched = tiling.classes.merge(length, pace)?;
        tiling.reopen(length, &mut touched, pace)?;
        for rank in touched {
            let class = tiling.classes.class(rank);
            tiling.consider(class, length)?;
        }
        tiling.place_all(length, pace)?;
    }
    pace.sort_by_key(&mut tiling.runs, |run| *run);
    Ok(tiling.runs)
}

struct Tiling<'s> {
    suffixes: &'s Suffixes,
    min_words: u32,
    /// The classes with their open positions. May list a position as open that a tile has closed, until `open_pair`
    /// meets it.
    classes: Classes<'s>,
    /// The number of free words that start at each position, exact if it is below the current length.
    free: Vec<u32>,
    /// Closed positions by the length at which they open again.
    closed: BinaryHeap<(u32, u32)>,
    /// Classes that may have open positions in both documents, by the leftmost such position in `a`.
    candidates: BinaryHeap<Reverse<(u32, u32)>>,
    is_candidate: Vec<bool>,
    runs: Vec<CommonRun>,
}

impl<'s> Tiling<'s> {
    fn new(suffixes: &'s Suffixes, min_words: u32, pace: &mut Pace) -> Result<Self> {
        let n = suffixes.order.len();
        let mut free = filled(0, n)?;
        for range in suffixes.sides() {
            for p in range.clone() {
                pace.step();
                free[p as usize] = range.end - p;
            }
        }
        Ok(Self {
            suffixes,
            min_words,
            classes: Classes::new(suffixes, min_words, pace)?,
            free,
            closed: BinaryHeap::new(),
            candidates: BinaryHeap::new(),
            is_candidate: filled(false, n)?,
            runs: Vec::new(),
        })
    }

    /// Returns the next length at which classes merge or positions open, or None if there is none.
    fn next_length(&self) -> Option<u32> {
        let reopening = self.closed.peek().map(|&(length, _)| length);
        self.classes.next_length().max(reopening)
    }

    /// Opens the positions with `length` free words again, and adds their ranks to `touched`.
    fn reopen(&mut self, length: u32, touched: &mut Vec<u32>, pace: &mut Pace) -> Result<()> {
        while let Some(&(opens, p)) = self.closed.peek() {
            if opens < length {
                break;
            }
            self.closed.pop();
            pace.step();
            // Other entries are outdated: those positions have been closed again, for shorter runs only.
            if self.free[p as usize] == opens {
                self.classes.set_open(p, true);
                touched.try_push(self.suffixes.ranks[p as usize])?;
            }
        }
        Ok(())
    }

    /// Makes `class` a candidate if it has open positions in both documents.
    fn consider(&mut self, class: u32, length: u32) -> Result<()> {
        if !self.is_candidate[class as usize]
            && let Some((a, _)) = self.open_pair(class, length)
        {
            self.is_candidate[class as usize] = true;
            self.candidates.try_reserve(1)?;
            self.candidates.push(Reverse((a, class)));
        }
        Ok(())
    }

    /// Returns the leftmost open position of `class` in each document, or None if a document has none. Closes positions
    /// with fewer than `length` free words on the way.
    fn open_pair(&mut self, class: u32, length: u32) -> Option<(u32, u32)> {
        let [a, b] = [0, 1].map(|side| {
            loop {
                match self.classes.leftmost(class, side) {
                    Some(p) if self.free[p as usize] < length => self.classes.set_open(p, false),
                    leftmost => return leftmost,
                }
            }
        });
        a.zip(b)
    }

    fn place_all(&mut self, length: u32, pace: &mut Pace) -> Result<()> {
        while let Some(Reverse((expected, class))) = self.candidates.pop() {
            pace.step();
            self.is_candidate[class as usize] = false;
            let Some((a, b)) = self.open_pair(class, length) else {
                continue;
            };
            if a == expected {
                self.place(a, length, pace)?;
                self.place(b, length, pace)?;
                self.runs.try_push(CommonRun {
                    a,
                    b: self.suffixes.to_b(b),
                    words: length,
                })?;
            }
            self.consider(class, length)?;
        }
        Ok(())
    }

    /// Marks `length` words at `start`, one side of a tile, as used.
    fn place(&mut self, start: u32, length: u32, pace: &mut Pace) -> Result<()> {
        for p in start..start + length {
            pace.step();
            self.free[p as usize] = 0;
        }
        // At positions further left, at least `length` words are free, and no later tile is longer.
        for p in (start.saturating_sub(length - 1)..start).rev() {
            let left = start - p;
            if self.free[p as usize] <= left {
                break; // a used word or the other document lies between
            }
            pace.step();
            self.free[p as usize] = left;
            if left >= self.min_words {
                self.closed.try_reserve(1)?;
                self.closed.push((left, p));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tiled(a: &[u32], b: &[u32], min_words: u32) -> Vec<CommonRun> {
        let mut check = || {};
        let pace = &mut Pace::new(&mut check);
        let suffixes = Suffixes::new(a, b, 100, pace).unwrap();
        tiles(&suffixes, min_words, pace).unwrap()
    }

    /// Wise's published algorithm, with ties resolved to the left.
    fn brute_force(a: &[u32], b: &[u32], min_words: u32) -> Vec<CommonRun> {
        let mut used = [vec![false; a.len()], vec![false; b.len()]];
        let mut runs = Vec::new();
        loop {
            let run = |a: usize, b: usize, words| CommonRun {
                a: a as u32,
                b: b as u32,
                words,
            };
            let mut best = run(0, 0, 0);
            for i in 0..a.len() {
                for j in 0..b.len() {
                    let fits = |l: &usize| {
                        let (i, j) = (i + l, j + l);
                        i < a.len() && j < b.len() && a[i] == b[j] && !used[0][i] && !used[1][j]
                    };
                    let words = (0..).take_while(fits).count() as u32;
                    if words > best.words {
                        best = run(i, j, words);
                    }
                }
            }
            if best.words < min_words {
                runs.sort();
                return runs;
            }
            for (used, first) in used.iter_mut().zip([best.a, best.b]) {
                used[first as usize..][..best.words as usize].fill(true);
            }
            runs.push(best);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn as_wise_tiles(
            letters in 1u32..8,
            min_words in 1u32..5,
            a in prop::collection::vec(0u32..100, 0..50),
            b in prop::collection::vec(0u32..100, 0..50),
        ) {
            let [a, b] = [a, b].map(|x| x.into_iter().map(|y| y % letters).collect::<Vec<u32>>());
            prop_assert_eq!(tiled(&a, &b, min_words), brute_force(&a, &b, min_words));
        }

        #[test]
        fn as_wise_tiles_moved_blocks(
            text in prop::collection::vec(0u32..6, 60),
            cuts in prop::collection::vec((0usize..60, 0usize..20), 0..8),
            min_words in 1u32..5,
        ) {
            let b: Vec<u32> = cuts
                .iter()
                .flat_map(|&(from, length)| text[from..(from + length).min(60)].to_vec())
                .collect();
            prop_assert_eq!(tiled(&text, &b, min_words), brute_force(&text, &b, min_words));
        }
    }
}
