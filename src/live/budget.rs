//! The time that a refresh spends on searching around changed rows before it computes everything anew.

use std::cell::Cell;
use std::time::Instant;

/// Seconds within which a refresh never gives up.
const LEAST: f64 = 0.25;

/// The share of the time of computing anew after which the first lookups predict the others.
const FIRST: f64 = 0.1;

/// The time of a search, beside the time that computing anew would take. Whatever the lookups meet, both together
/// take little more than twice the shorter one.
pub struct Budget {
    started: Instant,
    /// The seconds before the first lookup.
    before: Cell<f64>,
    /// Seconds of computing everything anew.
    anew: f64,
    is_spent: Cell<bool>,
}

impl Budget {
    pub fn new(anew: f64) -> Self {
        Self {
            started: Instant::now(),
            before: Cell::new(0.0),
            anew: anew.max(LEAST),
            is_spent: Cell::new(false),
        }
    }

    /// Returns whether the search was given up, or is now: it has taken as long as computing anew would, or will if
    /// the lookups to come take as long as the ones done.
    pub fn is_spent(&self, done: usize, to_come: usize) -> bool {
        let spent = self.started.elapsed().as_secs_f64();
        if done == 0 {
            self.before.set(spent);
        }
        let each = (spent - self.before.get()) / done.max(1) as f64;
        let predicted = spent + each * to_come as f64;
        let is_known = spent > LEAST && spent > FIRST * self.anew;
        let is_spent =
            self.is_spent.get() || spent > self.anew || is_known && predicted > self.anew;
        self.is_spent.set(is_spent);
        is_spent
    }

    /// Returns whether the search was given up.
    pub fn was_spent(&self) -> bool {
        self.is_spent.get()
    }
}
