//! Two documents and what they share, as a part of a page.

use super::column::Column;
use super::look::Look;
use super::map;
use crate::Result;
use crate::align::alignment::Alignment;
use crate::align::chunks::Similarity;
use crate::align::explain::{self, Explanation};
use crate::align::pace::Pace;
use crate::align::words::Words;
use crate::html::Page;

/// Two documents, their words aligned.
pub(crate) struct Comparison<'d> {
    docs: [&'d [u8]; 2],
    pub(super) words: Words,
    pub(super) alignment: Alignment,
}

impl<'d> Comparison<'d> {
    /// Aligns two documents by common chunks of at least `min_words` words. Time O(n log n).
    ///
    /// # Errors
    /// `TooLarge` above [`crate::align::MAX_UNITS`] words, `OutOfMemory`.
    pub fn new(docs: [&'d [u8]; 2], min_words: u32, pace: &mut Pace) -> Result<Self> {
        let words = Words::new(docs[0], docs[1], pace)?;
        let alignment = Alignment::new(&words, min_words, pace)?;
        Ok(Self {
            docs,
            words,
            alignment,
        })
    }

    /// Returns in what the documents differ.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn explain(&self, pace: &mut Pace) -> Result<Explanation> {
        explain::explain_aligned(self.docs, &self.words, &self.alignment, pace)
    }

    /// Returns how many words the documents share in chunks, and how many they have.
    pub fn similarity(&self) -> Similarity {
        let (a, b) = (self.words.a.len(), self.words.b.len());
        let chunks = self.alignment.chunks.iter();
        Similarity {
            common: chunks.map(|run| run.words as usize).sum(),
            longer: a.max(b),
            shorter: a.min(b),
        }
    }

    /// Writes the map and both documents, side by side where there is room.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn write(&self, page: &mut Page, look: &Look<'_>, pace: &mut Pace) -> Result<()> {
        self.write_map(page, look)?;
        page.push("<div class=\"pair\">\n");
        self.write_documents(page, look, pace);
        page.push("</div>\n");
        Ok(())
    }

    /// Writes the map of the common chunks.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn write_map(&self, page: &mut Page, look: &Look<'_>) -> Result<()> {
        let words = [self.words.a.len(), self.words.b.len()];
        map::append(page, &self.alignment, words, look.prefix)
    }

    /// Writes both documents, an article each.
    pub fn write_documents(&self, page: &mut Page, look: &Look<'_>, pace: &mut Pace) {
        let words = [&self.words.a, &self.words.b];
        let sides = self.docs.into_iter().zip(words);
        for (side, (doc, words)) in sides.enumerate() {
            Column::new(page, &self.alignment, side, look).write(doc, words, pace);
        }
    }
}
