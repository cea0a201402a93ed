//! Where the words of a document stand, in characters.

use crate::Result;
use crate::memory::Grow;
use crate::text::{Fold, words};
use std::ops::Range;

/// The characters that each word was made from. 8 bytes a word.
pub struct WordPlaces(Vec<Range<u32>>);

impl WordPlaces {
    /// Linear time. `check` is called at least every 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(doc: &[u8], fold: Fold, check: &mut dyn FnMut()) -> Result<Self> {
        let mut places = Vec::new();
        let (mut counted, mut characters) = (0, 0);
        words(doc, fold, check, &mut |_, bytes| {
            characters += count(&doc[counted..bytes.start]);
            counted = bytes.start;
            places.try_push(characters..characters + count(&doc[bytes]))
        })?;
        Ok(Self(places))
    }

    /// The characters from the beginning of a word to the end of the last of `words`.
    pub fn characters(&self, word: u64, words: u64) -> Range<u32> {
        let last = (word + words - 1) as usize;
        self.0[word as usize].start..self.0[last].end
    }
}

/// All but continuation bytes.
fn count(text: &[u8]) -> u32 {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u32
}
