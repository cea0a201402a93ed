//! Counts of the lists in which each row occurs.

use crate::memory::{Grow, collected, filled, with_room};
use crate::{Error, Result};
use std::ops::Range;

/// Number of rows counted at a time, so that their counts stay in the processor's cache.
const WINDOW: usize = 1 << 14;

/// Up to this many offsets are sorted instead of counted.
const FEW: usize = 4096;

/// Maximum number of rows per offset for counting to be faster than sorting.
const SPARSE: usize = 64;

/// Maximum number of counters of the final count, as a multiple of the limit.
const MORE: usize = 8;

/// Above this many offsets, only counting can be interrupted in time.
const MANY: usize = 1 << 20;

/// Number of counters that are skipped together if all are 0, as most are.
const BLOCK: usize = 32;

/// Number of blocks per word, which has a bit for each.
const WORD: usize = u64::BITS as usize;

/// Maximum number of runs times windows per offset for counting by windows to be faster.
const RUNS: usize = 8;

/// Runs of row offsets read from lists, each in ascending order.
pub(super) struct RowTally {
    offsets: Vec<u32>,
    ends: Vec<usize>,
    /// The range of the rows' offsets. In a sound index, all offsets are within it.
    rows: Range<u32>,
    /// Maximum number of offsets to hold. When it is exceeded, they are counted and dropped, or left out if there are
    /// more rows than this.
    limit: usize,
    /// Counts of the dropped offsets, one per row; empty if none have been dropped.
    counts: Vec<u32>,
    /// True if offsets were left out.
    is_full: bool,
}

/// A row's offset, the number of the query's keys that it is known to have, and the number that it needs.
#[derive(Clone, Copy)]
pub(super) struct CountedRow {
    pub offset: u32,
    pub count: u32,
    pub needed: u32,
}

impl CountedRow {
    fn new(offset: u32, count: u32) -> Self {
        Self {
            offset,
            count,
            needed: 0,
        }
    }
}

/// Merges `counted` and `others`, both in ascending order. Rows in both are taken from `counted`.
pub(super) fn merged(counted: &[CountedRow], others: &[CountedRow]) -> Result<Vec<CountedRow>> {
    let mut all = with_room(counted.len() + others.len())?;
    let mut others = others.iter().copied().peekable();
    for row in counted {
        while let Some(other) = others.next_if(|other| other.offset < row.offset) {
            all.push(other);
        }
        others.next_if(|other| other.offset == row.offset);
        all.push(*row);
    }
    all.extend(others);
    Ok(all)
}

impl RowTally {
    /// Returns an empty tally of rows by their offsets. It holds at most `limit` offsets and `limit` counters, of 4
    /// bytes each.
    pub fn new(rows: Range<u32>, limit: usize) -> Self {
        Self {
            offsets: Vec::new(),
            ends: Vec::new(),
            rows,
            limit,
            counts: Vec::new(),
            is_full: false,
        }
    }

