//! The minima of ranges of a list that changes.

use crate::{Grow, Result, filled};
use std::mem::replace;
use std::ops::Range;

/// A list, stored with a tree of the minima of its ranges.
pub(super) struct RangeMinima<T> {
    /// A value that no entry exceeds, the minimum of an empty range.
    none: T,
    /// The second half holds the entries. Every place i of the first half holds the minimum of the places `2 i` and
    /// `2 i + 1`.
    tree: Vec<T>,
}

impl<T: Ord + Copy> RangeMinima<T> {
    /// Returns the list of `entries`. The minimum of an empty range is `none`, which no entry exceeds.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(none: T, entries: impl ExactSizeIterator<Item = T>) -> Result<Self> {
        let n = entries.len();
        let mut tree = filled(none, n)?;
        tree.try_extend(entries)?;
        for i in (1..n).rev() {
            tree[i] = tree[2 * i].min(tree[2 * i + 1]);
        }
        Ok(Self { none, tree })
    }

    pub fn set(&mut self, place: usize, value: T) {
        let mut i = self.tree.len() / 2 + place;
        self.tree[i] = value;
        while i > 1 {
            i /= 2;
            let least = self.tree[2 * i].min(self.tree[2 * i + 1]);
            if replace(&mut self.tree[i], least) == least {
                break;
            }
        }
    }

    /// Returns the least entry in `range`.
    pub fn least(&self, range: Range<usize>) -> T {
        let n = self.tree.len() / 2;
        let (mut start, mut end) = (n + range.start, n + range.end);
        let mut least = self.none;
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
