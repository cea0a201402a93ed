//! The words of two documents, numbered together.

use super::pace::{Pace, STEPS};
use super::suffixes::{MAX_UNITS, Suffixes, within_limit};
use crate::numbered::NumberedTexts;
use crate::text::{Fold, words};
use crate::{Grow, Result};
use std::cell::RefCell;
use std::ops::Range;

/// Words as numbers: equal folded words have equal numbers, in both documents.
pub(super) struct NumberedWords<'d> {
    pub sides: [Side<'d>; 2],
    /// The number of distinct words in both documents; every number is below it.
    pub distinct: usize,
}

/// The words of one document.
pub(super) struct Side<'d> {
    pub doc: &'d [u8],
    pub ids: Vec<u32>,
    /// The places of the words, in bytes. Parts of one character ("½") are at the same place.
    pub places: Vec<Range<u32>>,
}

impl<'d> NumberedWords<'d> {
    /// Returns the words of `docs` as shingles use them by default, with case folded.
    ///
    /// # Errors
    /// `TooLarge` above [`MAX_UNITS`] words, `OutOfMemory`.
    pub fn new(docs: [&'d [u8]; 2], pace: &mut Pace) -> Result<Self> {
        let mut numbers = NumberedTexts::default();
        let a = Side::new(docs[0], &mut numbers, pace)?;
        let b = Side::new(docs[1], &mut numbers, pace)?;
        within_limit(a.len() + b.len(), "words")?;
        Ok(Self {
            sides: [a, b],
            distinct: numbers.len(),
        })
    }

    /// Returns the sorted suffixes of both documents.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn suffixes(&self, pace: &mut Pace) -> Result<Suffixes> {
        let [a, b] = &self.sides;
        Suffixes::new(&a.ids, &b.ids, self.distinct, pace)
    }
}

impl<'d> Side<'d> {
    fn new(doc: &'d [u8], numbers: &mut NumberedTexts, pace: &mut Pace) -> Result<Self> {
        let mut side = Self {
            doc,
            ids: Vec::new(),
            places: Vec::new(),
        };
        let pace = RefCell::new(pace);
        let mut check = || pace.borrow_mut().steps(STEPS);
        words(doc, Fold::Case, &mut check, &mut |word, place| {
            pace.borrow_mut().step();
            if side.len() > MAX_UNITS {
                return Ok(()); // rejected in the end
            }
            side.ids.try_push(numbers.number(word.as_bytes())?)?;
            side.places.try_push(place.start as u32..place.end as u32)
        })?;
        Ok(side)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns `word` as written in its document.
    pub fn written(&self, word: usize) -> &'d [u8] {
        let place = &self.places[word];
        &self.doc[place.start as usize..place.end as usize]
    }

    /// Returns the bytes of `count` words, starting at `first`, and of the text between them.
    pub fn span(&self, first: u32, count: u32) -> Range<usize> {
        let last = &self.places[(first + count - 1) as usize];
        self.places[first as usize].start as usize..last.end as usize
    }
}
