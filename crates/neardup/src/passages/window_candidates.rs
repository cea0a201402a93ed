//! The windows whose fingerprints repeat, and the search for boundaries among them, one part at a time.

use super::batches::{Batches, Groups};
use super::boundaries::Boundaries;
use super::file::{Scratch, Spool};
use super::parts::{WindowPart, WindowParts};
use super::places::PassageSearch;
use super::repeated::{FoundWindows, Repeated};
use super::series::{LongSeries, Series};
use super::sort::Sort;
use crate::Result;
use crate::memory::Grow;

/// The windows of all documents whose fingerprints repeat, in parts, and the boundaries of the parts searched so
/// far.
pub struct WindowCandidates<S> {
    memory: usize,
    windows: WindowParts<S>,
    series: Vec<Series>,
    places: Spool<4, S>,
    groups: Groups,
}

impl<S: Scratch> WindowCandidates<S> {
    /// Returns an empty list for documents that have been read once. `memory`, in bytes, limits windows here and in
    /// later steps.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(repeated: &Repeated, memory: usize) -> Result<Self> {
        Ok(Self {
            memory,
            windows: WindowParts::new(memory / 2)?,
            series: Vec::new(),
            places: Spool::new(memory / 4),
            groups: Groups::new(repeated.starts.len())?,
        })
    }

    /// Adds the windows of any piece.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, found: FoundWindows) -> Result<()> {
        for window in found.windows {
            self.windows.push(window)?;
        }
        self.series.try_extend(found.series)
    }

    /// Finds the windows of a piece and adds them at once, so that it takes no more memory for long documents.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn find<'a>(
        &mut self,
        repeated: &Repeated,
        piece: usize,
        docs: impl Iterator<Item = &'a [u8]>,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        let windows = &mut self.windows;
        let series = repeated.visit(piece, docs, check, &mut |window| windows.push(window))?;
        self.series.try_extend(series)
    }

    /// Returns the number of remaining parts, including empty ones.
    pub fn parts(&self) -> usize {
        self.windows.len()
    }

    /// Returns the number of boundaries found so far.
    pub fn boundaries(&self) -> u64 {
        self.places.len()
    }

    /// Returns the next part, which any thread may search; None after the last. Parts that would take too much
    /// memory are searched here. Call it after all windows have been added.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn next_part(
        &mut self,
        repeated: &Repeated,
        check: &mut dyn FnMut(),
    ) -> Result<Option<WindowPart>> {
        while let Some(mut stored) = self.windows.next() {
            if let Some(part) = self.windows.load(&mut stored)? {
                return Ok(Some(part));
            }
            let mut sort = Sort::<4, S>::new(self.memory / 4);
            let add = &mut |window| sort.push(window, check);
            self.windows.for_each(&mut stored, add)?;
            let (windows, waiting) = (sort.sorted(check)?, Spool::new(self.memory / 4));
            let (places, groups) = (&mut self.places, &mut self.groups);
            repeated.visit_boundaries::<S>(windows, waiting, check, &mut |place, document| {
                groups.add(place[1], document as usize);
                places.push(place)
            })?;
        }
        Ok(None)
    }

    /// Adds the boundaries of a part, in any order.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add_boundaries(&mut self, found: Boundaries) -> Result<()> {
        for (place, document) in found.0 {
            self.groups.add(place[1], document as usize);
            self.places.push(place)?;
        }
        Ok(())
    }

    /// Ends the search for boundaries. Calls `look` with the number of boundaries processed so far. Time O(n log n)
    /// for n of them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn batches(
        self,
        repeated: Repeated,
        look: &mut dyn FnMut(u64),
    ) -> Result<(Batches<S>, PassageSearch)> {
        let Repeated { reader, starts, .. } = repeated;
        let all = self.places.len();
        let batches = Batches::new(self.places, self.groups, &starts, self.memory / 2, look)?;
        let search = PassageSearch {
            min_words: reader.min_words,
            series: LongSeries::new(self.series, &starts, &mut || look(all))?,
            starts,
        };
        Ok((batches, search))
    }
}
