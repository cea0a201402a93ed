//! The time that a refresh spends on searching around changed rows before it computes everything anew.

use std::cell::Cell;
use std::time::Instant;

/// Lookups, and rows that they meet, for which a refresh never gives up, whatever the clock says. They take a few
/// milliseconds.
const FEW: usize = 1000;

/// Lookups whose mean time predicts that of the others.
const SAMPLE: usize = 50;

/// The share of the time of computing anew that a search takes at least before it is predicted.
const FIRST: f64 = 0.05;

/// The time of a search, compared with the time that computing anew would take. Both together take at most twice the
/// time of the faster one, whatever the lookups meet, and little more than that time if the first lookups predict the
/// others.
pub struct Budget {
    started: Instant,
    /// Seconds of computing everything anew.
    anew: f64,
    /// Seconds before the first lookup.
    before: Cell<f64>,
    /// Lookups that have begun.
    lookups: Cell<usize>,
    /// Lookups that have begun, and rows that they have met.
    steps: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// `anew` are the seconds that computing everything anew would take.
    pub fn new(anew: f64) -> Self {
        Self {
            started: Instant::now(),
            anew,
            before: Cell::new(0.0),
            lookups: Cell::new(0),
            steps: Cell::new(0),
            is_spent: Cell::new(false),
        }
    }

    /// Returns whether there is time for another lookup, the first of `to_come` that are known to follow.
    pub fn begin_lookup(&self, to_come: usize) -> bool {
        let spent = self.started.elapsed().as_secs_f64();
        let lookups = self.lookups.get();
        if lookups == 0 {
            self.before.set(spent);
        }
        let is_sampled = lookups >= SAMPLE && spent > FIRST * self.anew;
        if is_sampled && lookups + to_come > FEW {
            let each = (spent - self.before.get()) / lookups as f64;
            if spent + each * to_come as f64 > self.anew {
                self.give_up();
            }
        }
        self.lookups.set(lookups + 1);
        self.step()
    }

    /// Counts a row that was met. Returns whether there is time left.
    pub fn step(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > FEW && self.started.elapsed().as_secs_f64() > self.anew {
            self.give_up();
        }
        !self.is_spent()
    }

    /// Returns whether the search was given up.
    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Ends the search: everything is computed anew.
    pub fn give_up(&self) {
        self.is_spent.set(true);
    }
}
