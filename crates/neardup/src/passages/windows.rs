//! The windows of `min_words` words of a document, each with its hash, its anchor and its
//! neighbors.

use crate::Result;
use crate::hash::{Key, split_mix};
use crate::shingle::{Shingling, for_each_block};
use crate::text::{Fold, Unit};
use std::collections::VecDeque;

/// Stands for the word before the first and the word after the last. No word has this hash.
pub(super) const NO_WORD: u64 = 0;

/// A window.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordWindow {
    pub hash: u64,
    /// The number of its first word.
    pub first: u64,
    /// The word before it, and the word after it.
    pub left: u64,
    pub right: u64,
    /// The hash of its anchor if the previous window has another anchor; None if the last two anchors already had
    /// this hash: in a long row of one word, the other anchors repeat like these.
    pub new_anchor: Option<u64>,
}

/// The hashes of one search. If equal hashes stood for different words, the search is repeated with other hashes.
#[derive(Debug, Clone, Copy)]
pub struct Hashes {
    words: Key,
    /// The base of the polynomials, below [`PRIME`].
    base: u64,
}

impl Hashes {
    /// Returns hashes derived from a number. If the number is random, two windows of m words have the same hash with
    /// a probability of at most m / 2^61, and two words with one of 1 / 2^64, whatever the documents are.
    pub fn from_seed(seed: i64) -> Self {
        let words = Key::from_seed(seed);
        Self {
            words,
            base: words.token_hash(b"base") % PRIME,
        }
    }

    /// Returns hashes that distinguish windows only by their last words.
    #[doc(hidden)]
    pub fn weak() -> Self {
        Self {
            base: 0,
            ..Self::from_seed(0)
        }
    }
}

/// Makes windows from documents. Memory for one window.
pub(super) struct Windows {
    each_word: Shingling,
    hashes: Hashes,
    words: usize,
    grams: Rolling,
    whole: Rolling,
    /// The last words, up to one more than a window has.
    recent: VecDeque<u64>,
    /// The number of words so far.
    count: u64,
    /// Grams of the window that are smaller than all before them, and not greater than any after them.
    candidates: VecDeque<(u64, u64)>,
    last_anchor: Option<Anchor>,
    /// A window that is complete except for the word after it.
    pending: Option<WordWindow>,
}

impl Windows {
    pub fn new(words: usize, fold: Fold, hashes: Hashes) -> Result<Self> {
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
            hashes,
            words,
            // Short grams are chosen less often; long grams repeat less often without their window.
            grams: Rolling::new(words.div_ceil(4), hashes.base),
            whole: Rolling::new(words, hashes.base),
            recent,
            count: 0,
            candidates,
            last_anchor: None,
            pending: None,
        })
    }

    /// Visits every window of a document. Returns the number of its words.
    ///
    /// `check` is called at least every 64 KiB. Linear time.
    pub fn for_each(
        &mut self,
        doc: &[u8],
        check: &mut dyn FnMut(),
        visit: &mut dyn FnMut(WordWindow) -> Result<()>,
    ) -> Result<u64> {
        let (each_word, key) = (self.each_word, self.hashes.words);
        for_each_block(doc, &each_word, &key, &mut |words| {
            check();
            for word in words {
                if let Some(window) = self.push(*word) {
                    visit(window)?;
                }
            }
            Ok(())
        })?;
        let (words, last) = self.finish();
        if let Some(window) = last {
            visit(window)?;
        }
        Ok(words)
    }

    /// Adds the next word. Returns the window that ends before it.
    #[inline]
    fn push(&mut self, word: u64) -> Option<WordWindow> {
        let word = word.max(NO_WORD + 1);
        let complete = self.pending.take().map(|window| WordWindow {
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
            let (at, anchor) = self.anchor(first);
            let is_new = self.is_new_anchor(at, anchor);
            self.pending = Some(WordWindow {
                hash,
                first,
                left: left.unwrap_or(NO_WORD),
                right: NO_WORD,
                new_anchor: is_new.then_some(anchor),
            });
        }
        complete
    }

    /// Returns the word `count` words before the last one.
    #[inline]
    fn nth_last(&self, count: usize) -> Option<u64> {
        let last = self.recent.len() - 1;
        last.checked_sub(count).map(|at| self.recent[at])
    }

    #[inline]
    fn add_gram(&mut self, at: u64, gram: u64) {
        // Equal grams stay, and the first of them is the anchor.
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

    #[inline]
    fn is_new_anchor(&mut self, at: u64, hash: u64) -> bool {
        let in_a_row = match &self.last_anchor {
            Some(last) if last.at == at => return false,
            Some(last) if last.hash == hash => (last.in_a_row + 1).min(3),
            _ => 1,
        };
        self.last_anchor = Some(Anchor { at, hash, in_a_row });
        in_a_row < 3
    }

    /// Ends the document. Returns the number of its words, and its last window.
    fn finish(&mut self) -> (u64, Option<WordWindow>) {
        let count = std::mem::take(&mut self.count);
        self.recent.clear();
        self.candidates.clear();
        self.last_anchor = None;
        self.grams.value = 0;
        self.whole.value = 0;
        (count, self.pending.take())
    }
}

/// The gram that stands for a window.
struct Anchor {
    at: u64,
    hash: u64,
    /// The number of consecutive anchors with this hash, up to and including this one; at most 3.
    in_a_row: u8,
}

/// 2^61 - 1, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// A polynomial over the last words, modulo a prime: two polynomials of degree m agree at no more than m bases
/// (Karp, Rabin, IBM Journal of Research and Development 31(2), 1987). Modulo 2^64, there are long texts that agree
/// at every base.
struct Rolling {
    length: usize,
    base: u64,
    /// The base to the power of the length.
    leaving: u64,
    value: u64,
}

impl Rolling {
    fn new(length: usize, base: u64) -> Self {
        Self {
            length,
            base,
            leaving: (0..length).fold(1, |power, _| multiply(power, base)),
            value: 0,
        }
    }

    /// Adds a word. `leaving` is the word `length` words before it, if there is one.
    #[inline]
    fn push(&mut self, word: u64, leaving: Option<u64>) -> u64 {
        let leaving = multiply(reduce(leaving.unwrap_or(0)), self.leaving);
        let sum = multiply(self.value, self.base) + reduce(word) + (PRIME - leaving);
        self.value = reduce(sum);
        split_mix(self.value)
    }
}

/// Returns the residue of a number below 2^64.
#[inline]
fn reduce(number: u64) -> u64 {
    let sum = (number & PRIME) + (number >> 61);
    if sum >= PRIME { sum - PRIME } else { sum }
}

/// Returns the product of two residues.
#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduce((product as u64 & PRIME) + (product >> 61) as u64)
}
