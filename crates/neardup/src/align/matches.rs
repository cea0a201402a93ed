//! The longest common run from every position on.

use super::pace::Pace;
use super::suffixes::Suffixes;
use crate::Result;
use crate::memory::{Grow, filled};

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
