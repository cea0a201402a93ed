//! The sorted suffixes of two sequences in one list, and the prefixes that neighbors share.

use super::pace::Pace;
use super::suffix_array::suffix_array;
use crate::{Error, Grow, Result, filled, with_room};
use std::ops::Range;

/// Maximum number of words or characters of two documents together. They take 1.5 GiB of working memory.
pub const MAX_UNITS: usize = 1 << 24;

/// Checks that two documents do not have more units than allowed. Errors call the units `name`.
///
/// # Errors
/// `TooLarge` above [`MAX_UNITS`].
pub(super) fn within_limit(units: usize, name: &str) -> Result<()> {
    if units <= MAX_UNITS {
        return Ok(());
    }
    Err(Error::TooLarge {
        message: format!("the documents have more than {MAX_UNITS} {name}"),
        hint: format!("Both documents together may have up to {MAX_UNITS} {name}."),
    })
}

/// The sorted suffixes of two documents. Positions are joint: first in `a`, then one separator, then in `b`. The
/// separator occurs once, so nothing that two suffixes share extends over the end of a document.
pub(super) struct Suffixes {
    /// Joint start positions of the suffixes, in ascending order of the suffixes.
    pub order: Vec<u32>,
    /// The rank of every joint position in `order`.
    pub ranks: Vec<u32>,
    /// `shared[r]`: the number of first units that `order[r - 1]` and `order[r]` have in common.
    pub shared: Vec<u32>,
    /// Length of `a`, which is also the joint position of the separator.
    pub split: u32,
}

impl Suffixes {
    /// Sorts the suffixes of `a` and `b`. Units are numbers below `letters`. Time O(n), memory 29 bytes per unit.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(a: &[u32], b: &[u32], letters: usize, pace: &mut Pace) -> Result<Self> {
        let separator = letters as u32;
        let mut text = with_room(a.len() + b.len() + 1)?;
        text.try_extend_from_slice(a)?;
        text.try_push(separator)?;
        text.try_extend_from_slice(b)?;
        let order = suffix_array(&text, letters + 1, pace)?;
        let mut ranks = filled(0, order.len())?;
        for (rank, &p) in (0..).zip(&order) {
            pace.step();
            ranks[p as usize] = rank;
        }
        let shared = shared_with_previous(&text, &order, &ranks, pace)?;
        Ok(Self {
            order,
            ranks,
            shared,
            split: a.len() as u32,
        })
    }

    /// Returns 0 if the joint `position` is in `a`, else 1.
    pub fn side(&self, position: u32) -> usize {
        usize::from(position >= self.split)
    }

    /// Returns the position in `b` of a joint `position`.
    pub fn to_b(&self, position: u32) -> u32 {
        position - self.split - 1
    }

    /// Returns the joint positions of `a` and of `b`.
    pub fn sides(&self) -> [Range<u32>; 2] {
        [0..self.split, self.split + 1..self.order.len() as u32]
    }

    /// Returns groups of joint positions whose first `length` units are the same, one group for each run of units that
    /// occurs more than once. `length` must be at least 1.
    pub fn groups(&self, length: u32) -> impl Iterator<Item = &[u32]> {
        let mut end = 0;
        std::iter::from_fn(move || {
            let start = (end + 1..self.order.len()).find(|&r| self.shared[r] >= length)? - 1;
            end = (start + 1..self.order.len())
                .find(|&r| self.shared[r] < length)
                .unwrap_or(self.order.len());
            Some(&self.order[start..end])
        })
    }
}

/// Returns, for each suffix in `order`, the length of the prefix that it shares with the suffix before it (Kasai, Lee,
/// Arimura, Arikawa, Park, CPM 2001). Linear time, memory 8 bytes per unit.
///
/// # Errors
/// `OutOfMemory`.
fn shared_with_previous(
    text: &[u32],
    order: &[u32],
    ranks: &[u32],
    pace: &mut Pace,
) -> Result<Vec<u32>> {
    let mut shared = filled(0, order.len())?;
    let mut length = 0;
    for (p, &r) in ranks.iter().enumerate() {
        pace.step();
        let r = r as usize;
        if r == 0 {
            length = 0;
            continue;
        }
        let (one, other) = (&text[p + length..], &text[order[r - 1] as usize + length..]);
        for (x, y) in one.iter().zip(other) {
            if x != y {
                break;
            }
            pace.step();
            length += 1;
        }
        shared[r] = length as u32;
        length = length.saturating_sub(1);
    }
    Ok(shared)
}
