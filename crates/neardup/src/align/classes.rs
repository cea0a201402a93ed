//! Classes of the suffixes of two documents by their first units. Classes merge as the compared length falls.

use super::pace::Pace;
use super::suffixes::Suffixes;
use crate::cluster::UnionFind;
use crate::{Grow, Result, collected, filled};
use std::cmp::Reverse;

/// Classes of suffixes that agree in the compared length. The suffixes of a class are neighbors in the order, so the
/// leftmost one is the minimum of a range.
pub(super) struct Classes<'s> {
    suffixes: &'s Suffixes,
    /// Ranks of suffixes whose class is still to be merged with the one before; the pair that shares the most units
    /// is last.
    merges: Vec<u32>,
    /// A class is identified by the rank of its first suffix.
    links: UnionFind,
    /// The rank after the last suffix of each class.
    ends: Vec<u32>,
    /// The rank of every joint position.
    ranks: Vec<u32>,
    /// The open joint positions of each document in the order of their suffixes.
    open: [RangeMinima; 2],
}

impl<'s> Classes<'s> {
    /// Returns a class for every suffix. Classes that share fewer than `least` units are never merged. Time O(n log n).
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(suffixes: &'s Suffixes, least: u32, pace: &mut Pace) -> Result<Self> {
        let n = suffixes.order.len();
        let is_long = |r: &u32| suffixes.shared[*r as usize] >= least;
        let mut merges = collected((1..n as u32).filter(is_long))?;
        pace.sort_by_key(&mut merges, |&r| (suffixes.shared[r as usize], Reverse(r)));
        let mut ranks = filled(0, n)?;
        for (rank, &p) in suffixes.order.iter().enumerate() {
            pace.step();
            ranks[p as usize] = rank as u32;
        }
        let of_side = |side| {
            let is_there = move |p: u32| suffixes.side(p) == side;
            let order = suffixes.order.iter();
            RangeMinima::new(order.map(|&p| if is_there(p) { p } else { NONE }))
        };
        Ok(Self {
            suffixes,
            merges,
            links: UnionFind::new(n as u32)?,
            ends: collected(1..=n as u32)?,
            ranks,
            open: [of_side(0)?, of_side(1)?],
        })
    }

    /// Returns the greatest length at which classes are still to be merged.
    pub fn next_length(&self) -> Option<u32> {
        let next = self.merges.last();
        next.map(|&r| self.suffixes.shared[r as usize])
    }

    /// Merges the classes that share at least `length` units. Returns a rank of every class that grew.
    pub fn merge(&mut self, length: u32, pace: &mut Pace) -> Result<Vec<u32>> {
        let shared = &self.suffixes.shared;
        let first = (self.merges).partition_point(|&r| shared[r as usize] < length);
        let mut grown = Vec::new();
        for next in self.merges.drain(first..) {
            pace.step();
            let class = self.links.find(next - 1);
            self.links.union(class, next);
            self.ends[class as usize] = self.ends[next as usize];
            grown.try_push(class)?;
        }
        Ok(grown)
    }

    /// Returns the class of the suffix at `rank`.
    pub fn class(&mut self, rank: u32) -> u32 {
        self.links.find(rank)
    }

    /// Returns the rank of a joint `position`.
    pub fn rank(&self, position: u32) -> u32 {
        self.ranks[position as usize]
    }

    /// Returns the leftmost open position of `class` in document `side`.
    pub fn leftmost(&self, class: u32, side: usize) -> Option<u32> {
        let least = self.open[side].least(class, self.ends[class as usize]);
        (least != NONE).then_some(least)
    }

    /// Opens or closes `position`.
    pub fn set_open(&mut self, position: u32, is_open: bool) {
        let side = self.suffixes.side(position);
        let value = if is_open { position } else { NONE };
        self.open[side].set(self.ranks[position as usize], value);
    }
}

/// A value above all positions.
const NONE: u32 = u32::MAX;

/// The minima of ranges of a list that changes, as a tree over its entries.
struct RangeMinima {
    /// The second half holds the entries. Every place i of the first half holds the minimum of the places `2 i` and
    /// `2 i + 1`.
    tree: Vec<u32>,
}

impl RangeMinima {
    fn new(entries: impl ExactSizeIterator<Item = u32>) -> Result<Self> {
        let n = entries.len();
        let mut tree = filled(NONE, n)?;
        tree.try_extend(entries)?;
        for i in (1..n).rev() {
            tree[i] = tree[2 * i].min(tree[2 * i + 1]);
        }
        Ok(Self { tree })
    }

    fn set(&mut self, place: u32, value: u32) {
        let mut i = self.tree.len() / 2 + place as usize;
        self.tree[i] = value;
        while i > 1 {
            i /= 2;
            self.tree[i] = self.tree[2 * i].min(self.tree[2 * i + 1]);
        }
    }

    /// Returns the least entry from `start` up to but not including `end`.
    fn least(&self, start: u32, end: u32) -> u32 {
        let n = self.tree.len() / 2;
        let (mut start, mut end) = (n + start as usize, n + end as usize);
        let mut least = NONE;
        while start < end {
            // An odd start is a right child, and the entry before an odd end is a left child.
            if start % 2 == 1 {
                least = least.min(self.tree[start]);
            }
            if end % 2 == 1 {
                least = least.min(self.tree[end - 1]);
            }
            (start, end) = (start.div_ceil(2), end / 2);
        }
        least
    }
}
