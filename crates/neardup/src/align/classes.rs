//! Classes of the suffixes of two documents by their first units. Classes merge as the compared length falls.

use super::minima::RangeMinima;
use super::pace::Pace;
use super::suffixes::Suffixes;
use crate::cluster::UnionFind;
use crate::{Grow, Result, collected};
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
    /// The open joint positions of each document in the order of their suffixes.
    open: [RangeMinima<u32>; 2],
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
        let of_side = |side| {
            let is_there = move |p: u32| suffixes.side(p) == side;
            let order = suffixes.order.iter();
            RangeMinima::new(NONE, order.map(|&p| if is_there(p) { p } else { NONE }))
        };
        Ok(Self {
            suffixes,
            merges,
            links: UnionFind::new(n as u32)?,
            ends: collected(1..=n as u32)?,
            open: [of_side(0)?, of_side(1)?],
        })
    }

    /// Returns the greatest length at which classes are still to be merged, or None if none are.
    pub fn next_length(&self) -> Option<u32> {
        let next = self.merges.last();
        next.map(|&r| self.suffixes.shared[r as usize])
    }

    /// Merges the classes that share at least `length` units. Returns a rank in each class that grew; a class can occur
    /// more than once.
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

    /// Returns the leftmost open position of `class` in document `side`, or None if there is none.
    pub fn leftmost(&self, class: u32, side: usize) -> Option<u32> {
        let least = self.open[side].least(class as usize..self.ends[class as usize] as usize);
        (least != NONE).then_some(least)
    }

    /// Opens or closes `position`.
    pub fn set_open(&mut self, position: u32, is_open: bool) {
        let side = self.suffixes.side(position);
        let value = if is_open { position } else { NONE };
        self.open[side].set(self.suffixes.ranks[position as usize] as usize, value);
    }
}

/// A value above all positions.
const NONE: u32 = u32::MAX;
