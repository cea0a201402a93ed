//! Records in the order in which they came, beyond some memory on temporary storage.

use super::file::{File, Scratch, record};
use crate::Result;
use crate::memory::Grow;

pub(super) struct Spool<const N: usize, S> {
    records: Vec<[u64; N]>,
    /// Records in memory at once.
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

    /// Visits the records in the order in which they came, and forgets them.
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