    /// Adds `run` `weight` times, unless the tally is full.
    #[inline]
    pub fn add(&mut self, run: &[u32], weight: u32) -> Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        for _ in 0..weight {
            if self.offsets.len() + run.len() > self.limit {
                self.is_full |= self.rows.len() > self.limit;
                if self.is_full {
                    return Ok(());
                }
                self.fold()?;
            }
            self.offsets.try_extend_from_slice(run)?;
            self.ends.try_push(self.offsets.len())?;
        }
        Ok(())
    }

    /// Counts the offsets collected so far, with one counter per row, and drops them.
    fn fold(&mut self) -> Result<()> {
        if self.counts.is_empty() {
            self.counts = filled(0, self.rows.len())?;
        }
        for offset in self.offsets.drain(..) {
            let place = offset.wrapping_sub(self.rows.start);
            if let Some(count) = self.counts.get_mut(place as usize) {
                *count += 1;
            }
        }
        self.ends.clear();
        Ok(())
    }

    /// Returns the rows that occur at least `least` (1 or more) times, in ascending order.
    pub fn candidates<E: From<Error>>(
        mut self,
        least: u32,
        interrupt: &mut impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<CountedRow>, E> {
        if !self.counts.is_empty() {
            self.fold()?;
            return self.folded(least, interrupt);
        }
        let first = self.offsets.iter().min().copied().unwrap_or(0);
        let last = self.offsets.iter().max().copied().unwrap_or(0);
        let (span, offsets) = ((last - first) as usize, self.offsets.len());
        if offsets > FEW && (span / SPARSE <= offsets || offsets > MANY) {
            let windows = span / WINDOW + 1;
            let is_few_runs = self.ends.len() <= usize::from(u16::MAX)
                && self.ends.len() * windows <= RUNS * offsets;
            if is_few_runs {
                return self.counted(least, interrupt);
            }
            if span / MORE <= self.limit {
                self.rows = first..last.saturating_add(1);
                self.fold()?;
                return self.folded(least, interrupt);
            }
        }
        self.offsets.sort_unstable();
        let mut candidates = Vec::new();
        for same in self.offsets.chunk_by(|a, b| a == b) {
            if same.len() >= least as usize {
                candidates.try_push(CountedRow::new(same[0], same.len() as u32))?;
            }
        }
        Ok(candidates)
    }

    fn folded<E: From<Error>>(
        &self,
        least: u32,
        interrupt: &mut impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<CountedRow>, E> {
        let mut candidates = Vec::new();
        for (window, counts) in self.counts.chunks(WINDOW).enumerate() {
            interrupt()?;
            for (place, &count) in counts.iter().enumerate() {
                if count >= least {
                    let offset = self.rows.start + (window * WINDOW + place) as u32;
                    candidates.try_push(CountedRow::new(offset, count))?;
                }
            }
        }
        Ok(candidates)
    }

    fn counted<E: From<Error>>(
        &self,
        least: u32,
        interrupt: &mut impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<CountedRow>, E> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let runs = starts.zip(&self.ends);
        let mut runs = collected(runs.map(|(start, end)| &self.offsets[*start..*end]))?;
        let mut counts = filled(0u16, WINDOW)?;
        // A bit for each block of counters, set if not all of them are 0.
        let mut used = [0u64; WINDOW / BLOCK / WORD];
        let mut candidates: Vec<CountedRow> = Vec::new();
        while let Some(next) = runs.iter().filter_map(|run| run.first()).min() {
            interrupt()?;
            let window = next / WINDOW as u32;
            for run in &mut runs {
                let within = |offset: &&u32| **offset / WINDOW as u32 == window;
                let mut taken = 0;
                for offset in run.iter().take_while(within) {
                    let place = *offset as usize % WINDOW;
                    let block = place / BLOCK;
                    counts[place] += 1;
                    used[block / WORD] |= 1 << (block % WORD);
                    taken += 1;
                }
                *run = &run[taken..];
            }
            for (word, used) in used.iter_mut().enumerate() {
                while *used != 0 {
                    let start = (word * WORD + used.trailing_zeros() as usize) * BLOCK;
                    *used &= *used - 1;
                    let first = window * WINDOW as u32 + start as u32;
                    for (offset, count) in (first..).zip(&mut counts[start..start + BLOCK]) {
                        let count = u32::from(std::mem::take(count));
                        if count >= least {
                            candidates.try_push(CountedRow::new(offset, count))?;
                        }
                    }
                }
            }
        }
        Ok(candidates)
    }
}

/// The number of keys that each row has.
pub(super) enum RowCounts {
    /// For all rows.
    All(RowTally),
    /// For some rows, which are in ascending order.
    Of(Vec<CountedRow>),
}

impl RowCounts {
    /// Adds `weight` to the counts of the rows in `run`, which is in ascending order.
    #[inline]
    pub fn add(&mut self, run: &[u32], weight: u32) -> Result<()> {
        match self {
            Self::All(tally) => tally.add(run, weight)?,
            Self::Of(candidates) => {
                for offset in run {
                    let place = candidates.binary_search_by_key(offset, |row| row.offset);
                    if let Ok(place) = place {
                        candidates[place].count += weight;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether some rows were left out for lack of room.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::All(tally) if tally.is_full)
    }

    /// Returns whether any of the `rows` rows that start at offset `start` is counted.
    pub fn can_be_in(&self, start: u32, rows: u64) -> bool {
        match self {
            Self::All(_) => true,
            Self::Of(candidates) => {
                let first = candidates.partition_point(|row| row.offset < start);
                candidates
                    .get(first)
                    .is_some_and(|row| u64::from(row.offset - start) < rows)
            }
        }
    }

    /// Removes and returns the rows that have at least `least` (1 or more) keys, in ascending order.
    pub fn candidates<E: From<Error>>(
        &mut self,
        least: u32,
        interrupt: &mut impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<CountedRow>, E> {
        match std::mem::replace(self, Self::Of(Vec::new())) {
            Self::All(tally) => tally.candidates(least, interrupt),
            Self::Of(mut candidates) => {
                candidates.retain(|row| row.count >= least);
                Ok(candidates)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn counting_equals_sorting(
            runs in prop::collection::vec(prop::collection::btree_set(0u32..100_000, 0..2000), 0..8),
            stretch in prop_oneof![1u32..100, 1u32..40_000],
            least in 1u32..4,
        ) {
            let rows = 0..100_000 * stretch;
            let mut tally = RowTally::new(rows.clone(), usize::MAX);
            let mut folded = RowTally::new(rows.clone(), usize::MAX);
            let mut small = RowTally::new(rows, 1000);
            let mut expected = BTreeMap::new();
            for run in &runs {
                let run: Vec<u32> = run.iter().map(|offset| offset * stretch).collect();
                tally.add(&run, 1).expect("memory");
                if stretch < 100 {
                    folded.add(&run, 1).expect("memory");
                    folded.fold().expect("memory");
                }
                small.add(&run, 1).expect("memory");
                run.iter().for_each(|offset| *expected.entry(*offset).or_insert(0u32) += 1);
            }
            expected.retain(|_, count| *count >= least);
            let pairs = |found: Vec<CountedRow>| -> BTreeMap<u32, u32> {
                found.iter().map(|found| (found.offset, found.count)).collect()
            };
            let go_on = &mut || Ok::<(), Error>(());
            prop_assert_eq!(&pairs(tally.counted(least, go_on).expect("memory")), &expected);
            if stretch < 100 {
                prop_assert_eq!(&pairs(folded.candidates(least, go_on).expect("memory")), &expected);
            }
            prop_assert_eq!(small.is_full, runs.iter().map(|run| run.len()).sum::<usize>() > 1000);
            prop_assert_eq!(pairs(tally.candidates(least, go_on).expect("memory")), expected);
        }
    }
}
