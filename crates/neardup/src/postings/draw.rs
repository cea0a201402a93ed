//! A random sample of a segment's postings, in which postings of frequent keys are overrepresented, because most pairs
//! of rows that share keys share a frequent one.

use super::directory::DirectoryEntry;
use super::part::{SegmentPart, parts};
use super::walk::{read_directory, read_leaf};
use super::{Pages, Posting, SegmentGroup};
use crate::Result;
use crate::hash::{GOLDEN, split_mix};
use crate::memory::{Grow, with_room};

/// Maximum number of directory pages of a level to read.
const DIRECTORIES: usize = 16;

/// A drawn posting.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    pub row: u64,
    /// The share of all postings that it represents. On average, the weights of all drawn postings add up to 1.
    pub weight: f64,
}

/// Draws at most `2 * half` postings of the largest segment of `group`: one half evenly, the other half by the lengths
/// of their lists.
///
/// # Errors
/// The errors of `pages`; damaged pages; `OutOfMemory`.
pub fn draw<P: Pages>(
    pages: &mut P,
    group: &SegmentGroup,
    half: usize,
) -> std::result::Result<Vec<Drawn>, P::Error> {
    let (lo, parts) = parts::<P::Error>(group)?;
    let Some(part) = parts.iter().max_by_key(|part| part.segment.postings) else {
        return Ok(Vec::new());
    };
    let mut random = Random(part.segment.number);
    let leaves = leaves(pages, part)?;
    let all_leaves: f64 = leaves.iter().map(|leaf| leaf.of_list).sum();
    let mut drawn = Vec::new();
    // The estimated number of postings on `leaves`, from the half drawn evenly, which comes first.
    let mut postings = 0.0;
    for by_length in [false, true] {
        let weight = |length: f64| if by_length { length } else { 1.0 };
        for number in 0..half {
            pages.interrupt()?;
            let share = (number as f64 + random.share()) / half as f64;
            let place = choose(leaves.iter().map(|leaf| weight(leaf.of_list)), share);
            let Some(leaf) = place.and_then(|place| leaves.get(place)) else {
                return Ok(Vec::new());
            };
            let numbers = leaf.read(pages, part)?;
            let lengths = leaf.lengths(&numbers)?;
            let place = choose(lengths.iter().map(|&length| weight(length)), random.share());
            let Some(place) = place else {
                continue;
            };
            let here = numbers.len() as f64;
            if !by_length {
                postings += here * leaves.len() as f64 / half as f64;
            }
            let evenly = 1.0 / (leaves.len() as f64 * here);
            let in_proportion = lengths[place] / lengths.iter().sum::<f64>();
            let in_proportion = in_proportion * leaf.of_list / all_leaves;
            drawn.push(Drawn {
                row: lo + u64::from(part.group_offset(numbers[place])?),
                weight: 1.0 / (half as f64 * (evenly + in_proportion)),
            });
        }
    }
    drawn.iter_mut().for_each(|drawn| drawn.weight /= postings);
    Ok(drawn)
}

/// A leaf that may be drawn.
struct WeightedLeaf {
    entry: DirectoryEntry,
    /// The number of leaves that begin with the same key.
    of_list: f64,
}

impl WeightedLeaf {
    /// Returns the leaf's postings, as numbers.
    fn read<P: Pages>(
        &self,
        pages: &mut P,
        part: &SegmentPart,
    ) -> std::result::Result<Vec<u64>, P::Error> {
        read_leaf(pages, part.segment, self.entry, |leaf| {
            let mut numbers = with_room(leaf.len())?;
            leaf.visit(Posting::MIN, Posting::MAX, &mut |run| {
                numbers.extend_from_slice(run);
                Ok(true)
            })?;
            Ok(numbers)
        })
    }

    /// Returns the approximate length of each posting's list.
    fn lengths(&self, numbers: &[u64]) -> Result<Vec<f64>> {
        let key = |number: u64| Posting::from(number).key;
        let mut lengths = with_room(numbers.len())?;
        for list in numbers.chunk_by(|a, b| key(*a) == key(*b)) {
            let is_first = key(list[0]) == self.entry.first.key;
            let leaves = if is_first { self.of_list } else { 1.0 };
            lengths.extend(list.iter().map(|_| list.len() as f64 * leaves));
        }
        Ok(lengths)
    }
}

/// Returns the leaves below some evenly spread directory pages.
fn leaves<P: Pages>(
    pages: &mut P,
    part: &SegmentPart,
) -> std::result::Result<Vec<WeightedLeaf>, P::Error> {
    let mut entries = Vec::from([DirectoryEntry::of_root(part.segment)]);
    for level in (1..=part.segment.depth).rev() {
        let step = entries.len().div_ceil(DIRECTORIES).max(1);
        let mut below = Vec::new();
        for entry in entries.into_iter().step_by(step) {
            pages.interrupt()?;
            read_directory(pages, part.segment, level, entry, |directory| {
                Ok(below.try_extend(directory.iter().filter(|child| part.has(child.first)))?)
            })?;
        }
        entries = below;
    }
    let mut leaves = with_room(entries.len())?;
    for list in entries.chunk_by(|a, b| a.first.key == b.first.key) {
        leaves.extend(list.iter().map(|&entry| WeightedLeaf {
            entry,
            of_list: list.len() as f64,
        }));
    }
    Ok(leaves)
}

/// Returns the first place at which the sum of the weights so far exceeds `share` of their total.
fn choose(weights: impl Iterator<Item = f64> + Clone, share: f64) -> Option<usize> {
    let mut left = share * weights.clone().sum::<f64>();
    let mut last = None;
    for (place, weight) in weights.enumerate() {
        last = Some(place);
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    last
}

/// SplitMix64, so that the same segment always gives the same sample.
struct Random(u64);

impl Random {
    /// Returns a number from 0 up to but not including 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        (split_mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }
}
