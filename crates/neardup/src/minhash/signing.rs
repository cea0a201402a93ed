//! From a document to its signature.

use crate::Result;
use crate::minhash::{Header, Sketch};
use crate::shingle::{Key, Shingling, for_each_block};

/// The parameters that documents are signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    pub shingling: Shingling,
    /// Slots of a signature, 1 to [`super::MAX_SLOTS`].
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

    /// Returns the stored signature of a document in UTF-8: O(n + slots log slots) for n shingles.
    /// `check` is called at least every 64 KiB of the document.
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
