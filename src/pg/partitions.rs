//! Entries divided by their highest bits, so that each part can be sorted by itself.

use crate::pg::error::OrRaise;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::numbers::Numbers;
use crate::pg::parts::Parts;
use crate::pg::progress::Progress;
use crate::pg::query::work_mem_bytes;
use helpers::Work;
use neardup::Result;
use neardup::memory::{Grow, collected, filled, with_room};

/// Parts that are kept in files of their own, at most, however little memory there is.
const LEAST_FILES: usize = 64;

/// Memory of a part that is kept in a file while it is written.
const BYTES_A_FILE: usize = 1 << 15;

/// Entries of 64 bits whose highest 32 are evenly spread, divided into parts of a few pieces of work.
/// Beyond half of work_mem they go to temporary files.
pub struct Partitions {
    /// Divided once, in order.
    coarse: Vec<Numbers>,
}

impl Partitions {
    /// Returns parts for that many entries.
    pub fn new(entries: usize) -> Self {
        let files = (entries * size_of::<u64>()).div_ceil(part_bytes());
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

    /// Returns how to divide entries, in any thread.
    pub fn divider(&self) -> Divider {
        Divider {
            parts: self.coarse.len(),
        }
    }

    /// Puts entries that were divided by the [`Self::divider`].
    pub fn put(&mut self, divided: &Parts<u8>) {
        let parts = self.coarse.iter_mut().zip(divided.iter());
        for (numbers, part) in parts.filter(|(_, part)| !part.is_empty()) {
            numbers.extend(part);
        }
    }

    /// Works on all parts with the help of other threads, and takes what is made of them in order.
    pub fn work_on<R: Send>(
        self,
        stage: &'static str,
        work: &Work<'_, Vec<u64>, R>,
        take: &mut dyn FnMut(R),
    ) {
        let mut progress = Progress::begin(stage, Some(self.len()));
        let mut done = 0;
        in_order(work, &mut |(), result| take(result), |line| {
            self.for_each(&mut |entries| {
                done += entries.len();
                progress.reach(done);
                let bytes = size_of_val(entries.as_slice());
                line.put((), entries, bytes);
            });
        });
    }

    /// Visits every part, in order.
    fn for_each(self, visit: &mut dyn FnMut(Vec<u64>)) {
        let fine = self.len() * size_of::<u64>() / self.coarse.len();
        let fine = fine.div_ceil(2 * part_bytes()).max(1);
        let parts = self.coarse.len() * fine;
        for (number, entries) in self.coarse.into_iter().enumerate() {
            if fine == 1 {
                visit(entries.into_list());
                continue;
            }
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

/// Divides entries as [`Partitions`] keep them.
#[derive(Debug, Clone, Copy)]
pub struct Divider {
    parts: usize,
}

impl Divider {
    /// Returns the entries of every part, 8 bytes each.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn divide(self, entries: &[u64]) -> Result<Parts<u8>> {
        let mut next = filled(0usize, self.parts)?;
        for entry in entries {
            next[part(*entry, self.parts)] += size_of::<u64>();
        }
        let mut start = 0;
        for place in &mut next {
            start += std::mem::replace(place, start);
        }
        let mut bytes = filled(0u8, start)?;
        for entry in entries {
            let place = &mut next[part(*entry, self.parts)];
            let end = *place + size_of::<u64>();
            bytes[*place..end].copy_from_slice(&entry.to_le_bytes());
            *place = end;
        }
        Ok(Parts::new(bytes, next))
    }
}

/// Returns how many bytes a part is to have.
fn part_bytes() -> usize {
    4 * piece_bytes()
}

/// Returns how many temporary files may be written at once.
pub fn most_files() -> usize {
    (work_mem_bytes() / BYTES_A_FILE).max(LEAST_FILES)
}

/// Returns the part of so many that an entry belongs to, by its highest 32 bits: those of ascending
/// entries ascend.
fn part(entry: u64, parts: usize) -> usize {
    (((entry >> 32) * parts as u64) >> 32) as usize
}
