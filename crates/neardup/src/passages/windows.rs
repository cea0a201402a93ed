//! The windows of `min_words` words of a document, each with its hash and its anchor.

use crate::hash::{Key, split_mix};
use crate::{Result, with_room};
use std::collections::VecDeque;

/// The hashes of one search. If equal hashes turn out to stand for different words, the search is repeated with others.
#[derive(Debug, Clone, Copy)]
pub struct Hashes {
    pub(super) words: Key,
    /// The base of the polynomials, below [`PRIME`].
    base: u64,
}

impl Hashes {
    /// Returns hashes derived from `seed`. If it is random, two windows of m words have the same hash with a
    /// probability of at most m / 2^61, and two words with a probability of 1 / 2^64, whatever the documents are.
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

/// Makes windows from the hashes of a document's words. Takes memory for one window.
pub(super) struct Windows {
    grams: Rolling,
    whole: Rolling,
    /// The last words, up to one more than a window has.
    recent: VecDeque<u64>,
    /// The number of words so far.
    count: u64,
    /// Grams of the window that no smaller one follows, in order, with their positions.
    candidates: VecDeque<(u64, u64)>,
    last_anchor: Option<Anchor>,
}

impl Windows {
    pub fn new(words: usize, hashes: Hashes) -> Result<Self> {
        Ok(Self {
            // Short grams are chosen less often; long grams repeat less often without their window.
            grams: Rolling::new(words.div_ceil(4), hashes.base),
            whole: Rolling::new(words, hashes.base),
            recent: with_room(words + 1)?.into(),
            count: 0,
            candidates: with_room(words + 1)?.into(),
            last_anchor: None,
        })
    }

    /// Begins another document.
    pub fn clear(&mut self) {
        self.count = 0;
        self.recent.clear();
        self.candidates.clear();
        self.last_anchor = None;
        self.grams.value = 0;
        self.whole.value = 0;
    }

    /// Adds the next `word`. Returns the hash of the window that `word` ends, or None if there are too few words for a
    /// window, and the hash of this window's anchor if the previous window has another anchor. The anchor is None, too,
    /// if the last two anchors already had this hash: in a long run of one word, the other anchors repeat like these.
    #[inline]
    pub fn push(&mut self, word: u64) -> Option<(u64, Option<u64>)> {
        if self.recent.len() > self.whole.length {
            self.recent.pop_front();
        }
        self.recent.push_back(word);
        self.count += 1;
        let gram = self.grams.push(word, self.nth_last(self.grams.length));
        let hash = self.whole.push(word, self.nth_last(self.whole.length));
        if self.count >= self.grams.length as u64 {
            self.add_gram(self.count - self.grams.length as u64, gram);
        }
        let first = self.count.checked_sub(self.whole.length as u64)?;
        let (at, anchor) = self.anchor(first);
        Some((hash, self.is_new_anchor(at, anchor).then_some(anchor)))
    }

    /// Returns the word `count` words before the last one, or None if there is none.
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
}

/// The gram that represents a window.
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
    /// `base` to the power of `length`.
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

    /// Adds `word`, and returns the new value, mixed by [`split_mix`]. `leaving` is the word `length` words before
    /// `word`, if there is one.
    #[inline]
    fn push(&mut self, word: u64, leaving: Option<u64>) -> u64 {
        let leaving = multiply(reduce(leaving.unwrap_or(0)), self.leaving);
        let sum = multiply(self.value, self.base) + reduce(word) + (PRIME - leaving);
        self.value = reduce(sum);
        split_mix(self.value)
    }
}

/// Returns the residue of `number` modulo [`PRIME`].
#[inline]
fn reduce(number: u64) -> u64 {
    let sum = (number & PRIME) + (number >> 61);
    if sum >= PRIME { sum - PRIME } else { sum }
}

/// Returns the product of the residues `a` and `b` modulo [`PRIME`].
#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduce((product as u64 & PRIME) + (product >> 61) as u64)
}
