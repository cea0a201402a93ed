//! Records in a scratch file, and lists of them whose beginning stays in memory.

use crate::Result;
use crate::memory::{Grow, with_room};

/// Temporary storage that grows at its end. If it fails, the implementation raises the error.
pub trait Scratch {
    fn create() -> Self;
    fn append(&mut self, bytes: &[u8]);
    /// Fills `bytes` with the bytes from `start` on, all of which have been appended before.
    fn read(&mut self, start: u64, bytes: &mut [u8]);
}

/// In memory.
impl Scratch for Vec<u8> {
    fn create() -> Self {
        Self::new()
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn read(&mut self, start: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self[start as usize..][..bytes.len()]);
    }
}

/// Bytes that are written at once, and the least that a merge reads of a run at once: smaller blocks would mean
/// mostly seeking.
pub(super) const BLOCK: usize = 1 << 13;

/// Records one after the other, on storage that is created with the first record.
pub(super) struct File<S> {
    storage: Option<S>,
    end: u64,
}

impl<S: Scratch> File<S> {
    pub fn new() -> Self {
        Self {
            storage: None,
            end: 0,
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.end
    }

    pub fn append<const N: usize>(&mut self, records: &[[u64; N]]) -> Result<()> {
        let mut bytes = with_room(BLOCK)?;
        for block in records.chunks(BLOCK / size_of::<[u64; N]>()) {
            bytes.clear();
            bytes.extend(block.iter().flatten().flat_map(|n| n.to_le_bytes()));
            self.storage.get_or_insert_with(S::create).append(&bytes);
            self.end += bytes.len() as u64;
        }
        Ok(())
    }

    /// Fills `bytes` with the bytes from `start` on, which have been appended before.
    pub fn read(&mut self, start: u64, bytes: &mut [u8]) {
        if let Some(storage) = &mut self.storage {
            storage.read(start, bytes);
        }
    }
}

/// Returns the record at the beginning of `bytes`.
#[inline]
pub(super) fn record<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let numbers = bytes.as_chunks().0;
    std::array::from_fn(|n| u64::from_le_bytes(numbers[n]))
}

pub(super) struct Spool<const N: usize, S> {
    records: Vec<[u64; N]>,
    /// Records in memory, at most.
    most: usize,
    spilled: File<S>,
}

impl<const N: usize, S: Scratch> Spool<N, S> {
    const RECORD: usize = size_of::<[u64; N]>();

    /// Keeps up to `memory` bytes of records in memory.
    pub fn new(memory: usize) -> Self {
        Self {
            records: Vec::new(),
            most: (memory / Self::RECORD).max(1 << 10),
            spilled: File::new(),
        }
    }

    pub fn clear(&mut self) {
        self.records.clear();
        self.spilled = File::new();
    }

    pub fn push(&mut self, record: [u64; N]) -> Result<()> {
        if self.records.len() == self.most {
            self.spilled.append(&self.records)?;
            self.records.clear();
        }
        self.records.try_push(record)
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.spilled.len() / Self::RECORD as u64 + self.records.len() as u64
    }

    /// Visits the records in the order in which they were added, and removes them.
    pub fn drain(&mut self, visit: &mut dyn FnMut([u64; N]) -> Result<()>) -> Result<()> {
        let mut spilled = std::mem::replace(&mut self.spilled, File::new());
        let mut bytes = [0; 64];
        for at in (0..spilled.len()).step_by(Self::RECORD) {
            spilled.read(at, &mut bytes[..Self::RECORD]);
            visit(record(&bytes))?;
        }
        self.records.drain(..).try_for_each(visit)
    }
}
