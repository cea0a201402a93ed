//! Sorting of more records than fit into memory: sorted runs on temporary storage, then a merge.

use super::file::{BLOCK, File, Scratch, record};
use crate::Result;
use crate::memory::{Grow, filled, with_room};
use crate::set::sort;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The least memory of a sort, even if it is granted less.
pub(super) const LEAST_MEMORY: usize = 1 << 16;

/// Records between two checks.
pub(super) const HEARTBEAT: usize = 1 << 16;

/// A sort of records of N numbers, by the first number, then the second, and so on.
pub(super) struct Sort<const N: usize, S> {
    records: Vec<[u64; N]>,
    /// Bytes of records in memory, at most.
    memory: usize,
    /// The sorted runs that did not fit into memory, and their places.
    file: File<S>,
    runs: Vec<Range<u64>>,
}

impl<const N: usize, S: Scratch> Sort<N, S> {
    const RECORD: usize = size_of::<[u64; N]>();

    /// Keeps up to `memory` bytes of records in memory.
    pub fn new(memory: usize) -> Self {
        Self {
            records: Vec::new(),
            memory: memory.max(LEAST_MEMORY),
            file: File::new(),
            runs: Vec::new(),
        }
    }

    #[inline]
    pub fn push(&mut self, record: [u64; N], check: &mut dyn FnMut()) -> Result<()> {
        if self.records.len() == self.records.capacity() {
            self.make_room(check)?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Returns the number of records added so far.
    pub fn len(&self) -> u64 {
        self.file.len() / Self::RECORD as u64 + self.records.len() as u64
    }

    #[cold]
    fn make_room(&mut self, check: &mut dyn FnMut()) -> Result<()> {
        let (held, most) = (self.records.len(), self.memory / Self::RECORD);
        if held >= most {
            return self.write_run(check);
        }
        let room = held.max(1024).min(most - held);
        Ok(self.records.try_reserve_exact(room)?)
    }

    fn write_run(&mut self, check: &mut dyn FnMut()) -> Result<()> {
        sort(&mut self.records, check);
        let start = self.file.len();
        self.file.append(&self.records)?;
        self.records.clear();
        self.runs.try_push(start..self.file.len())
    }

    /// Returns the records in order.
    pub fn sorted(mut self, check: &mut dyn FnMut()) -> Result<SortedRecords<N, S>> {
        if self.runs.is_empty() {
            sort(&mut self.records, check);
            return Ok(SortedRecords::Memory(self.records.into_iter()));
        }
        self.write_run(check)?;
        self.records = Vec::new();
        let at_once = (self.memory / BLOCK).max(2);
        while self.runs.len() > at_once {
            self.merge_first(at_once, check)?;
        }
        Ok(SortedRecords::RunMerge(RunMerge::new(
            self.runs,
            self.file,
            self.memory,
        )?))
    }

    /// Merges the first `count` runs into one, which becomes the last.
    fn merge_first(&mut self, count: usize, check: &mut dyn FnMut()) -> Result<()> {
        let rest = self.runs.split_off(count);
        let first = std::mem::replace(&mut self.runs, rest);
        let file = std::mem::replace(&mut self.file, File::new());
        let start = file.len();
        let mut merge = RunMerge::<N, S>::new(first, file, self.memory)?;
        let mut block = with_room(BLOCK / Self::RECORD)?;
        while let Some(record) = merge.next() {
            block.push(record);
            if block.len() == block.capacity() {
                merge.file.append(&block)?;
                block.clear();
                check();
            }
        }
        merge.file.append(&block)?;
        self.file = merge.file;
        self.runs.try_push(start..self.file.len())
    }
}

/// The records of a [`Sort`].
pub(super) enum SortedRecords<const N: usize, S> {
    Memory(std::vec::IntoIter<[u64; N]>),
    RunMerge(RunMerge<N, S>),
}

impl<const N: usize, S: Scratch> Iterator for SortedRecords<N, S> {
    type Item = [u64; N];

    #[inline]
    fn next(&mut self) -> Option<[u64; N]> {
        match self {
            Self::Memory(records) => records.next(),
            Self::RunMerge(merge) => merge.next(),
        }
    }
}

/// A merge of runs.
pub(super) struct RunMerge<const N: usize, S> {
    file: File<S>,
    readers: Vec<RunReader>,
    /// The next record of every run that has one.
    heap: BinaryHeap<Reverse<([u64; N], usize)>>,
    bytes: Vec<u8>,
}

/// The part of a run that has not been merged yet.
struct RunReader {
    unread: Range<u64>,
    /// The range in [`RunMerge::bytes`] of the records that have been read.
    buffer: Range<usize>,
    buffered: Range<usize>,
}

impl<const N: usize, S: Scratch> RunMerge<N, S> {
    const RECORD: usize = size_of::<[u64; N]>();

    fn new(runs: Vec<Range<u64>>, file: File<S>, memory: usize) -> Result<Self> {
        let block = (memory / runs.len().max(1)).max(BLOCK) / Self::RECORD * Self::RECORD;
        let bytes = filled(0, block * runs.len())?;
        let mut readers = with_room(runs.len())?;
        readers.extend(runs.into_iter().enumerate().map(|(run, unread)| RunReader {
            unread,
            buffer: run * block..(run + 1) * block,
            buffered: 0..0,
        }));
        let mut records = with_room(readers.len())?;
        let mut merge = Self {
            file,
            readers,
            heap: BinaryHeap::new(),
            bytes,
        };
        for run in 0..merge.readers.len() {
            records.extend(merge.read(run).map(|record| Reverse((record, run))));
        }
        merge.heap = BinaryHeap::from(records);
        Ok(merge)
    }

    /// Returns the next record of a run.
    #[inline]
    fn read(&mut self, run: usize) -> Option<[u64; N]> {
        let reader = &mut self.readers[run];
        if reader.buffered.is_empty() {
            let left = reader.unread.end - reader.unread.start;
            let length = left.min(reader.buffer.len() as u64) as usize;
            if length == 0 {
                return None;
            }
            reader.buffered = reader.buffer.start..reader.buffer.start + length;
            let bytes = &mut self.bytes[reader.buffered.clone()];
            self.file.read(reader.unread.start, bytes);
            reader.unread.start += length as u64;
        }
        let start = reader.buffered.start;
        reader.buffered.start += Self::RECORD;
        Some(record(&self.bytes[start..]))
    }

    fn next(&mut self) -> Option<[u64; N]> {
        let Reverse((record, run)) = *self.heap.peek()?;
        match self.read(run) {
            Some(next) => {
                if let Some(mut top) = self.heap.peek_mut() {
                    *top = Reverse((next, run));
                }
            }
            None => {
                self.heap.pop();
            }
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn as_in_memory(records in prop::collection::vec(0u64..1 << 20, 0..40_000)) {
            let mut sort = Sort::<2, Vec<u8>>::new(0);
            for (number, record) in records.iter().enumerate() {
                sort.push([*record, number as u64], &mut || ()).unwrap();
            }
            let sorted: Vec<_> = sort.sorted(&mut || ()).unwrap().collect();
            let mut expected: Vec<_> = (0..).zip(&records).map(|(number, record)| [*record, number]).collect();
            expected.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
