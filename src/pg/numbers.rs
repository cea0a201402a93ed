//! A list of numbers on temporary storage, read in the order in which they were put.

use crate::pg::error::OrRaise;
use crate::pg::temporary_file::TemporaryFile;
use neardup::memory::{Grow, filled, with_room};
use neardup::passages::Scratch;

/// Bytes that are written and read at once.
const BLOCK: usize = 1 << 13;

/// Bytes of a number.
const NUMBER: usize = size_of::<u64>();

pub struct Numbers {
    /// The last ones, as bytes, or all of them.
    last: Vec<u8>,
    budget: usize,
    file: Option<TemporaryFile>,
    len: usize,
}

impl Numbers {
    /// Keeps up to `budget` bytes in memory, and at least a block.
    pub fn new(budget: usize) -> Self {
        Self {
            last: Vec::new(),
            budget: budget.max(BLOCK).next_multiple_of(NUMBER),
            file: None,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, number: u64) {
        self.extend(&number.to_le_bytes());
    }

    /// Appends numbers, 8 bytes each.
    pub fn extend(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() / NUMBER;
        while !bytes.is_empty() {
            if self.last.len() >= self.budget {
                self.write();
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.budget - self.last.len()));
            self.last.try_extend_from_slice(now).or_raise();
            bytes = later;
        }
    }

    /// Writes the numbers in memory to the file, for which the memory is a buffer from now on.
    fn write(&mut self) {
        let file = self.file.get_or_insert_with(TemporaryFile::create);
        file.append(&self.last);
        self.last = with_room(BLOCK).or_raise();
        self.budget = BLOCK;
    }

    /// Visits all numbers, and frees them.
    pub fn for_each(self, visit: &mut dyn FnMut(u64)) {
        self.for_each_block(&mut |block| numbers(block).for_each(&mut *visit));
    }

    fn for_each_block(mut self, visit: &mut dyn FnMut(&[u8])) {
        let mut stored = (self.len * NUMBER - self.last.len()) as u64;
        if let Some(mut file) = self.file.take() {
            let mut start = 0;
            let mut block = filled(0, BLOCK).or_raise();
            while stored > 0 {
                let bytes = stored.min(BLOCK as u64);
                block.truncate(bytes as usize);
                file.read(start, &mut block);
                visit(&block);
                start += bytes;
                stored -= bytes;
            }
        }
        visit(&self.last);
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (numbers, _) = bytes.as_chunks::<NUMBER>();
    numbers.iter().map(|number| u64::from_le_bytes(*number))
}
