//! Entries divided by their highest bits, so that each part can be sorted by itself.
//!
//! Pieces of entries come divided already and stay as they are, so that whoever puts them does not
//! copy them; whoever works on a part gathers it. Beyond a budget they go to one temporary file, in runs
//! that hold one part behind the other.

use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::progress::{Progress, over};
use crate::pg::settings::work_mem_bytes;
use crate::pg::spool::Records;
use neardup::Result;
use neardup::memory::{Grow, filled, with_room};
use neardup::parts::Parts;
use std::ops::Range;

/// Bytes of an entry.
const ENTRY: usize = size_of::<u64>();

/// Parts, at most, however little memory there is.
const LEAST_PARTS: usize = 1 << 9;

/// Bytes that a run has of each part, about, where there are as many parts as there may be.
const SLICE: usize = 1 << 14;

/// Bytes that are kept in memory at least, so that a run is worth its places.
const LEAST_BUDGET: usize = 1 << 19;

/// The work on all entries of a part, in any thread. It calls its second argument often.
pub type PartWork<'a, R> = dyn Fn(Vec<u64>, &mut dyn FnMut()) -> Result<R> + Sync + 'a;

/// Appends the entries of a row, given its number and its record.
pub type MakeEntries<'a> = dyn Fn(u32, &[u8], &mut Vec<u64>) -> Result<()> + Sync + 'a;

/// Entries of 64 bits whose highest 32 are evenly spread, divided into parts of a few pieces of work.
/// Beyond half of work_mem they go to a temporary file.
pub struct Partitions {
    /// Divided entries in memory.
    divided: Vec<Parts<u8>>,
    /// Bytes that these take.
    bytes: usize,
    /// The entries in a file: runs of a record a part.
    spilled: Records,
    /// Bytes of the entries of each part.
    lens: Vec<usize>,
}

impl Partitions {
    /// Returns parts for `entries` entries.
    pub fn new(entries: usize) -> Self {
        let parts = (entries * ENTRY).div_ceil(4 * piece_bytes());
        Self::of_parts(parts.clamp(1, most_parts()))
    }

    /// Returns parts for any number of entries.
    pub fn of_unknown_size() -> Self {
        Self::of_parts(most_parts())
    }

    fn of_parts(parts: usize) -> Self {
        Self {
            divided: Vec::new(),
            bytes: 0,
            spilled: Records::new(0),
            lens: filled(0, parts).or_raise(),
        }
    }

