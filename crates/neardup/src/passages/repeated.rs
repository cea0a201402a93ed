//! The second reading of a collection: the windows whose fingerprints repeat, piece by piece.

use super::boundaries::{Boundaries, Boundary, for_each};
use super::file::{Scratch, Spool};
use super::parts::WindowPart;
use super::place::document_of;
use super::series::{Emit, Series, SeriesFilter};
use super::winnowing::DocumentReader;
use crate::Result;
use crate::memory::Grow;
use crate::set::sort;
use bitvec::vec::BitVec;
use std::ops::Range;

/// Documents that are read together.
pub(super) struct DocumentPiece {
    pub first_document: usize,
    pub first_fingerprint: u64,
}

/// The repeating fingerprints. 8 bytes a document, and one bit a fingerprint.
pub struct Repeated {
    pub(super) reader: DocumentReader,
    /// One bit for each fingerprint of the first reading, set if it repeats.
    pub(super) repeats: BitVec<u64>,
    pub(super) pieces: Vec<DocumentPiece>,
    /// The number of the first word of every document, counted across all documents.
    pub(super) starts: Vec<u64>,
}

impl Repeated {
    /// Returns the number of pieces; the documents of a piece are read together.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the documents of a piece.
    pub fn documents(&self, piece: usize) -> Range<usize> {
        let next = self.pieces.get(piece + 1);
        let end = next.map_or(self.starts.len(), |next| next.first_document);
        self.pieces[piece].first_document..end
    }

    /// Returns the windows of a piece whose fingerprints repeat: 32 bytes each, at most one a word. Any thread may
    /// call it; `check` is called at least every 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn find<'a>(
        &self,
        piece: usize,
        docs: impl Iterator<Item = &'a [u8]>,
        check: &mut dyn FnMut(),
    ) -> Result<FoundWindows> {
        let mut windows = Vec::new();
        let series = self.visit(piece, docs, check, &mut |window| windows.try_push(window))?;
        Ok(FoundWindows { windows, series })
    }

    /// Visits the windows of a piece, except the middles of long series, and returns these series.
    pub(super) fn visit<'a>(
        &self,
        piece: usize,
        docs: impl Iterator<Item = &'a [u8]>,
        check: &mut dyn FnMut(),
        take: &mut Emit<'_>,
    ) -> Result<Vec<Series>> {
        let mut windows = self.reader.windows()?;
        let mut series = SeriesFilter::new(self.reader.min_words)?;
        let mut fingerprint = self.pieces[piece].first_fingerprint as usize;
        for (doc, start) in docs.zip(&self.starts[self.documents(piece)]) {
            let mut is_candidate = false;
            windows.for_each(doc, check, &mut |window| {
                if window.new_anchor.is_some() {
                    is_candidate = self.repeats[fingerprint];
                    fingerprint += 1;
                }
                if is_candidate {
                    let first = start + window.first;
                    let window = [window.hash, first, window.left, window.right];
                    series.push(window, take)?;
                }
                Ok(())
            })?;
            series.finish(take)?;
        }
        Ok(series.found)
    }

    /// Returns the boundaries among the windows of a part. Any thread may call it, because no `S` is created. Time
    /// O(n log n) for n windows.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn boundaries<S: Scratch>(
        &self,
        part: WindowPart,
        check: &mut dyn FnMut(),
    ) -> Result<Boundaries> {
        let WindowPart(mut windows) = part;
        sort(&mut windows, check);
        let mut found = Vec::new();
        let waiting = Spool::<4, S>::new(usize::MAX);
        self.visit_boundaries(
            windows.into_iter(),
            waiting,
            check,
            &mut |place, document| found.try_push((place, document)),
        )?;
        Ok(Boundaries(found))
    }

    /// Visits the boundaries among sorted windows, each with its document.
    pub(super) fn visit_boundaries<S: Scratch>(
        &self,
        windows: impl Iterator<Item = [u64; 4]>,
        waiting: Spool<4, S>,
        check: &mut dyn FnMut(),
        visit: &mut dyn FnMut(Boundary, u32) -> Result<()>,
    ) -> Result<()> {
        let visit = &mut |place: Boundary| visit(place, document_of(place[0], &self.starts) as u32);
        for_each(windows, self.reader.min_words, waiting, check, visit)
    }
}

/// Windows whose fingerprints repeat.
pub struct FoundWindows {
    pub(super) windows: Vec<[u64; 4]>,
    pub(super) series: Vec<Series>,
}
