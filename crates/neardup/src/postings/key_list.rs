//! The lists of the rows that have a query's keys.

use crate::Result;
use crate::memory::{collected, copied};
use std::cell::Cell;

/// The rows that have a key.
pub(super) struct KeyList {
    pub key: u32,
    /// How often the query has the key.
    pub weight: u32,
    /// The approximate number of postings in the parts where the list is long, or 0 if it is short in all.
    pub long_postings: Cell<u64>,
}

impl KeyList {
    pub fn is_long(&self) -> bool {
        self.long_postings.get() > 0
    }

    pub fn lengthen(&self, postings: u64) {
        let before = self.long_postings.get();
        self.long_postings
            .set(before.saturating_add(postings.max(1)));
    }
}

/// Returns the lists of a query's `keys`, in ascending order of the keys.
pub(super) fn lists(keys: &[u32]) -> Result<Vec<KeyList>> {
    let mut sorted = copied(keys)?;
    sorted.sort_unstable();
    collected(sorted.chunk_by(|a, b| a == b).map(|same| KeyList {
        key: same[0],
        weight: same.len() as u32,
        long_postings: Cell::new(0),
    }))
}