    /// Returns about `entries` entries that `make` makes of the records of `rows` rows, in any thread. `read`
    /// appends the record of a row.
    pub fn of_rows(
        (stage, entries): (&'static str, usize),
        rows: u32,
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
        make: &MakeEntries<'_>,
    ) -> Self {
        let mut partitions = Self::new(entries);
        let divider = partitions.divider();
        let work = |(numbers, records): (Range<u32>, Parts<u8>), check: &mut dyn FnMut()| {
            let mut entries = Vec::new();
            for (row, record) in numbers.zip(records.iter()) {
                check();
                make(row, record, &mut entries)?;
            }
            divider.divide(&entries)
        };
        let mut take = |(), divided: Result<Parts<u8>>| partitions.put(divided.or_raise());
        let made_of_row = entries * ENTRY / rows.max(1) as usize;
        in_order(&work, &mut take, |line| {
            let (mut first, mut piece) = (0, Parts::default());
            for row in over(stage, 0..rows) {
                read(row, &mut piece.items);
                piece.end().or_raise();
                let bytes = piece.items.len() + made_of_row * piece.len();
                if bytes >= piece_bytes() || row + 1 == rows {
                    line.put((), (first..row + 1, std::mem::take(&mut piece)), bytes);
                    first = row + 1;
                }
            }
        });
        partitions
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.lens.iter().sum::<usize>() / ENTRY
    }

    /// Returns how to divide entries, in any thread.
    pub fn divider(&self) -> Divider {
        Divider {
            parts: self.lens.len(),
        }
    }

    /// Puts entries that were divided by the [`Self::divider`].
    pub fn put(&mut self, divided: Parts<u8>) {
        for (len, part) in self.lens.iter_mut().zip(divided.iter()) {
            *len += part.len();
        }
        self.bytes += divided.bytes();
        self.divided.try_push(divided).or_raise();
        if self.bytes > budget() {
            self.spill();
        }
    }

    /// Writes the entries in memory to the file.
    fn spill(&mut self) {
        let mut run = Vec::new();
        for part in 0..self.lens.len() {
            check_interrupts();
            run.clear();
            for divided in &self.divided {
                run.try_extend_from_slice(divided.part(part)).or_raise();
            }
            self.spilled.push(&run);
        }
        self.divided.clear();
        self.bytes = 0;
    }

    /// Works on all parts with the help of other threads, and takes their results in order.
    pub fn work_on<R: Send>(
        mut self,
        stage: &'static str,
        work: &PartWork<'_, R>,
        take: &mut dyn FnMut(R),
    ) {
        let mut progress = Progress::begin(stage, Some(self.len()));
        let mut spilled = std::mem::replace(&mut self.spilled, Records::new(0));
        let work = |(part, stored): (usize, Vec<u8>), check: &mut dyn FnMut()| {
            work(self.entries(part, &stored)?, check)
        };
        let mut take = |(), made: Result<R>| take(made.or_raise());
        let mut done = 0;
        in_order(&work, &mut take, |line| {
            for (part, &bytes) in self.lens.iter().enumerate() {
                let stored = read_runs(&mut spilled, part, self.lens.len());
                done += bytes / ENTRY;
                progress.reach(done);
                if bytes > 0 {
                    line.put((), (part, stored), bytes);
                }
            }
        });
    }

    /// Returns the entries of a part: those stored, and those in memory.
    fn entries(&self, part: usize, stored: &[u8]) -> Result<Vec<u64>> {
        let mut entries = with_room(self.lens[part] / ENTRY)?;
        let in_memory = self.divided.iter().map(|divided| divided.part(part));
        for bytes in std::iter::once(stored).chain(in_memory) {
            let (numbers, _) = bytes.as_chunks::<ENTRY>();
            entries.try_extend(numbers.iter().map(|number| u64::from_le_bytes(*number)))?;
        }
        Ok(entries)
    }
}

/// Returns the entries of a part of all runs in the file.
fn read_runs(spilled: &mut Records, part: usize, parts: usize) -> Vec<u8> {
    let (mut stored, mut buffer) = (Vec::new(), Vec::new());
    for record in (part..spilled.len()).step_by(parts) {
        check_interrupts();
        let run = spilled.read(record, &mut buffer);
        stored.try_extend_from_slice(run).or_raise();
    }
    stored
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
            next[part(*entry, self.parts)] += ENTRY;
        }
        let mut start = 0;
        for place in &mut next {
            start += std::mem::replace(place, start);
        }
        let mut bytes = filled(0u8, start)?;
        for entry in entries {
            let place = &mut next[part(*entry, self.parts)];
            let end = *place + ENTRY;
            bytes[*place..end].copy_from_slice(&entry.to_le_bytes());
            *place = end;
        }
        Ok(Parts::new(bytes, next))
    }
}

/// Returns how many bytes of entries are kept in memory.
fn budget() -> usize {
    (work_mem_bytes() / 2).max(LEAST_BUDGET)
}

fn most_parts() -> usize {
    (budget() / SLICE).max(LEAST_PARTS)
}

/// Returns the part, of `parts`, that an entry belongs to, by its highest 32 bits. The parts of ascending
/// entries ascend.
fn part(entry: u64, parts: usize) -> usize {
    (((entry >> 32) * parts as u64) >> 32) as usize
}
