//! Places of words in a collection.

use crate::{Grow, Result};
use std::ops::Range;

/// The documents of a collection in UTF-8, one after the other. Bytes are numbered across all of them.
pub trait Texts {
    /// Returns the number of the document that has `byte`, and the range of its bytes.
    fn document(&self, byte: u64) -> (u32, Range<u64>);
    /// Appends bytes of a document to `into`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn read(&mut self, bytes: Range<u64>, into: &mut Vec<u8>) -> Result<()>;
}

/// The place of a word: its first byte, and the number of earlier words that are also made from this byte or from bytes
/// around it ("½" folds to two words). Places are in the order of the words, and no two words have the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// Number of bits for the number of earlier words. A code point folds to at most 18 (Unicode 17), so to fewer words.
const BITS: u32 = 5;

impl Place {
    /// Returns the place of a word that begins at `byte`, after `words_before` other words made from it.
    pub fn new(byte: u64, words_before: usize) -> Self {
        debug_assert!(words_before < 1 << BITS);
        Self(byte << BITS | words_before as u64)
    }

    /// Returns the number of the word's first byte.
    pub fn byte(self) -> u64 {
        self.0 >> BITS
    }

    /// Returns how many words come before this word if reading starts at its first byte.
    pub(super) fn words_before(self) -> usize {
        (self.0 % (1 << BITS)) as usize
    }
}

/// Finds the places of the words of a text, one after the other.
#[derive(Default)]
pub(super) struct Placing {
    /// The ends of the last words that may reach into the next one.
    ends: Vec<usize>,
}

impl Placing {
    /// Returns the place of the next word, whose bytes are counted from `start`.
    pub fn next(&mut self, start: u64, word: &Range<usize>) -> Result<Place> {
        self.ends.retain(|end| *end > word.start);
        let place = Place::new(start + word.start as u64, self.ends.len());
        self.ends.try_push(word.end)?;
        Ok(place)
    }
}
