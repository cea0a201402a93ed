//! Two documents, aligned, and how they look on a page.

use crate::Result;
use crate::align::alignment::Alignment;
use crate::align::chunks::Similarity;
use crate::align::explain::{Explanation, explain_aligned};
use crate::align::pace::Pace;
use crate::align::words::Side;
use crate::html::HtmlText;
use crate::memory::collected;
use std::cmp::Reverse;

/// Two documents with their words aligned.
pub(crate) struct AlignedPair<'d> {
    pub(super) alignment: Alignment<'d>,
    /// Called now and then while the comparison is written; may unwind.
    pub(super) check: &'d dyn Fn(),
}

impl<'d> AlignedPair<'d> {
    /// Aligns two documents by common chunks of at least `min_words` words. Time O(n log n).
    ///
    /// # Errors
    /// `TooLarge` above [`crate::align::MAX_UNITS`] words, `OutOfMemory`.
    pub fn new(docs: [&'d [u8]; 2], min_words: u32, check: &'d dyn Fn()) -> Result<Self> {
        let call = &mut || check();
        let alignment = Alignment::new(docs, min_words, &mut Pace::new(call))?;
        Ok(Self { alignment, check })
    }

    /// Returns the difference between the documents.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn explain(&self) -> Result<Explanation> {
        let call = &mut || (self.check)();
        explain_aligned(&self.alignment, &mut Pace::new(call))
    }

    /// Returns the number of words that the documents share in chunks, and their numbers of words.
    pub fn similarity(&self) -> Similarity {
        let [a, b] = self.alignment.words.sides.each_ref().map(Side::len);
        let chunks = self.alignment.chunks.iter();
        Similarity {
            common: chunks.map(|run| run.words as usize).sum(),
            longer: a.max(b),
            shorter: a.min(b),
        }
    }

    /// Returns the numbers of at most `count` of the longest chunks, the longest first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn longest(&self, count: usize) -> Result<Vec<usize>> {
        let chunks = &self.alignment.chunks;
        let mut longest = collected(0..chunks.len())?;
        longest.sort_unstable_by_key(|&i| (Reverse(chunks[i].words), i));
        longest.truncate(count);
        Ok(longest)
    }
}

/// The appearance of a comparison on its page.
pub(crate) struct Look<'l> {
    /// Begins the identifiers of the comparison's elements, so that no two comparisons on a page share one.
    pub prefix: String,
    /// The level of the headings over the documents.
    pub level: u8,
    pub names: [HtmlText<'l>; 2],
    /// The text after the number of words in each heading.
    pub notes: [&'l str; 2],
    /// True if documents scroll separately and chunks link to their other occurrence.
    pub is_panes: bool,
}

/// Returns the color of a chunk, as an angle on the color wheel from cyan to magenta, because red and green mark
/// words of one side. Steps of the golden ratio keep neighboring chunks apart, however many there are.
pub(super) fn hue(chunk: usize) -> u32 {
    190 + (chunk as f64 * 0.618_034 % 1.0 * 120.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red and green belong to words of one side.
    #[test]
    fn no_chunk_is_red_or_green() {
        assert!((0..10_000).all(|chunk| (190..310).contains(&hue(chunk))));
        assert!((1..10_000).all(|chunk| hue(chunk).abs_diff(hue(chunk - 1)) > 40));
    }
}
