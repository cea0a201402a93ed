//! From shingle hashes to slots: the sketch of a set in progress.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "at most MAX_SLOTS slots")]

use crate::Result;
use crate::kernels::active;
use crate::minhash::{Header, UNFILLED};
use crate::shingle::{Key, Shingling, for_each_block};
use std::ops::DerefMut;

/// The slots of a sketch in progress, in memory chosen by the caller; at first all of them are [`UNFILLED`]. Shingles may
/// come in any order, in any number of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch<S = Vec<u32>>(pub S);

impl Sketch {
    /// Returns an empty sketch of `slots` slots, 1 to [`super::MAX_SLOTS`].
    pub fn new(slots: usize) -> Self {
        Self(vec![UNFILLED; slots])
    }
}

impl<S: DerefMut<Target = [u32]>> Sketch<S> {
    pub fn slots(&self) -> &[u32] {
        &self.0
    }

    /// Returns the stored signature with these slots; whatever `header.empty` is, the result is marked empty if all
    /// slots are unfilled.
    pub fn encode(&self, header: Header) -> Vec<u8> {
        let empty = self.0.iter().all(|slot| *slot == UNFILLED);
        Header { empty, ..header }.encode(&self.0)
    }

    /// Adds the shingles with `hashes`. Time O(n + k log k) for n shingles in one call and k slots.
    pub fn add(&mut self, hashes: &[u64]) {
        active().sketch(&mut self.0, hashes);
    }

    /// Lowers each slot to the slot in `other` if that is lower. This gives the slots of the union of the two sets.
    pub fn merge(&mut self, other: &[u32]) {
        active().merge(&mut self.0, other);
    }
}

/// The parameters with which documents are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    pub shingling: Shingling,
    /// Number of slots of a signature, 1 to [`super::MAX_SLOTS`].
    pub slots: usize,
    pub key: Key,
}

impl Default for Signing {
    /// Returns the parameters of `minhash(document)`.
    fn default() -> Self {
        Self {
            shingling: Shingling::default(),
            slots: 128,
            key: Key::from_seed(0),
        }
    }
}

impl Signing {
    /// Returns the header of the signatures of documents that are not empty.
    pub fn header(&self) -> Header {
        Header::of_document(&self.shingling, self.slots, self.key.id())
    }

    /// Returns the stored signature of a document in UTF-8. Time O(n + slots log slots) for n shingles. Calls `check`
    /// at least every 64 KiB of the document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn sign(&self, doc: &[u8], check: &mut dyn FnMut()) -> Result<Vec<u8>> {
        let mut sketch = Sketch::new(self.slots);
        for_each_block(doc, &self.shingling, &self.key, &mut |hashes| {
            check();
            sketch.add(hashes);
            Ok(())
        })?;
        Ok(sketch.encode(self.header()))
    }
}
