//! The time that a refresh spends on searching around changed rows before it computes everything anew.

use std::cell::Cell;
use std::time::Instant;

/// Lookups, and rows that they meet, for which a refresh never gives up, whatever the clock says. They take a few
/// milliseconds.
const FEW: usize = 1000;

/// Rows whose mean time predicts that of the others.
const SAMPLE: usize = 30;

/// The share of the time of computing anew that a search takes at least before it is predicted.
const FIRST: f64 = 0.05;

/// The time of a search, compared with the time that computing anew would take. Both together take at most twice the
/// time of the faster one, whatever the lookups meet, and little more than that time if the first rows predict the
/// others.
pub struct Budget {
    started: Instant,
    /// Seconds of computing everything anew.
    anew: f64,
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
            steps: Cell::new(0),
            is_spent: Cell::new(false),
        }
    }

    /// Gives up if the rows to come would take more time than is left. `since` is when the first of the rows `done` began;
    /// each takes two lookups at least.
    pub fn predict(&self, since: Instant, done: usize, to_come: usize) {
        let spent = self.started.elapsed().as_secs_f64();
        let is_sampled = done >= SAMPLE && spent > FIRST * self.anew;
        if is_sampled && 2 * (done + to_come) > FEW {
            let each = since.elapsed().as_secs_f64() / done as f64;
            if spent + each * to_come as f64 > self.anew {
                self.give_up();
            }
        }
    }

    /// Counts a lookup or a row that it met. Returns whether there is time left.
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
