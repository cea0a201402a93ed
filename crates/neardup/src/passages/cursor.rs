//! The words of a document, beginning at any place.

use super::place::{Place, Placing, Texts};
use crate::text::{Fold, words};
use crate::{Grow, Result};

/// Number of bytes of the first block.
const FIRST: usize = 1 << 9;
/// Maximum number of bytes of a block, unless a single word has more.
const MOST: usize = 1 << 16;

/// Reads the words of a document one after the other, in blocks, so that a passage costs no more than its own text.
pub(super) struct Cursor {
    fold: Fold,
    /// The place of the first word after the block, and the end of the document.
    rest: Option<Place>,
    end: u64,
    /// Number of bytes of the next block.
    size: usize,
    bytes: Vec<u8>,
    /// The folded text of the words in the block, these words, and how many of them have been read.
    text: Vec<u8>,
    words: Vec<Word>,
    next: usize,
}

/// A word in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub place: Place,
    /// The end of the word's bytes.
    pub end: u64,
    /// The end of the word's folded text in the block.
    text_end: usize,
}

impl Cursor {
    /// Returns a cursor at the word at `at`.
    pub fn new(fold: Fold, at: Place, texts: &dyn Texts) -> Self {
        Self {
            fold,
            rest: Some(at),
            end: texts.document(at.byte()).1.end,
            size: FIRST,
            bytes: Vec::new(),
            text: Vec::new(),
            words: Vec::new(),
            next: 0,
        }
    }

    /// Returns the next word and its folded text, or None at the end of the document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn next(
        &mut self,
        texts: &mut dyn Texts,
        check: &mut dyn FnMut(),
    ) -> Result<Option<(Word, &[u8])>> {
        while self.next == self.words.len() {
            let Some(at) = self.rest else {
                return Ok(None);
            };
            check();
            self.read(at, texts, check)?;
            self.size = self.size.saturating_mul(2).min(MOST.max(self.size));
        }
        let before = self.next.checked_sub(1);
        let start = before.map_or(0, |before| self.words[before].text_end);
        let word = self.words[self.next];
        self.next += 1;
        Ok(Some((word, &self.text[start..word.text_end])))
    }

    /// Reads a block that begins with the word at `at`. Text after the block can change its last word, so this word
    /// begins the next block.
    fn read(&mut self, at: Place, texts: &mut dyn Texts, check: &mut dyn FnMut()) -> Result<()> {
        let start = at.byte();
        let block_end = self.end.min(start + self.size as u64);
        self.bytes.clear();
        texts.read(start..block_end, &mut self.bytes)?;
        self.text.clear();
        self.words.clear();
        self.next = 0;
        let (mut placing, mut skipped) = (Placing::default(), at.words_before());
        let (text, found) = (&mut self.text, &mut self.words);
        words(&self.bytes, self.fold, check, &mut |word, bytes| {
            let place = placing.next(start, &bytes)?;
            if skipped > 0 {
                skipped -= 1;
                return Ok(());
            }
            text.try_extend_from_slice(word.as_bytes())?;
            found.try_push(Word {
                place,
                end: start + bytes.end as u64,
                text_end: text.len(),
            })
        })?;
        if block_end == self.end {
            self.rest = None;
            return Ok(());
        }
        let last = self.words.last().map_or(start, |last| last.place.byte());
        let known = self.words.partition_point(|word| word.end <= last);
        match self.words.get(known) {
            Some(unknown) if known > 0 => self.rest = Some(unknown.place),
            // A long word, or none at all.
            _ => self.size = self.size.saturating_mul(2),
        }
        self.words.truncate(known);
        Ok(())
    }
}
