//! The first reading of documents: their windows and fingerprints.

use super::windows::{Hashes, Windows};
use crate::Result;
use crate::memory::Grow;
use crate::text::Fold;

/// Reads documents, in any thread.
#[derive(Debug, Clone, Copy)]
pub struct DocumentReader {
    pub(super) min_words: usize,
    fold: Fold,
    hashes: Hashes,
}

/// The fingerprints of documents that were read together, and their numbers of words.
pub struct Winnowed {
    pub(super) anchors: Vec<u64>,
    pub(super) words: Vec<u64>,
}

impl DocumentReader {
    /// Returns a reader for passages of `min_words` words, a number that [`super::min_words`] accepts.
    pub fn new(min_words: usize, fold: Fold, hashes: Hashes) -> Self {
        Self {
            min_words,
            fold,
            hashes,
        }
    }

    pub(super) fn windows(&self) -> Result<Windows> {
        Windows::new(self.min_words, self.fold, self.hashes)
    }

    /// Returns the fingerprints of documents, about 2 in 3/4 of `min_words` words. `check` is called at least every
    /// 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn winnow<'a>(
        &self,
        docs: impl Iterator<Item = &'a [u8]>,
        check: &mut dyn FnMut(),
    ) -> Result<Winnowed> {
        let mut windows = self.windows()?;
        let mut read = Winnowed {
            anchors: Vec::new(),
            words: Vec::new(),
        };
        for doc in docs {
            let words = windows.for_each(doc, check, &mut |window| {
                read.anchors.try_extend(window.new_anchor)
            })?;
            read.words.try_push(words)?;
        }
        Ok(read)
    }
}
