//! The second reading of a collection: the windows whose fingerprints repeat, of a piece and of all.

use super::divided::Divided;
use super::file::Scratch;
use super::parts::WindowParts;
use super::series::{Series, SeriesFilter};
use super::winnowing::DocumentReader;
use crate::Result;
use crate::memory::Grow;
use bitvec::vec::BitVec;
use std::ops::Range;

/// Documents that are read together.
pub(super) struct DocumentPiece {
    pub first_document: usize,
    pub first_fingerprint: u64,
}

/// The fingerprints that repeat. 8 bytes a document, and one bit a fingerprint.
pub struct Repeated {
    pub(super) reader: DocumentReader,
    /// One bit for each fingerprint of the first reading.
    pub(super) repeats: BitVec<u64>,
    pub(super) pieces: Vec<DocumentPiece>,
    /// The number of the first word of every document, in all documents together.
    pub(super) starts: Vec<u64>,
}

/// Takes a window as (hash, first word, word before, word behind), and the check for interrupts.
type Take<'a> = dyn FnMut([u64; 4], &mut dyn FnMut()) -> Result<()> + 'a;

impl Repeated {
    /// Returns how many pieces there are of documents that are read together.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the documents of a piece.
    pub fn documents(&self, piece: usize) -> Range<usize> {
        let next = self.pieces.get(piece + 1);
        let end = next.map_or(self.starts.len(), |next| next.first_document);
        self.pieces[piece].first_document..end
    }

    /// Returns the windows of a piece whose fingerprints repeat: 32 bytes each, at most one a word. In any
    /// thread; `check` is called at least every 64 KiB.
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
        let series = self.visit(piece, docs, check, &mut |window, _| {
            windows.try_push(window)
        })?;
        Ok(FoundWindows { windows, series })
    }

    /// Visits the windows of a piece, but for the middle of long series, which are returned.
    pub(super) fn visit<'a>(
        &self,
        piece: usize,
        docs: impl Iterator<Item = &'a [u8]>,
        check: &mut dyn FnMut(),
        take: &mut Take<'_>,
    ) -> Result<Vec<Series>> {
        let mut windows = self.reader.windows()?;
        let mut series = SeriesFilter::new(self.reader.min_words)?;
        let mut fingerprint = self.pieces[piece].first_fingerprint as usize;
        for (doc, start) in docs.zip(&self.starts[self.documents(piece)]) {
            let mut is_candidate = false;
            windows.for_each(doc, check, &mut |window, check| {
                if window.is_new_anchor {
                    is_candidate = self.repeats[fingerprint];
                    fingerprint += 1;
                }
                if is_candidate {
                    let first = start + window.first;
                    let window = [window.hash, first, window.left, window.right];
                    series.push(window, &mut |window| take(window, check))?;
                }
                Ok(())
            })?;
            series.finish(&mut |window| take(window, check))?;
        }
        Ok(series.found)
    }
}

/// Windows whose fingerprints repeat.
pub struct FoundWindows {
    pub(super) windows: Vec<[u64; 4]>,
    pub(super) series: Vec<Series>,
}

/// The windows of all documents whose fingerprints repeat.
pub struct WindowCandidates<S> {
    memory: usize,
    windows: WindowParts<S>,
    series: Vec<Series>,
}

impl<S: Scratch> WindowCandidates<S> {
    /// Returns none. `memory`, in bytes, is the limit for windows, here and in later steps.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(memory: usize) -> Result<Self> {
        Ok(Self {
            memory,
            windows: WindowParts::new(memory / 2)?,
            series: Vec::new(),
        })
    }

    /// Takes the windows of any piece.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, found: FoundWindows) -> Result<()> {
        for window in found.windows {
            self.windows.push(window)?;
        }
        self.series.try_extend(found.series)
    }

    /// Finds the windows of a piece and takes them at once: without more memory, however long the documents
    /// are.
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
        let series = repeated.visit(piece, docs, check, &mut |window, _| windows.push(window))?;
        self.series.try_extend(series)
    }

    /// Ends the second reading.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn divided(self, repeated: &Repeated) -> Result<Divided<S>> {
        let found = (self.windows, self.series);
        Divided::new(found, repeated.starts.len(), self.memory)
    }
}
