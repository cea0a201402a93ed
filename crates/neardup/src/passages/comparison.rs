//! Comparison of the words of places with those of the first place of their passage.

use super::listing::{DocumentTexts, Listed, Located, Stretch};
use super::place::{PassagePlace, VisitPlace};
use crate::Result;
use crate::memory::Grow;
use crate::text::{Fold, words};
use std::ops::Range;

/// The comparison of places with the first place of their passages. 32 bytes a passage.
pub struct PlaceComparison {
    fold: Fold,
    /// The first places of all passages so far, which come in the order of the passages' numbers.
    firsts: Vec<First>,
}

/// The first place of a passage.
struct First {
    document: u32,
    /// The number of its first word.
    word: u64,
    source: Stretch,
}

impl PlaceComparison {
    /// Returns a comparison for documents of which no place has been visited.
    pub fn new(fold: Fold) -> Self {
        Self {
            fold,
            firsts: Vec::new(),
        }
    }

    /// Visits the next places, which come in the order of [`super::Passages::for_each`].
    ///
    /// The words of each place are compared with the words of the passage's first place. Returns false if they
    /// differ, because different words had the same hash. Then no more places are visited, and the search must be
    /// repeated with other hashes. Time linear in the text of the places.
    ///
    /// # Errors
    /// `OutOfMemory`; the errors of `visit`.
    pub fn visit(
        &mut self,
        located: &Located,
        documents: &mut dyn DocumentTexts,
        check: &mut dyn FnMut(),
        visit: &mut VisitPlace<'_, Listed>,
    ) -> Result<bool> {
        let mut sources = located.sources.iter();
        for (text, places) in located.listing.documents() {
            for (place, source) in places.iter().zip(&mut sources) {
                check();
                if !self.is_of_passage(text, (place, source), documents, check)? {
                    return Ok(false);
                }
                let [start, end] = source.characters;
                let listed = Listed {
                    place: *place,
                    characters: start..end,
                };
                visit(&listed)?;
            }
        }
        Ok(true)
    }

    /// Returns whether a place has the words of the passage's first place.
    fn is_of_passage(
        &mut self,
        text: &[u8],
        (place, source): (&PassagePlace, &Stretch),
        documents: &mut dyn DocumentTexts,
        check: &mut dyn FnMut(),
    ) -> Result<bool> {
        let Some(first) = self.firsts.get(place.passage as usize - 1) else {
            self.firsts.try_push(First {
                document: place.document as u32,
                word: place.word,
                source: *source,
            })?;
            return Ok(true);
        };
        let here = &text[source.bytes()];
        let mut there = Vec::new();
        documents.read(first.document as usize, first.source.bytes(), &mut there)?;
        let all = 0..u64::MAX;
        if !source.is_shared && !first.source.is_shared {
            let is_same =
                here == there || same_words(self.fold, [here, &there], [all.clone(), all], check)?;
            if is_same {
                return Ok(true);
            }
        }
        // Characters next to a place may take part in folding it.
        there.clear();
        let length = documents.length(first.document as usize);
        documents.read(first.document as usize, 0..length, &mut there)?;
        let places = [place.word, first.word].map(|word| word..word + place.words);
        same_words(self.fold, [text, &there], places, check)
    }
}

/// Returns whether two ranges of words are the same.
fn same_words(
    fold: Fold,
    texts: [&[u8]; 2],
    ranges: [Range<u64>; 2],
    check: &mut dyn FnMut(),
) -> Result<bool> {
    let [here, there] = texts;
    let [in_here, in_there] = ranges;
    let mut expected = Vec::new();
    let mut number = 0;
    words(there, fold, check, &mut |word, _| {
        if in_there.contains(&number) {
            expected.try_extend_from_slice(word.as_bytes())?;
            expected.try_push(BETWEEN_WORDS)?;
        }
        number += 1;
        Ok(())
    })?;
    let mut rest = Some(&expected[..]);
    number = 0;
    words(here, fold, check, &mut |word, _| {
        if in_here.contains(&number) {
            rest = rest
                .and_then(|rest| rest.strip_prefix(word.as_bytes()))
                .and_then(|rest| rest.strip_prefix(&[BETWEEN_WORDS]));
        }
        number += 1;
        Ok(())
    })?;
    Ok(rest.is_some_and(<[u8]>::is_empty))
}

/// A byte that no word contains.
const BETWEEN_WORDS: u8 = 0xFF;
