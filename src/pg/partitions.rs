//! Entries partitioned by their highest bits, so that each part can be sorted by itself.
//!
//! Entries are divided in pieces before they are added. The pieces are kept as they are, so that the thread that adds
//! them copies no entries. The thread that works on a part gathers its entries from the pieces. Entries that exceed a
//! budget go to one temporary file, in runs that hold one part after the other.

use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::helpers::{in_order, in_pieces, piece_bytes};
use crate::pg::progress::{Progress, over};
use crate::pg::settings::work_mem_bytes;
use crate::pg::spool::Records;
use neardup::Result;
use neardup::memory::{Grow, filled, with_room};
use neardup::parts::Parts;
use std::ops::Range;

/// Number of parts that is always allowed, however little memory there is.
const LEAST_PARTS: usize = 1 << 9;

/// Approximate bytes of each part in a run, with the maximum number of parts.
const SLICE: usize = 1 << 14;

/// Minimum budget in bytes, so that a run is large compared to its list of offsets.
const LEAST_BUDGET: usize = 1 << 19;

/// Number of entries added by [`Partitions::push`] that are divided together.
const AT_ONCE: usize = 1 << 12;

/// A part is large if it takes more bytes than 1 / `LARGE_SHARE` of work_mem, clamped to this range.
const LARGE: Range<usize> = 1 << 16..1 << 24;
const LARGE_SHARE: usize = 16;

/// Works on all entries of a part. Runs in any thread, and calls its second argument, a check for interrupts, often.
pub type PartWork<'a, R> = dyn Fn(Vec<u64>, &mut dyn FnMut()) -> Result<R> + Sync + 'a;

/// Appends the entries of a row, given its number and its record.
pub type MakeEntries<'a> = dyn Fn(u32, &[u8], &mut Vec<u64>) -> Result<()> + Sync + 'a;

/// Calls its argument with the entries of a part, a slice at a time, in the order in which they were added.
pub type VisitSlices<'a> = dyn FnMut(&mut dyn FnMut(&[u64])) + 'a;

/// Works on a large part, in the leader.
pub type LargePartWork<'a> = dyn FnMut(&mut VisitSlices<'_>) + 'a;

/// Entries of `N` numbers, divided by the highest 32 bits of the first number, which are evenly distributed. A part has
/// the size of a few pieces of work. In lists, entries follow each other without gaps. Entries that exceed a budget go
/// to a temporary file.
pub struct Partitions<const N: usize = 1> {
    /// Bytes of entries that may stay in memory.
    budget: usize,
    /// Entries that have not been divided yet.
    waiting: Vec<u64>,
    /// Divided entries in memory.
    divided: Vec<Parts<u8>>,
    /// Bytes of `divided`.
    bytes: usize,
    /// The entries in the file: runs of one record per part.
    spilled: Records,
    /// Bytes of the entries of each part.
    lens: Vec<usize>,
}

impl<const N: usize> Partitions<N> {
    /// Number of bytes of an entry.
    const ENTRY: usize = size_of::<[u64; N]>();

    /// Returns partitions for about `entries` entries. Keeps up to half of work_mem in memory.
    pub fn new(entries: usize) -> Self {
        Self::within(work_mem_bytes() / 2, Some(entries))
    }

    /// Returns partitions for about `entries` entries, or for an unknown number if `entries` is None. Keeps up to
    /// `budget` bytes in memory, but at least [`LEAST_BUDGET`].
    pub fn within(budget: usize, entries: Option<usize>) -> Self {
        let budget = budget.max(LEAST_BUDGET);
        let most = (budget / SLICE).max(LEAST_PARTS);
        let parts = entries.map_or(most, |entries| {
            (entries * Self::ENTRY)
                .div_ceil(4 * piece_bytes())
                .clamp(1, most)
        });
        Self {
            budget,
            waiting: Vec::new(),
            divided: Vec::new(),
            bytes: 0,
            spilled: Records::new(0),
            lens: filled(0, parts).or_raise(),
        }
    }

