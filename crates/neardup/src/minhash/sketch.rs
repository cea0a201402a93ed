//! From shingle hashes to slots: the sketch of a set in progress.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "at most MAX_SLOTS slots"
)]

use crate::Result;
use crate::kernels::active;
use crate::minhash::{Header, UNFILLED};
use crate::shingle::{Key, Shingling, for_each_block};

/// The slots of a sketch in progress. Shingles may come in any order, in any number of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    slots: Vec<u32>,
}

impl Sketch {
    /// Returns an empty sketch of `slots` slots, 1 to [`super::MAX_SLOTS`].
    pub fn new(slots: usize) -> Self {
        Self {
            slots: vec![UNFILLED; slots],
        }
    }

    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Returns the stored signature with these slots; `header` need not say whether it is empty.
    pub fn encode(&self, header: Header) -> Vec<u8> {
        encode(&self.slots, header)
    }

    /// Adds shingles. O(n + k log k) for n shingles in one call.
    pub fn add(&mut self, hashes: &[u64]) {
        add(&mut self.slots, hashes);
    }
}

/// Adds shingles, like [`Sketch::add`], to slots that are kept elsewhere. Initially, all of them must be [`UNFILLED`].
pub fn add(slots: &mut [u32], hashes: &[u64]) {
    active().sketch(slots, hashes);
}

/// Returns the stored signature, like [`Sketch::encode`], of slots that are kept elsewhere.
pub fn encode(slots: &[u32], header: Header) -> Vec<u8> {
    let empty = slots.iter().all(|slot| *slot == UNFILLED);
    Header { empty, ..header }.encode(slots)
}

/// Lowers each of `slots` to the slot in `other` if that is lower. This gives the slots of the union of the two sets.
pub fn merge(slots: &mut [u32], other: &[u32]) {
    active().merge(slots, other);
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
    /// The parameters of `minhash(document)`.
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
