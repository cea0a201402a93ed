//! Distinct texts, numbered in the order of their first occurrence.

use crate::parts::Parts;
use crate::{Error, Grow, Result};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Number of hash tables. A single table moves all of its entries when it grows: with millions of texts, it could not
/// be canceled for seconds.
const TABLES: usize = 256;

/// Distinct texts, stored end to end in one list, because millions of small allocations take long to free.
pub struct NumberedTexts {
    texts: Parts<u8>,
    tables: [HashTable<u32>; TABLES],
    hasher: RandomState,
}

impl Default for NumberedTexts {
    fn default() -> Self {
        Self {
            texts: Parts::default(),
            tables: [const { HashTable::new() }; TABLES],
            hasher: RandomState::new(),
        }
    }
}

impl NumberedTexts {
    /// Returns the number of `text`. A new text gets the next number.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn number(&mut self, text: &[u8]) -> Result<u32> {
        let text_of = |number: &u32| self.texts.part(*number as usize);
        let hash = self.hasher.hash_one(text);
        // A table itself uses other bits to choose a place.
        let table = &mut self.tables[(hash >> 32) as usize % TABLES];
        if let Some(&number) = table.find(hash, |number| text_of(number) == text) {
            return Ok(number);
        }
        let number = self.texts.len() as u32;
        let rehash = |number: &u32| self.hasher.hash_one(text_of(number));
        table
            .try_reserve(1, rehash)
            .map_err(|_| Error::OutOfMemory)?;
        table.insert_unique(hash, number, rehash);
        self.texts.items.try_extend_from_slice(text)?;
        self.texts.end()?;
        Ok(number)
    }

    /// Returns the text with this `number`.
    pub fn text(&self, number: u32) -> &[u8] {
        self.texts.part(number as usize)
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
