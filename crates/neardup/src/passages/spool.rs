//! Records in the order in which they came, beyond some memory on temporary storage.

use super::sort::Scratch;
use crate::Result;
use crate::memory::with_room;

/// Records that are written at once.
const BLOCK: usize = 1 << 8;

pub(super) struct Spool<const N: usize, S> {
    records: Vec<[u64; N]>,
    /// Records in memory at once.
    most: usize,
    spilled: Option<(S, u64)>,
}

impl<const N: usize, S: Scratch> Spool<N, S> {
    const RECORD: usize = size_of::<[u64; N]>();

    /// Keeps up to `memory` bytes of records in memory.
    pub fn new(memory: usize) -> Self {
        Self {
            records: Vec::new(),
            most: (memory / Self::RECORD).max(1 << 10),
            spilled: None,
        }
    }

    pub fn clear(&mut self) {
        self.records.clear();
        self.spilled = None;
    }

    pub fn push(&mut self, record: [u64; N]) -> Result<()> {
        if self.records.len() == self.most {
            self.spill()?;
        }
        self.records.try_reserve(1)?;
        self.records.push(record);
        Ok(())
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        let spilled = self.spilled.as_ref().map_or(0, |(_, end)| *end);
        spilled / Self::RECORD as u64 + self.records.len() as u64
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        let mut bytes = with_room(BLOCK * Self::RECORD)?;
        let (file, end) = self.spilled.get_or_insert_with(|| (S::create(), 0));
        for block in self.records.chunks(BLOCK) {
            bytes.clear();
            bytes.extend(block.iter().flatten().flat_map(|n| n.to_le_bytes()));
            file.append(&bytes);
            *end += bytes.len() as u64;
        }
        self.records.clear();
        Ok(())
    }

    /// Visits the records in the order in which they came, and forgets them.
    pub fn drain(&mut self, visit: &mut dyn FnMut([u64; N]) -> Result<()>) -> Result<()> {
        if let Some((mut file, end)) = self.spilled.take() {
            let mut bytes = [0; 64];
            let bytes = &mut bytes[..Self::RECORD];
            for at in (0..end).step_by(Self::RECORD) {
                file.read(at, bytes);
                let (numbers, _) = bytes.as_chunks::<8>();
                visit(std::array::from_fn(|n| u64::from_le_bytes(numbers[n])))?;
            }
        }
        self.records.drain(..).try_for_each(visit)
    }
}
