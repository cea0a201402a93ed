//! Many heaps over one set of numbers that merge in O(log n), amortised: skew heaps (Sleator,
//! Tarjan, 'Self-adjusting heaps', SIAM Journal on Computing 15(1), 1986).

use crate::Result;
use crate::memory::filled;

/// No number: the top of an empty heap.
pub(super) const NIL: u32 = u32::MAX;

/// Mark on the left child of a number that is in no heap.
const OUT: u32 = u32::MAX - 1;

/// The children of every number; smallest on top.
pub(super) struct Heaps {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Heaps {
    /// Returns heaps of one number each, of all numbers below `n`.
    pub fn new(n: usize) -> Result<Self> {
        Ok(Self {
            left: filled(NIL, n)?,
            right: filled(NIL, n)?,
        })
    }

    /// Returns the top of both heaps together.
    pub fn meld(&mut self, mut x: u32, mut y: u32) -> u32 {
        let (mut top, mut last) = (NIL, NIL);
        while x != NIL && y != NIL {
            if y < x {
                std::mem::swap(&mut x, &mut y);
            }
            self.hang(&mut top, last, x);
            last = x;
            let rest = self.right[x as usize];
            self.right[x as usize] = self.left[x as usize];
            x = rest;
        }
        self.hang(&mut top, last, x.min(y));
        top
    }

    fn hang(&mut self, top: &mut u32, last: u32, x: u32) {
        if last == NIL {
            *top = x;
        } else {
            self.left[last as usize] = x;
        }
    }

    /// Removes the top, and returns the new one.
    pub fn pop(&mut self, top: u32) -> u32 {
        let rest = self.meld(self.left[top as usize], self.right[top as usize]);
        self.left[top as usize] = OUT;
        rest
    }

    /// Makes a number that was popped a heap of its own; false if it is still in one.
    pub fn insert_missing(&mut self, x: u32) -> bool {
        let missing = self.left[x as usize] == OUT;
        if missing {
            self.left[x as usize] = NIL;
            self.right[x as usize] = NIL;
        }
        missing
    }
}
