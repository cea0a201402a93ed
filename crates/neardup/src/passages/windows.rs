//! The windows of `min_words` words of a document, each with its hash, its anchor and its
//! neighbors.

use crate::Result;
use crate::hash::{Key, split_mix};
use crate::shingle::{Shingling, for_each_block};
use crate::text::{Fold, Unit};
use std::collections::VecDeque;

/// Odd, 3 modulo 8; any number of that kind spreads words over 64 bits.
const BASE: u64 = 0xDA94_2042_E4DD_58B5;

/// Stands for the word before the first and behind the last. No word has it as its hash.
pub(super) const NO_WORD: u64 = 0;

/// A window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub hash: u64,
    /// The number of its first word.
    pub first: u64,
    /// The word before, and the one behind.
    pub left: u64,
    pub right: u64,
    /// The hash of its anchor.
    pub anchor: u64,
    /// True if the window before has another anchor.
    pub is_new_anchor: bool,
}

/// Takes a window and the check for interrupts.
pub(super) type Visit<'a> = dyn FnMut(Window, &mut dyn FnMut()) -> Result<()> + 'a;

/// Makes windows of documents. Memory for one window.
pub(super) struct Windows {
    each_word: Shingling,
    words: usize,
    grams: Rolling,
    whole: Rolling,
    /// The last words, up to one more than a window has.
    recent: VecDeque<u64>,
    /// Words so far.
    count: u64,
    /// Grams of the window that none before them undercuts or equals, and none behind undercuts.
    candidates: VecDeque<(u64, u64)>,
    last_anchor: Option<u64>,
    /// Complete but for the word behind.
    pending: Option<Window>,
}

impl Windows {
    pub fn new(words: usize, fold: Fold) -> Result<Self> {
        let mut recent = VecDeque::new();
        recent.try_reserve_exact(words + 1)?;
        let mut candidates = VecDeque::new();
        candidates.try_reserve_exact(words + 1)?;
        Ok(Self {
            each_word: Shingling {
                k: 1,
                unit: Unit::Word,
                fold,
            },
            words,
            // Short grams are chosen less often, long ones repeat less often without their window.
            grams: Rolling::new(words.div_ceil(4)),
            whole: Rolling::new(words),
            recent,
            count: 0,
            candidates,
            last_anchor: None,
            pending: None,
        })
    }

    /// Visits every window of a document; returns the number of its words.
    ///
    /// `check` is called at least every 64 KiB. Linear time.
    pub fn for_each(
        &mut self,
        doc: &[u8],
        check: &mut dyn FnMut(),
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let each_word = self.each_word;
        for_each_block(doc, &each_word, &Key::from_seed(0), &mut |words| {
            check();
            for word in words {
                if let Some(window) = self.push(*word) {
                    visit(window, check)?;
                }
            }
            Ok(())
        })?;
        let (words, last) = self.finish();
        if let Some(window) = last {
            visit(window, check)?;
        }
        Ok(words)
    }

    /// Takes the next word; returns the window that ends before it.
    #[inline]
    fn push(&mut self, word: u64) -> Option<Window> {
        let word = word.max(NO_WORD + 1);
        let complete = self.pending.take().map(|window| Window {
            right: word,
            ..window
        });
        if self.recent.len() > self.words {
            self.recent.pop_front();
        }
        self.recent.push_back(word);
        self.count += 1;
        let left = self.nth_last(self.words);
        let gram = self.grams.push(word, self.nth_last(self.grams.length));
        let hash = self.whole.push(word, left);
        if self.count >= self.grams.length as u64 {
            self.add_gram(self.count - self.grams.length as u64, gram);
        }
        if self.count >= self.words as u64 {
            let first = self.count - self.words as u64;
            let (anchor_at, anchor) = self.anchor(first);
            let is_new_anchor = self.last_anchor.replace(anchor_at) != Some(anchor_at);
            self.pending = Some(Window {
                hash,
                first,
                left: left.unwrap_or(NO_WORD),
                right: NO_WORD,
                anchor,
                is_new_anchor,
            });
        }
        complete
    }

    /// The word that many before the last.
    #[inline]
    fn nth_last(&self, count: usize) -> Option<u64> {
        let last = self.recent.len() - 1;
        last.checked_sub(count).map(|at| self.recent[at])
    }

    #[inline]
    fn add_gram(&mut self, at: u64, gram: u64) {
        // Of equal ones the first stays: periodic text has one anchor a window, not one a word.
        while self.candidates.back().is_some_and(|last| last.1 > gram) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((at, gram));
    }

    #[inline]
    fn anchor(&mut self, first: u64) -> (u64, u64) {
        while self.candidates[0].0 < first {
            self.candidates.pop_front();
        }
        self.candidates[0]
    }

    /// Ends the document: its words, and its last window.
    fn finish(&mut self) -> (u64, Option<Window>) {
        let count = std::mem::take(&mut self.count);
        self.recent.clear();
        self.candidates.clear();
        self.last_anchor = None;
        self.grams.value = 0;
        self.whole.value = 0;
        (count, self.pending.take())
    }
}

/// A polynomial over the last words, modulo 2^64 (Karp, Rabin, IBM Journal of Research and
/// Development 31(2), 1987).
struct Rolling {
    length: usize,
    /// The base to the power of the length.
    leaving: u64,
    value: u64,
}

impl Rolling {
    fn new(length: usize) -> Self {
        Self {
            length,
            leaving: (0..length).fold(1, |power: u64, _| power.wrapping_mul(BASE)),
            value: 0,
        }
    }

    /// `leaving` is the word `length` words before, where there is one.
    #[inline]
    fn push(&mut self, word: u64, leaving: Option<u64>) -> u64 {
        let leaving = leaving.unwrap_or(0).wrapping_mul(self.leaving);
        self.value = self.value.wrapping_mul(BASE).wrapping_add(word);
        self.value = self.value.wrapping_sub(leaving);
        split_mix(self.value)
    }
}
