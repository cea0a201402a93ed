//! Winnowing: fingerprints of a document's passages.

use super::{Key, Shingling, for_each_block};
use crate::set::Distinct;
use crate::{Grow, Result};
use std::collections::VecDeque;

/// Maximum size of a window.
pub const MAX_WINDOW: usize = 1 << 16;

/// Returns the set of a document's fingerprints: the smallest of every `window` consecutive shingle hashes (as
/// `i64`), or the smallest of all if there are fewer.
///
/// Two documents with a common run of at least `window + k - 1` units share a fingerprint. Of shingles that do not
/// repeat, a share of `2 / (window + 1)` is chosen (Schleimer, Wilkerson, Aiken, "Winnowing: local algorithms for
/// document fingerprinting", SIGMOD 2003). Linear time; memory for the window and the result.
///
/// # Errors
/// `OutOfMemory`.
pub fn winnow(
    doc: &[u8],
    shingling: &Shingling,
    key: &Key,
    window: usize,
    check: &mut dyn FnMut(),
) -> Result<Vec<i64>> {
    let mut chosen = Distinct::new();
    let mut winnower = Winnower {
        window,
        ..Winnower::default()
    };
    for_each_block(doc, shingling, key, &mut |hashes| {
        check();
        for hash in hashes {
            winnower.push(*hash as i64)?;
        }
        chosen.extend(winnower.chosen.drain(..), check)
    })?;
    chosen.extend(winnower.finish()?, check)?;
    Ok(chosen.into_sorted(check))
}

#[derive(Default)]
struct Winnower {
    window: usize,
    seen: usize,
    /// The hashes of the window that no smaller hash follows, in ascending order, with their positions.
    candidates: VecDeque<(usize, i64)>,
    last_chosen: Option<usize>,
    chosen: Vec<i64>,
}

impl Winnower {
    fn push(&mut self, hash: i64) -> Result<()> {
        while self.candidates.back().is_some_and(|last| last.1 >= hash) {
            self.candidates.pop_back();
        }
        self.candidates.try_reserve(1)?;
        self.candidates.push_back((self.seen, hash));
        self.seen += 1;
        if self.candidates[0].0 + self.window < self.seen {
            self.candidates.pop_front();
        }
        if self.seen >= self.window {
            self.choose()?;
        }
        Ok(())
    }

    /// Chooses the minimum of the window, once for all windows that share it.
    fn choose(&mut self) -> Result<()> {
        let (position, hash) = self.candidates[0];
        if self.last_chosen != Some(position) {
            self.last_chosen = Some(position);
            self.chosen.try_push(hash)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<i64>> {
        if self.seen < self.window && self.seen > 0 {
            self.choose()?;
        }
        Ok(self.chosen)
    }
}
