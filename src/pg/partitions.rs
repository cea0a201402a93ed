//! Entries divided by their highest bits, so that each part can be sorted by itself.

use crate::pg::error::OrRaise;
use crate::pg::helpers::piece_bytes;
use crate::pg::numbers::Numbers;
use crate::pg::query::work_mem_bytes;
use neardup::memory::{Grow, collected, filled, with_room};

/// Parts that are kept in files of their own, at most, however little memory there is.
const LEAST_FILES: usize = 64;

/// Memory of a part that is kept in a file while it is written.
const BYTES_A_FILE: usize = 1 << 15;

/// Entries of 64 bits whose highest 32 are evenly spread, divided into parts of about the size of a
/// piece of work. Beyond half of work_mem they go to temporary files.
pub struct Partitions {
    /// Divided once, in order.
    coarse: Vec<Numbers>,
}

impl Partitions {
    /// Returns parts for that many entries.
    pub fn new(entries: usize) -> Self {
        let files = (entries * size_of::<u64>()).div_ceil(work_mem_bytes() / 2);
        Self::of_files(files.clamp(1, most_files()))
    }

    /// Returns parts for any number of entries.
    pub fn of_unknown_size() -> Self {
        Self::of_files(most_files())
    }

    fn of_files(files: usize) -> Self {
        let budget = work_mem_bytes() / 2 / files;
        Self {
            coarse: collected((0..files).map(|_| Numbers::new(budget))).or_raise(),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.coarse.iter().map(Numbers::len).sum()
    }

    pub fn put(&mut self, entry: u64) {
        let part = part(entry, self.coarse.len());
        self.coarse[part].push(entry);
    }

    /// Visits every part, in order.
    pub fn for_each(self, visit: &mut dyn FnMut(Vec<u64>)) {
        let fine = self.len() * size_of::<u64>() / self.coarse.len();
        let fine = fine.div_ceil(piece_bytes()).max(1);
        let parts = self.coarse.len() * fine;
        for (number, entries) in self.coarse.into_iter().enumerate() {
            let mut divided = filled(Vec::new(), fine).or_raise();
            for part in &mut divided {
                *part = with_room(entries.len() / fine).or_raise();
            }
            entries.for_each(&mut |entry| {
                let place = part(entry, parts) - number * fine;
                divided[place].try_push(entry).or_raise();
            });
            divided.into_iter().for_each(&mut *visit);
        }
    }
}

fn most_files() -> usize {
    (work_mem_bytes() / BYTES_A_FILE).max(LEAST_FILES)
}

/// Returns the part of so many that an entry belongs to, by its highest 32 bits: those of ascending
/// entries ascend.
fn part(entry: u64, parts: usize) -> usize {
    (((entry >> 32) * parts as u64) >> 32) as usize
}
