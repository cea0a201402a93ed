//! The words of two documents, numbered together.

use super::pace::{Pace, STEPS};
use super::suffixes::{MAX_UNITS, within_limit};
use crate::Result;
use crate::text::{Fold, words};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// Equal folded words have equal numbers, in both documents.
pub(super) struct Words {
    pub a: Side,
    pub b: Side,
    /// Different words in both: every number is below it.
    pub distinct: usize,
}

/// The words of one document.
pub(super) struct Side {
    pub ids: Vec<u32>,
    /// Where they stand, in bytes. Parts of one character ("½") stand at the same place.
    pub places: Vec<Range<u32>>,
}

impl Words {
    /// Words as shingles have them by default: upper and lower case are one.
    ///
    /// # Errors
    /// `TooLarge` above [`MAX_UNITS`] words.
    pub fn new(a: &[u8], b: &[u8], pace: &mut Pace) -> Result<Self> {
        let mut numbers = HashMap::new();
        let a = Side::new(a, &mut numbers, pace);
        let b = Side::new(b, &mut numbers, pace);
        within_limit(a.len() + b.len(), "words")?;
        Ok(Self {
            a,
            b,
            distinct: numbers.len(),
        })
    }
}

impl Side {
    fn new(doc: &[u8], numbers: &mut HashMap<Box<str>, u32>, pace: &mut Pace) -> Self {
        let mut side = Self {
            ids: Vec::new(),
            places: Vec::new(),
        };
        let pace = RefCell::new(pace);
        let mut check = || pace.borrow_mut().steps(STEPS);
        words(doc, Fold::Case, &mut check, &mut |word, place| {
            pace.borrow_mut().step();
            if side.len() > MAX_UNITS {
                return; // refused in the end
            }
            let next = numbers.len() as u32;
            let id = match numbers.get(word) {
                Some(&id) => id,
                None => *numbers.entry(word.into()).or_insert(next),
            };
            side.ids.push(id);
            side.places.push(place.start as u32..place.end as u32);
        });
        side
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// A word as it stands in its document.
    pub fn written<'d>(&self, doc: &'d [u8], word: usize) -> &'d [u8] {
        let place = &self.places[word];
        &doc[place.start as usize..place.end as usize]
    }

    /// The bytes of `count` words from the one at `first` on, with what stands between them.
    pub fn span(&self, first: u32, count: u32) -> Range<usize> {
        let last = &self.places[(first + count - 1) as usize];
        self.places[first as usize].start as usize..last.end as usize
    }
}
