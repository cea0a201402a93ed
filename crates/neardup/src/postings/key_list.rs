//! The lists of rows of a query's keys.

use crate::Result;
use crate::memory::{collected, copied};
use std::cell::Cell;

/// The rows that have a key.
pub(super) struct KeyList {
    pub key: u32,
    /// How often the query has the key.
    pub weight: u32,
    /// The approximate number of postings on long parts; 0 if there are none.
    pub long_postings: Cell<u64>,
    pub unread: bool,
}

impl KeyList {
    pub fn lengthen(&self, postings: u64) {
        self.long_postings.set(self.long_postings.get() + postings);
    }
}

/// Returns the lists of the keys of a query, by ascending keys.
pub(super) fn lists(keys: &[u32]) -> Result<Vec<KeyList>> {
    let mut sorted = copied(keys)?;
    sorted.sort_unstable();
    collected(sorted.chunk_by(|a, b| a == b).map(|same| KeyList {
        key: same[0],
        weight: same.len() as u32,
        long_postings: Cell::new(0),
        unread: false,
    }))
}

/// Returns how many lists, from the first on, must be read if the others may have up to `most` keys of the query.
pub(super) fn fewest(lists: &[KeyList], mut most: u32) -> usize {
    let mut count = lists.len();
    while let Some(left) = count
        .checked_sub(1)
        .and_then(|last| most.checked_sub(lists[last].weight))
    {
        (count, most) = (count - 1, left);
    }
    count
}
