//! Stop words, by token hash.
#![allow(clippy::disallowed_methods, reason = "three hashes per stop word")]

use super::Key;
use crate::kernels::active;
use crate::text::{Fold, STOP_WORDS, stop_words};

/// The token hashes of the stop words, sorted.
pub(super) struct StopHashes(Vec<u64>);

impl StopHashes {
    /// Returns the hashes of the stop words. If nothing is folded, words with a capital first letter and words in
    /// capitals are included.
    pub fn new(fold: Fold, key: &Key) -> Self {
        let mut hashes = Vec::new();
        active().word_hashes(STOP_WORDS.as_bytes(), key, &mut hashes);
        if fold == Fold::None {
            for word in stop_words() {
                let mut spelling = word.to_owned();
                spelling[..1].make_ascii_uppercase();
                hashes.push(key.token_hash(spelling.as_bytes()));
                spelling.make_ascii_uppercase();
                hashes.push(key.token_hash(spelling.as_bytes()));
            }
        }
        hashes.sort_unstable();
        Self(hashes)
    }

    pub fn contains(&self, token: u64) -> bool {
        self.0.binary_search(&token).is_ok()
    }
}
