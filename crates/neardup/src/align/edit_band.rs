//! Edit distance with any costs, by dynamic programming over a band of diagonals (Ukkonen,
//! 'Algorithms for approximate string matching', Information and Control 64, 1985).
//!
//! Other crates fill the whole table when costs are not uniform, which takes 10^10 steps for two documents of 100 000
//! characters.

use super::costs::Costs;
use super::pace::Pace;
use crate::{Result, filled};
use std::ops::Range;

/// Returns the minimum cost of turning `a` into `b`, or None if it is above `max`. The band widens until it certainly
/// contains the cheapest path. Time O(n * band), memory O(band).
pub(super) fn banded_distance(
    a: &[u32],
    b: &[u32],
    costs: Costs,
    max: i64,
    pace: &mut Pace,
) -> Result<Option<i64>> {
    let longer = b.len() as i64 - a.len() as i64;
    let least = if longer >= 0 {
        longer * costs.insert
    } else {
        -longer * costs.delete
    };
    if max < least {
        return Ok(None);
    }
    // A path that leaves the diagonals between the corners by e has e extra insertions and e extra deletions.
    let pair = costs.insert + costs.delete;
    let affordable = (max - least) / pair;
    let widest = affordable.min(a.len().min(b.len()) as i64);
    let mut margin = 32.min(widest);
    loop {
        let cost = Band::new(a, b, margin)?.cost(costs, pace);
        let needed = ((cost - least) / pair).min(widest);
        if margin >= needed {
            return Ok((cost <= max).then_some(cost));
        }
        // A narrow band usually finds the cheapest path already, but the first cost may be far too high.
        margin = if needed <= 8 * margin {
            needed
        } else {
            2 * margin
        };
    }
}

/// A value above every cost, and far enough from overflow that a cost can be added.
const TOO_MUCH: i64 = i64::MAX / 4;

/// The paths that leave the diagonals between the corners by at most a margin.
///
/// Diagonal d holds the cells in which d more characters of b than of a are used up.
struct Band<'s> {
    a: &'s [u32],
    b: &'s [u32],
    lowest: i64,
    /// The current row of the table, from the lowest diagonal to the highest, and one cell that stays [`TOO_MUCH`].
    row: Vec<i64>,
}

impl<'s> Band<'s> {
    fn new(a: &'s [u32], b: &'s [u32], margin: i64) -> Result<Self> {
        let longer = b.len() as i64 - a.len() as i64;
        let lowest = longer.min(0) - margin;
        let highest = longer.max(0) + margin;
        Ok(Self {
            a,
            b,
            lowest,
            row: filled(TOO_MUCH, (highest - lowest + 2) as usize)?,
        })
    }

    /// Returns the minimum cost of a path within the band.
    fn cost(mut self, costs: Costs, pace: &mut Pace) -> i64 {
        let cells = self.cells_of_row(0);
        for (cell, inserted) in self.row[cells].iter_mut().zip(0..) {
            *cell = inserted * costs.insert;
        }
        for used in 1..=self.a.len() {
            pace.steps(1 + self.row.len() as u32 / 8);
            self.next_row(used, costs);
        }
        let corner = self.b.len() as i64 - self.a.len() as i64 - self.lowest;
        self.row[corner as usize]
    }

    /// Returns the part of the band that lies in the table when `used` characters of `a` are used up.
    fn cells_of_row(&self, used: usize) -> Range<usize> {
        let column_0 = -(used as i64 + self.lowest);
        let end = (column_0 + self.b.len() as i64 + 1).min(self.row.len() as i64 - 1);
        column_0.max(0) as usize..end as usize
    }

    fn next_row(&mut self, used: usize, costs: Costs) {
        let (insert, delete) = (costs.insert, costs.delete);
        let Range { mut start, end } = self.cells_of_row(used);
        let mut left = TOO_MUCH;
        if used as i64 + self.lowest + start as i64 == 0 {
            // Column 0: no character of b to substitute or to insert.
            left = self.row[start + 1] + delete;
            self.row[start] = left;
            start += 1;
        }
        let taken = self.a[used - 1];
        let from = (used as i64 + self.lowest + start as i64 - 1) as usize;
        let others = &self.b[from..from + (end - start)];
        let cells = &mut self.row[start..=end];
        assert_eq!(cells.len(), others.len() + 1); // lets the loop do without bounds checks
        for (i, &other) in others.iter().enumerate() {
            let substituted = cells[i] + if taken == other { 0 } else { costs.substitute };
            left = substituted.min(cells[i + 1] + delete).min(left + insert);
            cells[i] = left;
        }
    }
}
