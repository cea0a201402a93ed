//! The rows under each key, in memory, for searches that stop before all partners of a row are found.

use super::Tokens;
use crate::Result;
use crate::memory::{Grow, filled};
use std::ops::{ControlFlow, Range};

/// Maximum number of lists. They take 128 MiB: enough to keep lists short for millions of rows.
const MAX_LISTS: usize = 1 << 24;

/// Rows by the keys under which others find them. Takes 4 bytes for each key of a row, 8 per list and 4 per row.
/// Different keys may share a list.
pub struct KeyLists {
    /// The end of each list in `rows`.
    ends: Vec<usize>,
    /// The rows of all lists, in ascending order within each list.
    rows: Vec<u32>,
    /// For each row, the last row whose search met or skipped it.
    met: Vec<u32>,
    ranges: Vec<Range<usize>>,
}

impl KeyLists {
    /// Returns the lists of the rows in `tokens`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(tokens: &Tokens, check: &mut dyn FnMut()) -> Result<Self> {
        let keys_of = |row| tokens.keys(row).chain(tokens.prefix_keys(row, false));
        let keys = |row| keys_of(row).count();
        let entries: usize = (0..tokens.rows()).map(keys).sum();
        let lists = entries.clamp(1, MAX_LISTS).next_power_of_two();
        let mut ends = filled(0usize, lists)?;
        for row in 0..tokens.rows() {
            check();
            keys_of(row).for_each(|key| ends[key as usize % lists] += 1);
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut rows = filled(0, entries)?;
        for row in 0..tokens.rows() {
            check();
            for key in keys_of(row) {
                let end = &mut ends[key as usize % lists];
                rows[*end] = row;
                *end += 1;
            }
        }
        Ok(Self {
            ends,
            rows,
            met: filled(u32::MAX, tokens.rows() as usize)?,
            ranges: Vec::new(),
        })
    }

    /// Makes the search for partners of `row`, if it comes next, skip `other`.
    pub fn pass_over(&mut self, row: u32, other: u32) {
        self.met[other as usize] = row;
    }

    /// Calls `visit` once for each row that may be similar to `row`, until `visit` returns `Break`. The rows of the
    /// shortest list come first, beginning after `row` itself and wrapping around.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn for_each_partner(
        &mut self,
        tokens: &Tokens,
        row: u32,
        visit: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<()> {
        self.ranges.clear();
        for key in tokens.keys(row).chain(tokens.prefix_keys(row, true)) {
            let list = key as usize % self.ends.len();
            let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
            self.ranges.try_push(start..self.ends[list])?;
        }
        self.ranges.sort_unstable_by_key(|range| range.len());
        self.met[row as usize] = row;
        for range in &self.ranges {
            let list = &self.rows[range.clone()];
            let (before, after) = list.split_at(list.partition_point(|other| *other <= row));
            for &other in after.iter().chain(before) {
                let met = &mut self.met[other as usize];
                if std::mem::replace(met, row) != row
                    && tokens.share_enough(row, other)
                    && visit(other).is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
