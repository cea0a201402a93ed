//! Reads documents twice: first their fingerprints, then their windows whose fingerprints repeat.

use super::place::{Place, Placing};
use super::windows::{Hashes, Windows};
use crate::shingle::{Shingling, for_each_block};
use crate::text::{Fold, Unit, words};
use crate::{Grow, Result, with_room};
use std::collections::VecDeque;

/// Reads documents, in any thread.
#[derive(Debug, Clone, Copy)]
pub struct DocumentReader {
    pub(super) min_words: usize,
    pub(super) fold: Fold,
    hashes: Hashes,
}

/// The fingerprints of documents that were read together, and the number of fingerprints of each document.
#[derive(Default)]
pub struct Winnowed {
    pub fingerprints: Vec<u64>,
    pub counts: Vec<u32>,
}

/// A window: its hash, its place, and a limit. An equal window whose place is below the limit ends before this one
/// begins.
pub type Window = [u64; 3];

impl DocumentReader {
    /// Returns a reader for passages of `min_words` words, a number that [`super::min_words`] accepts.
    pub fn new(min_words: usize, fold: Fold, hashes: Hashes) -> Self {
        Self {
            min_words,
            fold,
            hashes,
        }
    }

    /// Returns the fingerprints of documents, about 2 per 3/4 of `min_words` words. Calls `check` at least every 64
    /// KiB.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn winnow<'a>(
        &self,
        docs: impl Iterator<Item = &'a [u8]>,
        check: &mut dyn FnMut(),
    ) -> Result<Winnowed> {
        let mut windows = Windows::new(self.min_words, self.hashes)?;
        let each_word = Shingling {
            k: 1,
            unit: Unit::Word,
            fold: self.fold,
        };
        let mut read = Winnowed::default();
        for doc in docs {
            windows.clear();
            let before = read.fingerprints.len();
            for_each_block(doc, &each_word, &self.hashes.words, &mut |words| {
                check();
                // Anchors are small numbers; reversed, their highest bits are evenly spread.
                let anchors = words.iter().filter_map(|word| windows.push(*word)?.1);
                read.fingerprints.try_extend(anchors.map(u64::reverse_bits))
            })?;
            let count = read.fingerprints.len() - before;
            read.counts.try_push(count as u32)?;
        }
        Ok(read)
    }

    /// Calls `visit` for the windows of `doc` whose fingerprints repeat. `repeats` returns, for each fingerprint of
    /// `doc` in turn, whether it repeats. `start` is the number of the first byte of `doc`. Calls `check` at least
    /// every 64 KiB.
    ///
    /// # Errors
    /// `OutOfMemory`; the first error of `visit`.
    pub fn windows(
        &self,
        (doc, start): (&[u8], u64),
        mut repeats: impl Iterator<Item = bool>,
        check: &mut dyn FnMut(),
        visit: &mut dyn FnMut(Window) -> Result<()>,
    ) -> Result<()> {
        let mut windows = Windows::new(self.min_words, self.hashes)?;
        let (mut placing, mut is_candidate) = (Placing::default(), false);
        // The places of the `min_words` - 1 words before a window, and of the words of the window.
        let mut places: VecDeque<Place> = with_room(2 * self.min_words)?.into();
        words(doc, self.fold, check, &mut |word, bytes| {
            if places.len() == 2 * self.min_words - 1 {
                places.pop_front();
            }
            places.push_back(placing.next(start, &bytes)?);
            let hash = self.hashes.words.element_hash(word.as_bytes());
            let Some((hash, new_anchor)) = windows.push(hash) else {
                return Ok(());
            };
            if new_anchor.is_some() {
                is_candidate = repeats.next().unwrap_or(false);
            }
            if is_candidate {
                let first = places[places.len() - self.min_words];
                visit([hash, first.0, places[0].0])?;
            }
            Ok(())
        })
    }
}
