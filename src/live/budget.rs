//! Limits how long a refresh searches around changed rows before it recomputes all clusters.

use std::cell::Cell;
use std::time::Instant;

/// A refresh cannot give up before it has made this number of lookups and found rows, which usually takes a few
/// milliseconds, or has taken this number of seconds.
const FEW: usize = 1000;
const LONG: f64 = 10.0;

/// Minimum number of rows whose mean time predicts the time of the other rows.
const SAMPLE: usize = 30;

/// Minimum time spent on a search before the rest is predicted, as a share of the time of recomputing all clusters.
const FIRST: f64 = 0.05;

/// The time of a search, compared with the time that recomputing all clusters would take. A search that is given up and
/// the recomputation together take at most about twice the time of the faster of the two, and little more than that
/// time if the first rows predict the others.
pub struct Budget {
    started: Instant,
    /// Seconds that recomputing all clusters would take.
    rebuild_seconds: f64,
    /// Number of lookups begun and rows found.
    steps: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// Returns a budget that begins now. Recomputing all clusters would take `rebuild_seconds`.
    pub fn new(rebuild_seconds: f64) -> Self {
        Self {
            started: Instant::now(),
            rebuild_seconds,
            steps: Cell::new(0),
            is_spent: Cell::new(false),
        }
    }

    /// Gives up the search if the `to_come` rows, at the mean time of the `done` rows, would take more time than is
    /// left. Predicts nothing while the sample is too small, or for few rows. The first of the `done` rows began at
    /// `since`. Each row takes at least two lookups.
    pub fn predict(&self, since: Instant, done: usize, to_come: usize) {
        let spent = self.started.elapsed().as_secs_f64();
        let is_sampled = done >= SAMPLE && spent > FIRST * self.rebuild_seconds;
        if is_sampled && (2 * (done + to_come) > FEW || spent > LONG) {
            let each = since.elapsed().as_secs_f64() / done as f64;
            if spent + each * to_come as f64 > self.rebuild_seconds {
                self.give_up();
            }
        }
    }

    /// Counts a lookup or a row found, and gives up the search if no time is left. Returns false once the search is given
    /// up.
    pub fn step(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        let spent = self.started.elapsed().as_secs_f64();
        if (steps > FEW || spent > LONG) && spent > self.rebuild_seconds {
            self.give_up();
        }
        !self.is_spent()
    }

    /// Returns whether the search was given up.
    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Gives up the search, so that all clusters are recomputed.
    pub fn give_up(&self) {
        self.is_spent.set(true);
    }
}
