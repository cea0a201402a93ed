//! The windows whose fingerprints repeat, of all pieces.

use super::divided::Divided;
use super::file::Scratch;
use super::parts::WindowParts;
use super::repeated::{FoundWindows, Repeated};
use super::series::Series;
use crate::Result;
use crate::memory::Grow;

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
