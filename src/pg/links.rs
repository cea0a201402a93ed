//! Numbers and those that each is linked to, on temporary storage, read in order of the first.

use crate::pg::error::OrRaise;
use crate::pg::numbers::Numbers;
use crate::pg::query::work_mem_bytes;
use crate::pg::temporary_file::most_files;
use neardup::memory::{Grow, collected, with_room};
use std::vec::IntoIter;

/// Bytes of a link.
const LINK: usize = 2 * size_of::<u64>();

/// Links with a similarity each. They take up to a quarter of work_mem, and the rest goes to temporary
/// files.
pub struct Links {
    parts: Vec<Numbers>,
    numbers: u32,
}

impl Links {
    /// Returns no links of that many numbers, with room for as many as are expected at most.
    pub fn new(numbers: u32, expected: usize) -> Self {
        let budget = work_mem_bytes() / 4;
        let parts = (expected * LINK).div_ceil(budget).clamp(1, most_files());
        let part = |_| Numbers::new(budget / parts);
        Self {
            parts: collected((0..parts).map(part)).or_raise(),
            numbers: numbers.max(1),
        }
    }

    /// Adds a link.
    pub fn put(&mut self, from: u32, to: u32, similarity: f64) {
        let part = part(from, self.parts.len(), self.numbers);
        let part = &mut self.parts[part];
        part.push(u64::from(from) << 32 | u64::from(to));
        part.push(similarity.to_bits());
    }

    /// Ends putting.
    pub fn sorted(self) -> SortedLinks {
        SortedLinks {
            count: self.parts.len(),
            numbers: self.numbers,
            parts: self.parts.into_iter(),
            loaded: Vec::new(),
            next: 0,
        }
    }
}

/// Links that are read, one part after the other.
pub struct SortedLinks {
    parts: IntoIter<Numbers>,
    count: usize,
    numbers: u32,
    /// The links of a part, as ends and bits of the similarity.
    loaded: Vec<(u64, u64)>,
    next: usize,
}

impl SortedLinks {
    /// Visits the links of a number, which is above all asked for before.
    pub fn of(&mut self, from: u32, visit: &mut dyn FnMut(u32, f64)) {
        let part = part(from, self.count, self.numbers);
        while self.count - self.parts.len() <= part {
            self.load();
        }
        for &(ends, bits) in &self.loaded[self.next..] {
            let number = (ends >> 32) as u32;
            if number > from {
                break;
            }
            if number == from {
                visit(ends as u32, f64::from_bits(bits));
            }
            self.next += 1;
        }
    }

    /// Loads the next part.
    fn load(&mut self) {
        self.loaded = Vec::new();
        self.next = 0;
        let Some(part) = self.parts.next() else {
            return;
        };
        self.loaded = with_room(part.len() / 2).or_raise();
        let mut first = None;
        part.for_each(&mut |number| match first.take() {
            None => first = Some(number),
            Some(ends) => self.loaded.try_push((ends, number)).or_raise(),
        });
        self.loaded.sort_unstable();
    }
}

/// Returns the part, of `parts`, that a number belongs to.
fn part(number: u32, parts: usize, numbers: u32) -> usize {
    (u64::from(number) * parts as u64 / u64::from(numbers)) as usize
}
