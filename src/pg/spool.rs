//! Records of any length on temporary storage, read back by number in any order.
//!
//! The first of them stay in memory, as many as a budget allows; the others go to a temporary file
//! that PostgreSQL counts, limits and removes like those of its own sorts.

use crate::pg::error::{OrRaise, or_out_of_memory, raise};
use neardup::memory::{Grow, filled};
use neardup::passages::Scratch;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ops::Range;
use std::ptr::NonNull;

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

/// Temporary storage that PostgreSQL counts, limits and removes.
pub struct TemporaryFile {
    handle: NonNull<pg_sys::BufFile>,
    len: u64,
    at_end: bool,
}

impl Scratch for TemporaryFile {
    /// Creates a file in the memory context of the transaction: it may be needed while a
    /// shorter-lived one, such as that of the query being read, is current. It goes with its handle
    /// or, after an ERROR, with the statement.
    fn create() -> Self {
        // SAFETY: plain calls into PostgreSQL; the context switched to outlives the statement.
        let handle = unsafe {
            let current = pg_sys::MemoryContextSwitchTo(pg_sys::CurTransactionContext);
            let handle = pg_sys::BufFileCreateTemp(false);
            pg_sys::MemoryContextSwitchTo(current);
            handle
        };
        Self {
            handle: NonNull::new(handle).expect("a temporary file has a handle"),
            len: 0,
            at_end: true,
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if !self.at_end {
            self.seek(self.len);
            self.at_end = true;
        }
        // SAFETY: the bytes are only read.
        unsafe {
            let start = bytes.as_ptr().cast_mut().cast();
            pg_sys::BufFileWrite(self.handle.as_ptr(), start, bytes.len());
        }
        self.len += bytes.len() as u64;
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) {
        self.seek(offset);
        self.at_end = false;
        // SAFETY: the buffer is valid for its length.
        let read = unsafe {
            let start = buffer.as_mut_ptr().cast();
            pg_sys::BufFileRead(self.handle.as_ptr(), start, buffer.len())
        };
        if read != buffer.len() {
            raise(
                PgSqlErrorCode::ERRCODE_IO_ERROR,
                "temporary file is shorter than what was written to it",
                "",
            );
        }
    }
}

impl TemporaryFile {
    fn seek(&mut self, offset: u64) {
        // SAFETY: the handle is open.
        let failed = unsafe {
            pg_sys::BufFileSeek(self.handle.as_ptr(), 0, offset as pg_sys::off_t, SEEK_SET)
        };
        if failed != 0 {
            raise(
                PgSqlErrorCode::ERRCODE_IO_ERROR,
                &format!("cannot seek to byte {offset} of a temporary file"),
                "",
            );
        }
    }
}

const SEEK_SET: i32 = 0;

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After an ERROR the files of the statement are closed by PostgreSQL.
        if !std::thread::panicking() {
            // SAFETY: the handle is open, and not used again.
            unsafe { pg_sys::BufFileClose(self.handle.as_ptr()) };
        }
    }
}
