//! Sorting more records than memory holds: sorted runs on temporary storage, then a merge.

use crate::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Temporary storage that grows at its end. A failure is the implementation's to raise.
pub trait Scratch {
    fn create() -> Self;
    fn append(&mut self, bytes: &[u8]);
    /// Fills `bytes` with what stands from byte `start` on; all of it has been appended before.
    fn read(&mut self, start: u64, bytes: &mut [u8]);
}

/// Bytes that are written at once, and of each run read at once at least: with fewer, a merge would
/// be all seeking.
pub(super) const BLOCK: usize = 1 << 13;

/// The memory of a sort that is granted less.
pub(super) const LEAST_MEMORY: usize = 1 << 16;

/// Records, or comparisons of records, between two checks.
pub(super) const HEARTBEAT: usize = 1 << 16;

/// A sort of records of N numbers, by the first number, then the second, and so on.
pub(super) struct Sort<const N: usize, S> {
    records: Vec<[u64; N]>,
    /// Bytes of records in memory at once.
    memory: usize,
    runs: Runs<S>,
}

impl<const N: usize, S: Scratch> Sort<N, S> {
    const RECORD: usize = size_of::<[u64; N]>();

    /// Keeps up to `memory` bytes of records in memory.
    pub fn new(memory: usize) -> Self {
        Self {
            records: Vec::new(),
            memory: memory.max(LEAST_MEMORY),
            runs: Runs {
                file: None,
                end: 0,
                ranges: Vec::new(),
            },
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

    /// Returns the number of records, before they are sorted.
    pub fn len(&self) -> u64 {
        self.runs.end / Self::RECORD as u64 + self.records.len() as u64
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
        let mut writer = Writer::new(&self.runs)?;
        let file = self.runs.file.get_or_insert_with(S::create);
        for record in self.records.drain(..) {
            writer.push(&record, file);
        }
        writer.finish(file, &mut self.runs.end, &mut self.runs.ranges)
    }

    /// Returns the records in order.
    pub fn sorted(mut self, check: &mut dyn FnMut()) -> Result<Sorted<N, S>> {
        if self.runs.ranges.is_empty() {
            sort(&mut self.records, check);
            return Ok(Sorted::Memory(self.records.into_iter()));
        }
        self.write_run(check)?;
        self.records = Vec::new();
        let at_once = (self.memory / BLOCK).max(2);
        while self.runs.ranges.len() > at_once {
            self.merge_first(at_once, check)?;
        }
        let Runs { file, ranges, .. } = self.runs;
        let file = file.expect("runs are in a file");
        Ok(Sorted::Merge(Merge::new(ranges, file, self.memory)?))
    }

    /// Makes one run, the last, of the first `count`.
    fn merge_first(&mut self, count: usize, check: &mut dyn FnMut()) -> Result<()> {
        let mut writer = Writer::new(&self.runs)?;
        let rest = self.runs.ranges.split_off(count);
        let first = std::mem::replace(&mut self.runs.ranges, rest);
        let file = self.runs.file.take().expect("runs are in a file");
        let mut merge = Merge::<N, S>::new(first, file, self.memory)?;
        while let Some(record) = merge.next() {
            if writer.push(&record, &mut merge.file) {
                check();
            }
        }
        writer.finish(&mut merge.file, &mut self.runs.end, &mut self.runs.ranges)?;
        self.runs.file = Some(merge.file);
        Ok(())
    }
}

/// Sorts records in memory.
pub(super) fn sort<const N: usize>(records: &mut [[u64; N]], check: &mut dyn FnMut()) {
    let mut comparisons = 0;
    records.sort_unstable_by(|a, b| {
        comparisons += 1;
        if comparisons == HEARTBEAT {
            comparisons = 0;
            check();
        }
        a.cmp(b)
    });
}

/// Sorted runs on temporary storage.
struct Runs<S> {
    file: Option<S>,
    /// Bytes in the file.
    end: u64,
    ranges: Vec<Range<u64>>,
}

/// Appends a run.
struct Writer {
    buffer: Vec<u8>,
    written: Range<u64>,
}

impl Writer {
    fn new<S>(runs: &Runs<S>) -> Result<Self> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(BLOCK)?;
        Ok(Self {
            buffer,
            written: runs.end..runs.end,
        })
    }

    /// Returns true when it has written to the file.
    fn push<const N: usize, S: Scratch>(&mut self, record: &[u64; N], file: &mut S) -> bool {
        for number in record {
            self.buffer.extend_from_slice(&number.to_le_bytes());
        }
        let is_full = self.buffer.len() + size_of::<[u64; N]>() > BLOCK;
        if is_full {
            self.flush(file);
        }
        is_full
    }

    fn flush<S: Scratch>(&mut self, file: &mut S) {
        file.append(&self.buffer);
        self.written.end += self.buffer.len() as u64;
        self.buffer.clear();
    }

    fn finish<S: Scratch>(
        mut self,
        file: &mut S,
        end: &mut u64,
        ranges: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        self.flush(file);
        *end = self.written.end;
        ranges.try_reserve(1)?;
        ranges.push(self.written);
        Ok(())
    }
}

/// The records of a [`Sort`].
pub(super) enum Sorted<const N: usize, S> {
    Memory(std::vec::IntoIter<[u64; N]>),
    Merge(Merge<N, S>),
}

impl<const N: usize, S: Scratch> Iterator for Sorted<N, S> {
    type Item = [u64; N];

    #[inline]
    fn next(&mut self) -> Option<[u64; N]> {
        match self {
            Self::Memory(records) => records.next(),
            Self::Merge(merge) => merge.next(),
        }
    }
}

/// A merge of runs.
pub(super) struct Merge<const N: usize, S> {
    file: S,
    readers: Vec<Reader>,
    /// The next record of every run that has one.
    heap: BinaryHeap<Reverse<([u64; N], usize)>>,
    bytes: Vec<u8>,
}

/// The rest of a run.
struct Reader {
    unread: Range<u64>,
    /// The range in [`Merge::bytes`] of its records that were read.
    buffer: Range<usize>,
    buffered: Range<usize>,
}

impl<const N: usize, S: Scratch> Merge<N, S> {
    const RECORD: usize = size_of::<[u64; N]>();

    fn new(ranges: Vec<Range<u64>>, file: S, memory: usize) -> Result<Self> {
        let block = (memory / ranges.len().max(1)).max(BLOCK) / Self::RECORD * Self::RECORD;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(block * ranges.len())?;
        bytes.resize(block * ranges.len(), 0);
        let mut readers = Vec::new();
        readers.try_reserve_exact(ranges.len())?;
        readers.extend(ranges.into_iter().enumerate().map(|(run, unread)| Reader {
            unread,
            buffer: run * block..(run + 1) * block,
            buffered: 0..0,
        }));
        let mut records = Vec::new();
        records.try_reserve_exact(readers.len())?;
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
        let (numbers, _) = self.bytes[start..start + Self::RECORD].as_chunks::<8>();
        let mut record = [0; N];
        for (number, bytes) in record.iter_mut().zip(numbers) {
            *number = u64::from_le_bytes(*bytes);
        }
        Some(record)
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

    struct Memory(Vec<u8>);

    impl Scratch for Memory {
        fn create() -> Self {
            Self(Vec::new())
        }

        fn append(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn read(&mut self, start: u64, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0[start as usize..][..bytes.len()]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn as_in_memory(records in prop::collection::vec(0u64..1 << 20, 0..40_000)) {
            let mut sort = Sort::<2, Memory>::new(0);
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
