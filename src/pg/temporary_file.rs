//! Temporary storage that PostgreSQL counts, limits and removes.
//!
//! PostgreSQL's own buffered files read 8 kB for every record. Here, a single record is read alone, and only
//! consecutive records are read in blocks.

use crate::pg::error::{OrRaise, raise};
use crate::pg::settings::work_mem_bytes;
use neardup::memory::{Grow, filled};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::Cell;
use std::io;

/// Number of bytes that are written or read ahead at once.
const BLOCK: usize = 1 << 15;

/// Minimum size of an addition that is written directly instead of being collected with others.
const LARGE: usize = 1 << 13;

/// Two reads count as consecutive if fewer bytes than this lie between them.
const GAP: u64 = 1 << 12;

/// Number of files that may always be written at the same time, however little memory there is.
const LEAST_FILES: usize = 64;

/// Returns how many temporary files may be written at the same time.
pub fn most_files() -> usize {
    (work_mem_bytes() / BLOCK).max(LEAST_FILES)
}

pub struct TemporaryFile {
    file: pg_sys::File,
    /// The number of bytes in the file, without the unwritten ones.
    written: u64,
    unwritten: Vec<u8>,
    /// Bytes read ahead, and their offset.
    ahead: (u64, Vec<u8>),
    /// The offset at which the last read ended.
    last: u64,
}

impl TemporaryFile {
    /// Creates a file. It is removed with this value or, after an ERROR, with the statement.
    pub fn create() -> Self {
        // SAFETY: a statement is running; its resource owner closes the file after an ERROR.
        let file = unsafe {
            pg_sys::PrepareTempTablespaces();
            pg_sys::OpenTemporaryFile(false)
        };
        Self {
            file,
            written: 0,
            unwritten: Vec::new(),
            ahead: (0, Vec::new()),
            last: u64::MAX,
        }
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        let is_large = bytes.len() >= LARGE;
        if is_large || self.unwritten.len() + bytes.len() > BLOCK {
            self.flush();
        }
        if is_large {
            self.write(bytes);
        } else {
            self.unwritten.try_extend_from_slice(bytes).or_raise();
        }
    }

    /// Fills `buffer` with appended bytes, starting at `offset`.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) {
        let end = offset + buffer.len() as u64;
        if offset >= self.written {
            copy_from(&self.unwritten, offset - self.written, buffer);
            return;
        }
        if end > self.written {
            self.flush();
        }
        let (start, ahead) = &self.ahead;
        let is_ahead = offset >= *start && end <= start + ahead.len() as u64;
        let goes_on = offset >= self.last && offset - self.last < GAP;
        self.last = end;
        if !is_ahead && (!goes_on || buffer.len() > BLOCK / 2) {
            return self.read_file(offset, buffer);
        }
        if !is_ahead {
            self.read_ahead(offset);
        }
        copy_from(&self.ahead.1, offset - self.ahead.0, buffer);
    }

    /// Reads ahead a block at `offset`, or the rest of the file if that is shorter.
    fn read_ahead(&mut self, offset: u64) {
        let bytes = (self.written - offset).min(BLOCK as u64) as usize;
        let mut block = std::mem::take(&mut self.ahead.1);
        if block.len() != bytes {
            block = filled(0, bytes).or_raise();
        }
        self.read_file(offset, &mut block);
        self.ahead = (offset, block);
    }

    fn flush(&mut self) {
        let unwritten = std::mem::take(&mut self.unwritten);
        self.write(&unwritten);
        self.unwritten = unwritten;
        self.unwritten.clear();
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // SAFETY: the file is open, and the bytes are only read.
            let written = unsafe {
                pg_sys::FileWrite(
                    self.file,
                    bytes.as_ptr().cast_mut().cast(),
                    bytes.len() as _,
                    self.written as pg_sys::off_t,
                    pg_sys::WaitEventIO::WAIT_EVENT_BUFFILE_WRITE,
                )
            };
            let written = usize::try_from(written).unwrap_or(0);
            if written == 0 {
                fail("write to");
            }
            self.written += written as u64;
            bytes = &bytes[written..];
        }
    }

    fn read_file(&self, mut offset: u64, mut buffer: &mut [u8]) {
        while !buffer.is_empty() {
            // SAFETY: the file is open, and the buffer is valid for its length.
            let read = unsafe {
                pg_sys::FileRead(
                    self.file,
                    buffer.as_mut_ptr().cast(),
                    buffer.len() as _,
                    offset as pg_sys::off_t,
                    pg_sys::WaitEventIO::WAIT_EVENT_BUFFILE_READ,
                )
            };
            match usize::try_from(read) {
                Err(_) => fail("read from"),
                Ok(0) => raise(
                    PgSqlErrorCode::ERRCODE_IO_ERROR,
                    "temporary file is shorter than what was written to it",
                    "",
                ),
                Ok(read) => {
                    offset += read as u64;
                    buffer = &mut buffer[read..];
                }
            }
        }
    }
}

/// Fills `buffer` from `bytes` at `start`.
fn copy_from(bytes: &[u8], start: u64, buffer: &mut [u8]) {
    let start = start as usize;
    buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
}

/// Raises the operating system's last error: could not `action` a temporary file.
fn fail(action: &str) -> ! {
    let error = io::Error::last_os_error();
    let code = match error.kind() {
        io::ErrorKind::StorageFull => PgSqlErrorCode::ERRCODE_DISK_FULL,
        _ => PgSqlErrorCode::ERRCODE_IO_ERROR,
    };
    let message = format!("could not {action} a temporary file: {error}");
    raise(code, &message, "")
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !std::thread::panicking() && !IS_AFTER_ERROR.get() {
            // SAFETY: no ERROR has ended the statement, so the file is open; it is not used again.
            unsafe { pg_sys::FileClose(self.file) };
        }
    }
}

thread_local! {
    /// True while [`drop_after_error`] drops a value.
    static IS_AFTER_ERROR: Cell<bool> = const { Cell::new(false) };
}

/// Drops a value whose temporary files PostgreSQL has closed, or will close, because an ERROR ended its statement. A
/// cursor that fails within a savepoint keeps its memory until it is closed, but not its files.
pub fn drop_after_error<T>(value: T) {
    IS_AFTER_ERROR.set(true);
    drop(value);
    IS_AFTER_ERROR.set(false);
}
