//! The listed places in the characters of their documents.

use super::place::PassagePlace;
use crate::Result;
use crate::memory::{Grow, filled, with_room};
use crate::text::{Fold, words};
use std::ops::Range;

/// Places of a document that are looked up together. If a document has more places, all its words are read several
/// times.
const TOGETHER: usize = 1 << 14;

/// The documents of a collection, in UTF-8, readable in any order.
pub trait DocumentTexts {
    /// Returns the bytes of a document.
    fn length(&self, document: usize) -> usize;
    /// Appends bytes of a document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn read(&mut self, document: usize, bytes: Range<usize>, into: &mut Vec<u8>) -> Result<()>;
}

/// A listed place, and its characters, counted from 0 in its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub place: PassagePlace,
    pub characters: Range<u32>,
}

/// Consecutive places, with the texts of their documents.
#[derive(Default)]
pub struct Listing {
    pub(super) places: Vec<PassagePlace>,
    texts: Vec<u8>,
    /// The ends of the text and of the places of each document.
    ends: Vec<[usize; 2]>,
}

impl Listing {
    /// Adds the next place, and the text of its document if the document is another one.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn push(&mut self, place: &PassagePlace, documents: &mut dyn DocumentTexts) -> Result<()> {
        self.places.try_push(*place)?;
        if self.is_of_last(place) {
            self.ends.pop();
        } else {
            let length = documents.length(place.document);
            documents.read(place.document, 0..length, &mut self.texts)?;
        }
        self.ends.try_push([self.texts.len(), self.places.len()])
    }

    fn is_of_last(&self, place: &PassagePlace) -> bool {
        let last = self.ends.last().map(|[_, places]| &self.places[places - 1]);
        last.is_some_and(|last| last.document == place.document)
    }

    /// Returns whether the next place begins another listing. A listing takes about `bytes` bytes.
    pub fn ends_before(&self, place: &PassagePlace, bytes: usize) -> bool {
        self.places.len() >= TOGETHER || (self.bytes() >= bytes && !self.is_of_last(place))
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.texts.len() + size_of_val(&self.places[..])
    }

    /// Finds the characters of all places, in any thread. Time linear in the texts. `check` is called at least every
    /// 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn locate(self, fold: Fold, check: &mut dyn FnMut()) -> Result<Located> {
        let mut found = with_room(self.places.len())?;
        for (text, places) in self.documents() {
            sources(text, fold, places, check, &mut found)?;
        }
        Ok(Located {
            listing: self,
            sources: found,
        })
    }

    /// Returns the text of each document, and its places.
    pub(super) fn documents(&self) -> impl Iterator<Item = (&[u8], &[PassagePlace])> {
        let starts = std::iter::once([0, 0]).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| {
            let text = &self.texts[start[0]..end[0]];
            (text, &self.places[start[1]..end[1]])
        })
    }
}

/// Places with their stretches of text.
pub struct Located {
    pub(super) listing: Listing,
    /// The stretch of each place.
    pub(super) sources: Vec<Stretch>,
}

/// The stretch of text from which the words of a place are made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    /// The first byte, and the end.
    bytes: [u32; 2],
    pub characters: [u32; 2],
    /// True if the word before or after is also made from one of these characters.
    pub is_shared: bool,
}

impl Stretch {
    pub fn bytes(&self) -> Range<usize> {
        self.bytes[0] as usize..self.bytes[1] as usize
    }
}

/// Appends the stretch of text of each place.
fn sources(
    text: &[u8],
    fold: Fold,
    places: &[PassagePlace],
    check: &mut dyn FnMut(),
    found: &mut Vec<Stretch>,
) -> Result<()> {
    let mut sources = filled(Stretch::default(), places.len())?;
    // The first and the last word of every place: word, place, side.
    let mut wanted: Vec<(u64, u32, usize)> = Vec::new();
    for (number, place) in (0..).zip(places) {
        wanted.try_push((place.word, number, 0))?;
        wanted.try_push((place.word + place.words - 1, number, 1))?;
    }
    wanted.sort_unstable();
    let mut wanted = wanted.into_iter().peekable();
    let (mut number, mut counted, mut characters, mut last_end) = (0, 0, 0, 0);
    let mut open_ends: Vec<u32> = Vec::new();
    words(text, fold, check, &mut |_, bytes| {
        let is_shared = bytes.start < last_end;
        if is_shared {
            open_ends
                .drain(..)
                .for_each(|end| sources[end as usize].is_shared = true);
        }
        open_ends.clear();
        last_end = bytes.end;
        while let Some((_, place, side)) = wanted.next_if(|next| next.0 == number) {
            characters += count(&text[counted..bytes.start]);
            counted = bytes.start;
            let source = &mut sources[place as usize];
            match side {
                0 => {
                    source.bytes[0] = bytes.start as u32;
                    source.characters[0] = characters;
                    source.is_shared |= is_shared;
                }
                _ => {
                    source.bytes[1] = bytes.end as u32;
                    source.characters[1] = characters + count(&text[bytes.clone()]);
                    open_ends.try_push(place)?;
                }
            }
        }
        number += 1;
        Ok(())
    })?;
    found.try_extend(sources)
}

/// Returns the number of characters: of all bytes except continuation bytes.
fn count(text: &[u8]) -> u32 {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u32
}
