//! Records of any length on temporary storage, read back by number in any order.
//!
//! The first of them stay in memory, as many as a budget allows; the others go to a temporary file
//! that PostgreSQL counts, limits and removes like the files of its own sorts.

use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::settings::work_mem_bytes;
use crate::pg::temporary_file::TemporaryFile;
use neardup::memory::{Grow, filled};
use neardup::passages::Scratch;
use std::ops::Range;

pub struct Records {
    memory: Vec<u8>,
    budget: usize,
    file: Option<TemporaryFile>,
    places: Places,
}

/// The places of records, one behind the other.
enum Places {
    /// The beginning of each record, and the end of the last.
    Any(Vec<u64>),
    /// That many records of one length.
    Even { width: usize, len: usize },
}

impl Records {
    /// Keeps up to `budget` bytes in memory, and besides 8 bytes a record.
    pub fn new(budget: usize) -> Self {
        Self::at(Places::Any(filled(0, 1).or_raise()), budget)
    }

    /// Keeps up to `budget` bytes of records of one length in memory, and nothing besides.
    pub fn of_width(width: usize, budget: usize) -> Self {
        Self::at(Places::Even { width, len: 0 }, budget)
    }

    fn at(places: Places, budget: usize) -> Self {
        Self {
            memory: Vec::new(),
            budget,
            file: None,
            places,
        }
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        match &self.places {
            Places::Any(starts) => starts.len() - 1,
            Places::Even { len, .. } => *len,
        }
    }

    /// Returns whether all records are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Returns where a record begins; for their number, where the last one ends.
    fn start(&self, record: usize) -> u64 {
        match &self.places {
            Places::Any(starts) => starts[record],
            Places::Even { width, .. } => (record * width) as u64,
        }
    }

    /// Appends a record; its number is the [`Self::len`] of before.
    pub fn push(&mut self, record: &[u8]) {
        if self.file.is_none() && self.memory.len() + record.len() <= self.budget {
            self.memory.try_extend_from_slice(record).or_raise();
        } else {
            self.file
                .get_or_insert_with(TemporaryFile::create)
                .append(record);
        }
        let end = self.start(self.len()) + record.len() as u64;
        match &mut self.places {
            Places::Any(starts) => starts.try_push(end).or_raise(),
            Places::Even { width, len } => {
                debug_assert_eq!(record.len(), *width);
                *len += 1;
            }
        }
    }

    /// Returns how many bytes a record has.
    pub fn length(&self, record: usize) -> usize {
        (self.start(record + 1) - self.start(record)) as usize
    }

    /// Returns the bytes of a record, in `buffer` if they come from the file.
    pub fn read<'a>(&'a mut self, record: usize, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        self.read_part(record, 0..self.length(record), buffer)
    }

    /// Returns some bytes of a record, in `buffer` if they come from the file.
    #[allow(clippy::disallowed_methods, reason = "reserved before")]
    pub fn read_part<'a>(
        &'a mut self,
        record: usize,
        bytes: Range<usize>,
        buffer: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let [start, end] = [bytes.start, bytes.end].map(|at| self.start(record) + at as u64);
        let in_memory = self.memory.len() as u64;
        match &mut self.file {
            Some(file) if start >= in_memory => {
                buffer.clear();
                or_out_of_memory(buffer.try_reserve((end - start) as usize));
                buffer.resize((end - start) as usize, 0);
                file.read(start - in_memory, buffer);
                buffer
            }
            _ => &self.memory[start as usize..end as usize],
        }
    }
}

/// Pairs of numbers, those beyond work_mem in a temporary file.
pub struct NumberPairs {
    records: Records,
    buffer: Vec<u8>,
}

impl NumberPairs {
    pub fn new() -> Self {
        Self {
            records: Records::of_width(2 * size_of::<u64>(), work_mem_bytes()),
            buffer: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn push(&mut self, pair: [u64; 2]) {
        let [first, second] = pair.map(u64::to_ne_bytes);
        self.records.push([first, second].as_flattened());
    }

    pub fn get(&mut self, place: usize) -> [u64; 2] {
        let record = self.records.read(place, &mut self.buffer);
        let (numbers, _) = record.as_chunks();
        [numbers[0], numbers[1]].map(u64::from_ne_bytes)
    }
}

/// A record that is kept while it is compared with many.
#[derive(Default)]
pub struct HeldRecord {
    row: Option<u32>,
    value: Vec<u8>,
    buffer: Vec<u8>,
}

impl HeldRecord {
    /// Returns the records of two rows; the first is held for the next call.
    pub fn load<'a>(
        &'a mut self,
        records: &'a mut Records,
        held: u32,
        other: u32,
    ) -> (&'a [u8], &'a [u8]) {
        if self.row != Some(held) {
            self.row = Some(held);
            let record = records.read(held as usize, &mut self.buffer);
            self.value.clear();
            self.value.try_extend_from_slice(record).or_raise();
        }
        (&self.value, records.read(other as usize, &mut self.buffer))
    }
}
