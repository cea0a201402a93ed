//! Builds copied passages from copied windows.

use super::cursor::Cursor;
use super::place::{Place, Texts};
use super::winnowing::DocumentReader;
use crate::{Result, with_room};
use std::collections::VecDeque;
use std::ops::Range;

/// A copied passage and its source: the bytes of both, numbered across the collection, and the number of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedPassage {
    pub bytes: Range<u64>,
    pub source: Range<u64>,
    pub words: u64,
}

/// A builder of [`CopiedPassage`]s from copied windows, which must be given in ascending order of place.
pub struct Copies {
    reader: DocumentReader,
    /// The last window of the last passage.
    last: Option<Place>,
    /// The last places of the passage, at most as many as a window has words.
    places: VecDeque<Place>,
}

impl Copies {
    /// Returns a builder of passages from the windows of `reader`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(reader: DocumentReader) -> Result<Self> {
        Ok(Self {
            reader,
            last: None,
            places: with_room(reader.min_words)?.into(),
        })
    }

    /// Returns whether the next copied `window` is in the last passage.
    pub fn is_within(&self, window: Place) -> bool {
        self.last.is_some_and(|last| window <= last)
    }

    /// Returns the passage that begins with the copied `window`, given the place `first` of its first occurrence. If
    /// different words had the same hash, returns None, and the search must be repeated with other hashes. Takes time
    /// linear in the words of the passage.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn passage(
        &mut self,
        window: Place,
        first: Place,
        texts: &mut dyn Texts,
        check: &mut dyn FnMut(),
    ) -> Result<Option<CopiedPassage>> {
        let [mut copy, mut source] =
            [window, first].map(|place| Cursor::new(self.reader.fold, place, texts));
        let mut passage = CopiedPassage {
            bytes: window.byte()..window.byte(),
            source: first.byte()..first.byte(),
            words: 0,
        };
        self.places.clear();
        while let Some((word, text)) = copy.next(texts, check)? {
            match source.next(texts, check)? {
                Some((original, same)) if same == text => {
                    (passage.bytes.end, passage.source.end) = (word.end, original.end);
                }
                _ => break,
            }
            passage.words += 1;
            if self.places.len() == self.reader.min_words {
                self.places.pop_front();
            }
            self.places.push_back(word.place);
        }
        self.last = self.places.front().copied();
        Ok((passage.words >= self.reader.min_words as u64).then_some(passage))
    }
}
