//! Documents that are linked by common boundaries, and the batches in which they are searched.

use crate::Result;
use crate::cluster::UnionFind;
use crate::memory::filled;

/// The documents of a collection, those with the same boundary in one group. 8 bytes a document.
pub(super) struct Groups {
    links: UnionFind,
    /// The boundaries of each document.
    boundaries: Vec<u32>,
}

impl Groups {
    /// Returns that many documents, each a group of its own.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(documents: usize) -> Result<Self> {
        let mut links = UnionFind::new();
        links.grow_to(documents as u32)?;
        Ok(Self {
            links,
            boundaries: filled(0, documents)?,
        })
    }

    /// Adds a boundary to a document.
    pub fn add(&mut self, document: usize) {
        let boundaries = &mut self.boundaries[document];
        *boundaries = boundaries.saturating_add(1);
    }

    /// Makes the groups of two documents one.
    pub fn join(&mut self, a: usize, b: usize) {
        self.links.union(a as u32, b as u32);
    }

    /// Returns the batch of every document: whole groups, in the order of their first documents, up to
    /// `most` boundaries or one group.
    pub fn batches(mut self, most: u32) -> Vec<u32> {
        let batches = &mut self.boundaries;
        for document in 0..batches.len() {
            let first = self.links.find(document as u32) as usize;
            if first != document {
                batches[first] = batches[first].saturating_add(batches[document]);
            }
        }
        let (mut batch, mut boundaries) = (0, 0u32);
        for document in 0..batches.len() {
            let first = self.links.find(document as u32) as usize;
            if first == document {
                let more = batches[document];
                if more > 0 && boundaries > 0 && boundaries.saturating_add(more) > most {
                    (batch, boundaries) = (batch + 1, 0);
                }
                boundaries = boundaries.saturating_add(more);
                batches[document] = batch;
            } else {
                batches[document] = batches[first];
            }
        }
        self.boundaries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stay_together_and_fill_batches() {
        let mut groups = Groups::new(7).expect("memory");
        for (document, boundaries) in [(0, 2), (1, 3), (3, 9), (4, 1), (6, 2)] {
            (0..boundaries).for_each(|_| groups.add(document));
        }
        groups.join(4, 0);
        groups.join(6, 4);
        // Groups of 5, 3, 0, 9 and 0.
        assert_eq!(groups.batches(8), [0, 0, 0, 1, 0, 1, 0]);
    }
}
