//! Records of any length on temporary storage, read back by number in any order.
//!
//! The first records stay in memory, within a budget; the others go to a temporary file that PostgreSQL counts, limits
//! and removes like the files of its own sorts.

use crate::pg::error::OrRaise;
use crate::pg::temporary_file::TemporaryFile;
use neardup::memory::{Grow, collected};
use std::ops::Range;

pub struct Records {
    memory: Vec<u8>,
    budget: usize,
    file: Option<TemporaryFile>,
    places: Places,
}

/// The places of records, which are stored back to back.
enum Places {
    /// All records have the same length.
    Even { width: usize, len: usize },
    /// The start of each record, followed by the end of the last one.
    Any(Vec<u64>),
}

impl Records {
    /// Returns an empty store that keeps up to `budget` bytes in memory, plus 8 bytes per record once records differ in
    /// length.
    pub fn new(budget: usize) -> Self {
        Self {
            memory: Vec::new(),
            budget,
            file: None,
            places: Places::Even { width: 0, len: 0 },
        }
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        match &self.places {
            Places::Even { len, .. } => *len,
            Places::Any(starts) => starts.len() - 1,
        }
    }

    /// Returns the number of bytes of all records.
    pub fn end(&self) -> u64 {
        self.start(self.len())
    }

    /// Returns whether all records are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Returns the offset at which `record` starts. If `record` is the number of records, returns the end of the last
    /// one.
    pub fn start(&self, record: usize) -> u64 {
        match &self.places {
            Places::Even { width, .. } => (record * width) as u64,
            Places::Any(starts) => starts[record],
        }
    }

    /// Appends a record. Its number is [`Self::len`] before the call.
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
            Places::Even { width, len } if *len == 0 || *width == record.len() => {
                (*width, *len) = (record.len(), *len + 1);
            }
            Places::Even { width, len } => {
                let starts = (0..=*len).map(|record| (record * *width) as u64);
                self.places = Places::Any(collected(starts.chain([end])).or_raise());
            }
            Places::Any(starts) => starts.try_push(end).or_raise(),
        }
    }

    /// Returns the length of `record` in bytes.
    pub fn length(&self, record: usize) -> usize {
        (self.start(record + 1) - self.start(record)) as usize
    }

    /// Returns the record that holds `byte`, and the range of the record's bytes. Bytes are numbered across all
    /// records.
    pub fn record_of(&self, byte: u64) -> (usize, Range<u64>) {
        let record = match &self.places {
            Places::Even { width, .. } => byte as usize / (*width).max(1),
            Places::Any(starts) => starts.partition_point(|start| *start <= byte) - 1,
        };
        (record, self.start(record)..self.start(record + 1))
    }

    /// Returns the bytes of `record`, in `buffer` if they come from the file.
    pub fn read<'a>(&'a mut self, record: usize, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        self.read_part(record, 0..self.length(record), buffer)
    }

    /// Returns the range `bytes` of `record`, in `buffer` if they come from the file.
    pub fn read_part<'a>(
        &'a mut self,
        record: usize,
        bytes: Range<usize>,
        buffer: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let [start, end] = [bytes.start, bytes.end].map(|at| self.start(record) + at as u64);
        self.read_bytes(start..end, buffer)
    }

    /// Returns a range of bytes of one record, numbered across all records, in `buffer` if they come from the file.
    #[allow(clippy::disallowed_methods, reason = "reserved in advance")]
    pub fn read_bytes<'a>(
        &'a mut self,
        Range { start, end }: Range<u64>,
        buffer: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let in_memory = self.memory.len() as u64;
        match &mut self.file {
            Some(file) if start >= in_memory => {
                buffer.clear();
                buffer.try_reserve((end - start) as usize).or_raise();
                buffer.resize((end - start) as usize, 0);
                file.read(start - in_memory, buffer);
                buffer
            }
            _ => &self.memory[start as usize..end as usize],
        }
    }
}
