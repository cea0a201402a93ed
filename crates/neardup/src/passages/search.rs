//! From the boundaries of documents to the places of their passages.

use super::batches::BoundaryBatch;
use super::place::Chosen;
use super::places::Chooser;
use super::series::LongSeries;
use super::symbols::Sequences;
use super::tree::BoundaryTree;
use crate::Result;
use crate::align::Pace;

/// The search for passages in batches, in any thread.
pub struct PassageSearch {
    pub(super) min_words: usize,
    /// The number of the first word of every document.
    pub(super) starts: Vec<u64>,
    pub(super) series: LongSeries,
}

/// The places of passages in a batch that are listed.
pub struct PassagePlaces(pub(super) Vec<Chosen>);

impl PassageSearch {
    /// Returns the places of a batch that are listed. Linear time, but for those that lie within each
    /// other.
    ///
    /// # Errors
    /// `OutOfMemory`; `TooLarge` beyond 2^31 boundaries.
    pub fn places(&self, batch: &BoundaryBatch, check: &mut dyn FnMut()) -> Result<PassagePlaces> {
        let pace = &mut Pace::new(check);
        let sequences = Sequences::new(&batch.0, self.min_words, pace)?;
        let tree = BoundaryTree::new(&sequences, &self.starts, pace)?;
        let chosen = Chooser::new(&sequences, &tree, &self.series).places(pace)?;
        Ok(PassagePlaces(chosen))
    }
}
