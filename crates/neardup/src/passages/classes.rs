//! Windows with the same hash.

use super::winnowing::Window;
use crate::{Error, Result};
use hashbrown::HashTable;

/// Maximum number of classes in one table: while a larger one grows, a search could not be canceled.
const MOST: usize = 1 << 20;

/// The first window of each hash, and the number of its windows. Takes 32 bytes per class.
pub struct Classes {
    table: HashTable<Class>,
    most: usize,
}

/// The role of a window in its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// A copy of the first window, which has this place.
    Copy(u64),
    /// The first window, or one that overlaps the first.
    Original,
    /// A window for whose class there is no room. All windows with this hash belong to another table.
    Excluded,
}

struct Class {
    hash: u64,
    /// The place of the first window.
    first: u64,
    /// Places before this one are in the document of the last window.
    document_end: u64,
    documents: u32,
    places: u32,
}

impl Classes {
    /// Returns an empty table with room for at most `most` classes.
    pub fn new(most: usize) -> Self {
        Self {
            table: HashTable::new(),
            most: most.clamp(1, MOST),
        }
    }

    /// Adds `window`, and returns its role. Windows must come in the order of their places. `document_end` returns the
    /// end of the document that contains a place.
    ///
    /// # Errors
    /// `OutOfMemory`.
    #[inline]
    pub fn add(&mut self, window: Window, document_end: &dyn Fn(u64) -> u64) -> Result<Member> {
        let [hash, place, limit] = window;
        let Some(class) = self.table.find_mut(hash, |class| class.hash == hash) else {
            return self.insert(window, document_end);
        };
        if class.first >= limit {
            return Ok(Member::Original);
        }
        class.places = class.places.saturating_add(1);
        if place >= class.document_end {
            class.document_end = document_end(place);
            class.documents += 1;
        }
        Ok(Member::Copy(class.first))
    }

    fn insert(&mut self, window: Window, document_end: &dyn Fn(u64) -> u64) -> Result<Member> {
        let [hash, first, _] = window;
        if self.table.len() == self.most {
            return Ok(Member::Excluded);
        }
        let hash_of = |class: &Class| class.hash;
        self.table
            .try_reserve(1, hash_of)
            .map_err(|_| Error::OutOfMemory)?;
        let class = Class {
            hash,
            first,
            document_end: document_end(first),
            documents: 1,
            places: 1,
        };
        self.table.insert_unique(hash, class, hash_of);
        Ok(Member::Original)
    }

    /// Returns the classes with two or more windows: the first place, the number of documents, and the number of
    /// places.
    pub fn repeated(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        let repeated = self.table.iter().filter(|class| class.places > 1);
        repeated.map(|class| (class.first, class.documents, class.places))
    }
}
