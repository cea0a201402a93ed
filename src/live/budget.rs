//! The time that a refresh spends on searching around changed rows before it computes everything anew.

use std::cell::Cell;
use std::time::Instant;

/// Lookups, and rows that they meet, within which a refresh never gives up: a few milliseconds, whatever the clock says.
const FEW: u32 = 1000;

/// The share of the time of computing anew after which the first lookups predict the others.
const FIRST: f64 = 0.1;

/// The time of a search, beside the time that computing anew would take. Whatever the lookups meet, both together
/// take little more than twice the shorter one; and little more than it where the first lookups predict the others.
pub struct Budget {
    started: Instant,
    /// Seconds of computing everything anew.
    anew: f64,
    /// The seconds before the first lookup.
    before: Cell<f64>,
    /// The number of lookups that have begun.
    lookups: Cell<u32>,
    /// That number, and of the rows that they have met.
    steps: Cell<u32>,
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

    /// Returns whether there is time for another lookup, of `to_come` that are known to follow: the search has not
    /// taken as long as computing anew would, nor will it if they take as long as those before.
    pub fn begin_lookup(&self, to_come: usize) -> bool {
        let spent = self.started.elapsed().as_secs_f64();
        let lookups = self.lookups.get();
        if lookups == 0 {
            self.before.set(spent);
        }
        let each = (spent - self.before.get()) / f64::from(lookups.max(1));
        let is_predicted = self.steps.get() > FEW && spent > FIRST * self.anew;
        if is_predicted && spent + each * to_come as f64 > self.anew {
            self.give_up();
        }
        self.lookups.set(lookups + 1);
        self.step()
    }

    /// Counts a row that was met. Returns whether there is time left.
    pub fn step(&self) -> bool {
        let steps = self.steps.get().saturating_add(1);
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