    /// Returns partitions of the entries, about `entries` in total, that `make` appends for the records of `rows` rows.
    /// `read` appends the record of a row; `make` runs in any thread.
    pub fn of_rows(
        (stage, entries): (&'static str, usize),
        rows: u32,
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
        make: &MakeEntries<'_>,
    ) -> Self {
        let mut partitions = Self::new(entries);
        let divider = partitions.divider();
        let work = |(numbers, records): (Vec<u32>, Parts<u8>), check: &mut dyn FnMut()| {
            let mut entries = Vec::new();
            for (row, record) in numbers.into_iter().zip(records.iter()) {
                check();
                make(row, record, &mut entries)?;
            }
            divider.divide(&entries)
        };
        let mut take = |divided: Result<Parts<u8>>| partitions.put(divided.or_raise());
        let made_of_row = entries * Self::ENTRY / rows.max(1) as usize;
        in_pieces(made_of_row, &work, &mut take, |put| {
            for row in over(stage, 0..rows) {
                put(row, &mut |record| read(row, record));
            }
        });
        partitions
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        let divided = self.lens.iter().sum::<usize>() / Self::ENTRY;
        divided + self.waiting.len() / N
    }

    /// Returns a divider for these partitions, which works in any thread.
    pub fn divider(&self) -> Divider<N> {
        Divider {
            parts: self.lens.len(),
        }
    }

    /// Adds an entry. It is divided later, together with others.
    pub fn push(&mut self, entry: [u64; N]) {
        self.waiting.try_extend_from_slice(&entry).or_raise();
        if self.waiting.len() >= AT_ONCE * N {
            self.divide_waiting();
        }
    }

    fn divide_waiting(&mut self) {
        let divided = self.divider().divide(&self.waiting);
        self.waiting.clear();
        self.put(divided.or_raise());
    }

    /// Adds entries divided by [`Divider::divide`]. Spills to the file once the entries in memory exceed the budget.
    pub fn put(&mut self, divided: Parts<u8>) {
        for (len, part) in self.lens.iter_mut().zip(divided.iter()) {
            *len += part.len();
        }
        self.bytes += divided.bytes();
        self.divided.try_push(divided).or_raise();
        if self.bytes > self.budget {
            self.spill();
        }
    }

    /// Writes the entries in memory to the file.
    fn spill(&mut self) {
        let mut run = Vec::new();
        for part in 0..self.lens.len() {
            check_interrupts();
            run.clear();
            for divided in &self.divided {
                run.try_extend_from_slice(divided.part(part)).or_raise();
            }
            self.spilled.push(&run);
        }
        self.divided.clear();
        self.bytes = 0;
    }

    /// Calls `work` for every part with entries, with the help of other threads, and passes the results to `take` in
    /// the order of the parts. If `large` is given, the leader calls it for large parts instead, after all others.
    pub fn work_on<R: Send>(
        mut self,
        stage: &'static str,
        work: &PartWork<'_, R>,
        mut large: Option<&mut LargePartWork<'_>>,
        take: &mut dyn FnMut(R),
    ) {
        self.divide_waiting();
        let mut progress = Progress::begin(stage, self.len());
        let mut spilled = std::mem::replace(&mut self.spilled, Records::new(0));
        let work = |(part, stored): (usize, Vec<u8>), check: &mut dyn FnMut()| {
            let entries = self.entries(part, &stored)?;
            drop(stored);
            work(entries, check)
        };
        let mut take = |(), made: Result<R>| take(made.or_raise());
        let large_part = (work_mem_bytes() / LARGE_SHARE).clamp(LARGE.start, LARGE.end);
        let has_large = large.is_some();
        let is_large = |bytes: usize| has_large && bytes > large_part;
        let mut done = 0;
        in_order(&work, &mut take, |line| {
            for (part, &bytes) in self.lens.iter().enumerate() {
                if bytes == 0 || is_large(bytes) {
                    continue;
                }
                let stored = read_runs(&mut spilled, part, self.lens.len());
                line.put((), (part, stored), bytes);
                done += bytes / Self::ENTRY;
                progress.reach(done);
            }
        });
        for (part, &bytes) in self.lens.iter().enumerate() {
            if let Some(large) = large.as_mut().filter(|_| is_large(bytes)) {
                large(&mut |visit| self.for_each_slice(part, &mut spilled, visit));
                done += bytes / Self::ENTRY;
                progress.reach(done);
            }
        }
    }

    /// Calls `visit` with the entries of `part`, a slice at a time, in the order in which they were added.
    fn for_each_slice(&self, part: usize, spilled: &mut Records, visit: &mut dyn FnMut(&[u64])) {
        let (mut buffer, mut entries) = (Vec::new(), Vec::new());
        let mut visit = |bytes: &[u8]| {
            check_interrupts();
            entries.clear();
            push_entries(bytes, &mut entries).or_raise();
            visit(&entries);
        };
        for record in (part..spilled.len()).step_by(self.lens.len()) {
            visit(spilled.read(record, &mut buffer));
        }
        for divided in &self.divided {
            visit(divided.part(part));
        }
    }

    /// Returns the entries of `part`, which are in `stored` and in memory.
    fn entries(&self, part: usize, stored: &[u8]) -> Result<Vec<u64>> {
        let mut entries = with_room(self.lens[part] / size_of::<u64>())?;
        let in_memory = self.divided.iter().map(|divided| divided.part(part));
        for bytes in std::iter::once(stored).chain(in_memory) {
            push_entries(bytes, &mut entries)?;
        }
        Ok(entries)
    }
}

/// Appends the entries stored in `bytes` to `entries`.
pub fn push_entries(bytes: &[u8], entries: &mut Vec<u64>) -> Result<()> {
    let (numbers, _) = bytes.as_chunks();
    entries.try_extend(numbers.iter().map(|number| u64::from_le_bytes(*number)))
}

/// Returns the bytes of the entries of `part` from all runs in the file.
fn read_runs(spilled: &mut Records, part: usize, parts: usize) -> Vec<u8> {
    let (mut stored, mut buffer) = (Vec::new(), Vec::new());
    for record in (part..spilled.len()).step_by(parts) {
        check_interrupts();
        let run = spilled.read(record, &mut buffer);
        stored.try_extend_from_slice(run).or_raise();
    }
    stored
}

/// The division of entries into the parts of [`Partitions`].
#[derive(Debug, Clone, Copy)]
pub struct Divider<const N: usize> {
    parts: usize,
}

impl<const N: usize> Divider<N> {
    /// Returns the entries of every part, 8 bytes per number.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn divide(self, entries: &[u64]) -> Result<Parts<u8>> {
        let (entries, _) = entries.as_chunks::<N>();
        let mut next = filled(0usize, self.parts)?;
        for entry in entries {
            next[part(entry[0], self.parts)] += size_of_val(entry);
        }
        let mut start = 0;
        for place in &mut next {
            start += std::mem::replace(place, start);
        }
        let mut bytes = filled(0u8, start)?;
        for entry in entries {
            let place = &mut next[part(entry[0], self.parts)];
            for number in entry {
                let end = *place + size_of::<u64>();
                bytes[*place..end].copy_from_slice(&number.to_le_bytes());
                *place = end;
            }
        }
        Ok(Parts::new(bytes, next))
    }
}

/// Returns the number of the part that an entry belongs to, out of `parts` parts, by the entry's highest 32 bits.
/// Ascending entries have ascending parts.
fn part(entry: u64, parts: usize) -> usize {
    (((entry >> 32) * parts as u64) >> 32) as usize
}
