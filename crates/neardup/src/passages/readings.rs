//! The two readings of a collection.

use super::boundaries::boundaries;
use super::places::Passages;
use super::series::{LongSeries, SeriesFilter};
use super::sort::{HEARTBEAT, Scratch, Sort};
use super::symbols::Sequences;
use super::tree::Tree;
use super::windows::{Hashes, Window, Windows};
use crate::Result;
use crate::text::Fold;
use bitvec::vec::BitVec;

/// The first reading: the fingerprints of all documents.
///
/// `memory`, in bytes, is what a sort may take; what is beyond goes to an `S`. Every document that
/// is added takes 8 bytes besides, every fingerprint, of which there are about 2 in 3/4 of
/// `min_words` words, one bit.
pub struct Fingerprints<S> {
    min_words: usize,
    memory: usize,
    windows: Windows,
    sort: Sort<2, S>,
    fingerprints: u64,
}

impl<S: Scratch> Fingerprints<S> {
    /// `min_words` is one that [`super::min_words`] accepts.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(min_words: usize, fold: Fold, hashes: Hashes, memory: usize) -> Result<Self> {
        Ok(Self {
            min_words,
            memory,
            windows: Windows::new(min_words, fold, hashes)?,
            sort: Sort::new(memory),
            fingerprints: 0,
        })
    }

    /// Takes the next document. `check` is called at least every 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, doc: &[u8], check: &mut dyn FnMut()) -> Result<()> {
        let (sort, fingerprints) = (&mut self.sort, &mut self.fingerprints);
        let mut visit = |window: Window, check: &mut dyn FnMut()| {
            if window.is_new_anchor {
                sort.push([window.anchor, *fingerprints], check)?;
                *fingerprints += 1;
            }
            Ok(())
        };
        self.windows.for_each(doc, check, &mut visit)?;
        Ok(())
    }

    /// Ends the first reading. The second takes the same documents in the same order.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn repeated(self, check: &mut dyn FnMut()) -> Result<Candidates<S>> {
        let mut bits = Vec::new();
        let length = self.fingerprints.div_ceil(64) as usize;
        bits.try_reserve_exact(length)?;
        bits.resize(length, 0);
        let mut repeats = BitVec::from_vec(bits);
        let mut last: Option<[u64; 2]> = None;
        for (count, next) in self.sort.sorted(check)?.enumerate() {
            if count % HEARTBEAT == 0 {
                check();
            }
            if let Some(last) = last.filter(|last| last[0] == next[0]) {
                repeats.set(last[1] as usize, true);
                repeats.set(next[1] as usize, true);
            }
            last = Some(next);
        }
        Ok(Candidates {
            min_words: self.min_words,
            memory: self.memory,
            windows: self.windows,
            repeats,
            fingerprints: 0,
            series: SeriesFilter::new(self.min_words)?,
            sort: Sort::new(self.memory / 2),
            starts: Vec::new(),
            end: 0,
        })
    }
}

/// The second reading: the windows whose fingerprints repeat.
pub struct Candidates<S> {
    min_words: usize,
    memory: usize,
    windows: Windows,
    /// One bit for each fingerprint of the first reading.
    repeats: BitVec<u64>,
    fingerprints: u64,
    series: SeriesFilter,
    sort: Sort<4, S>,
    /// The number of the first word of every document, in all documents together.
    starts: Vec<u64>,
    end: u64,
}

impl<S: Scratch> Candidates<S> {
    /// Takes the next document. `check` is called at least every 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, doc: &[u8], check: &mut dyn FnMut()) -> Result<()> {
        self.starts.try_reserve(1)?;
        self.starts.push(self.end);
        let start = self.end;
        let Self {
            windows,
            series,
            sort,
            fingerprints,
            repeats,
            ..
        } = self;
        let mut is_candidate = false;
        let mut visit = |window: Window, check: &mut dyn FnMut()| {
            if window.is_new_anchor {
                is_candidate = repeats[*fingerprints as usize];
                *fingerprints += 1;
            }
            if is_candidate {
                let first = start + window.first;
                let window = [window.hash, first, window.left, window.right];
                series.push(window, &mut |window| sort.push(window, check))?;
            }
            Ok(())
        };
        let words = windows.for_each(doc, check, &mut visit)?;
        series.finish(&mut |window| sort.push(window, check))?;
        // A number between documents is nobody's, so that no run reaches over it.
        self.end += words + 1;
        Ok(())
    }

    /// Returns the passages of all documents.
    ///
    /// Time O(n log n) for n candidate windows, and linear in the boundaries; memory about 80 bytes a
    /// boundary.
    ///
    /// # Errors
    /// `OutOfMemory`; `TooLarge` beyond 2^31 boundaries.
    pub fn passages(self, check: &mut dyn FnMut()) -> Result<Passages> {
        let half = self.memory / 2;
        let windows = self.sort.sorted(check)?;
        let boundaries = boundaries::<S>(windows, self.min_words, half, check)?;
        let boundaries = boundaries.sorted(check)?;
        let sequences = Sequences::new::<S>(boundaries, self.min_words, half, check)?;
        let tree = Tree::new(&sequences, &self.starts, check)?;
        let series = LongSeries::new(self.series.found, &self.starts, check)?;
        Passages::new(sequences, tree, series, self.starts, check)
    }
}
