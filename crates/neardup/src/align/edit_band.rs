//! Edit distance with any costs, by dynamic programming over a band of diagonals (Ukkonen,
//! 'Algorithms for approximate string matching', Information and Control 64, 1985).
//!
//! Own code because the crates fill the whole table when costs are not uniform, which takes 10^10
//! steps for two documents of 100 000 characters.

use super::edit::Costs;
use super::pace::Pace;

/// Above every cost, and far enough from overflow to add one.
const TOO_MUCH: i64 = i64::MAX / 4;

/// The least cost up to `max` that turns a into b. The band doubles until it is certain to contain the
/// cheapest way. Time O(n * band), memory O(band).
pub(super) fn banded_distance(
    a: &[u32],
    b: &[u32],
    costs: Costs,
    max: i64,
    pace: &mut Pace,
) -> Option<i64> {
    let longer = b.len() as i64 - a.len() as i64;
    let least = if longer >= 0 {
        longer * costs.insert
    } else {
        -longer * costs.delete
    };
    // A way that leaves the diagonals between the corners by e pays e insertions and e deletions.
    let pair = costs.insert + costs.delete;
    let widest = a.len().min(b.len()) as i64;
    let mut margin = 32.min(widest);
    loop {
        let affordable = (max.saturating_sub(least) / pair).min(margin);
        if max < least {
            return None;
        }
        let cost = Band::new(a, b, affordable).cost(costs, pace);
        let certain = least + (affordable + 1) * pair - 1;
        if cost <= certain.min(max) || (affordable == widest && cost <= max) {
            return Some(cost);
        }
        if affordable < margin || margin == widest || certain >= max {
            return None;
        }
        margin = (margin * 2).min(widest);
    }
}

/// Diagonal d holds the cells in which d more characters of b than of a are used up.
struct Band<'s> {
    a: &'s [u32],
    b: &'s [u32],
    lowest: i64,
    /// The present row of the table, from the lowest diagonal to the highest.
    row: Vec<i64>,
}

impl<'s> Band<'s> {
    fn new(a: &'s [u32], b: &'s [u32], margin: i64) -> Self {
        let longer = b.len() as i64 - a.len() as i64;
        let lowest = longer.min(0) - margin;
        let highest = longer.max(0) + margin;
        Self {
            a,
            b,
            lowest,
            row: vec![TOO_MUCH; (highest - lowest + 1) as usize],
        }
    }

    fn cost(mut self, costs: Costs, pace: &mut Pace) -> i64 {
        for used in 0..=self.a.len() as i64 {
            pace.steps(1 + self.row.len() as u32 / 8);
            // Columns of the table that the band crosses in this row.
            let columns = (used + self.lowest).max(0)
                ..(used + self.lowest + self.row.len() as i64).min(self.b.len() as i64 + 1);
            let first = (columns.start - used - self.lowest) as usize;
            let last = (columns.end - used - self.lowest) as usize;
            if used == 0 {
                for (i, cell) in self.row[first..last].iter_mut().enumerate() {
                    *cell = i as i64 * costs.insert;
                }
                continue;
            }
            self.delete_or_substitute(used as usize, first..last, costs);
            for i in first + 1..last {
                self.row[i] = self.row[i].min(self.row[i - 1] + costs.insert);
            }
        }
        self.row[(self.b.len() as i64 - self.a.len() as i64 - self.lowest) as usize]
    }

    /// Moves one character of `a` down. Without the insertions, so that the loop vectorises.
    fn delete_or_substitute(&mut self, used: usize, cells: std::ops::Range<usize>, costs: Costs) {
        let taken = self.a[used - 1];
        let mut first = cells.start;
        let start = used as i64 + self.lowest + first as i64;
        if start == 0 {
            // Column 0: no character of b to substitute.
            self.row[first] = self
                .row
                .get(first + 1)
                .map_or(TOO_MUCH, |up| up + costs.delete);
            first += 1;
        }
        let from = start.max(1) as usize - 1;
        for (i, &other) in (first..cells.end).zip(&self.b[from..]) {
            let substituted = self.row[i] + if taken == other { 0 } else { costs.substitute };
            let deleted = self.row.get(i + 1).map_or(TOO_MUCH, |up| up + costs.delete);
            self.row[i] = substituted.min(deleted);
        }
    }
}
