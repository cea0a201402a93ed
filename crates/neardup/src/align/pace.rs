//! Interrupt checks at bounded intervals.

use crate::set::sort_by;

/// Number of steps between two checks: a step costs 1 to 100 ns, so a cancel is noticed within a millisecond.
pub(super) const STEPS: u32 = 8192;

/// Counts the steps of long loops, and calls `check`, which may unwind, after every [`STEPS`] steps.
pub(crate) struct Pace<'c> {
    check: &'c mut dyn FnMut(),
    left: u32,
}

impl<'c> Pace<'c> {
    pub fn new(check: &'c mut dyn FnMut()) -> Self {
        Self { check, left: STEPS }
    }

    #[inline]
    pub fn step(&mut self) {
        self.steps(1);
    }

    #[inline]
    pub fn steps(&mut self, count: u32) {
        self.left = self.left.saturating_sub(count);
        if self.left == 0 {
            self.left = STEPS;
            (self.check)();
        }
    }

    /// Sorts `values` by `key`, with the checks of [`sort_by`].
    pub fn sort_by_key<T, K: Ord>(&mut self, values: &mut [T], key: impl Fn(&T) -> K) {
        sort_by(values, |a, b| key(a).cmp(&key(b)), self.check);
    }
}
