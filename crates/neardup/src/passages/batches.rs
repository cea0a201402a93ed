//! The boundaries of documents in batches, so that documents of different batches share none; and which documents
//! share some.

use super::boundaries::Boundary;
use super::file::{Scratch, Spool};
use super::place::document_of;
use super::sort::{HEARTBEAT, Sort, SortedRecords};
use crate::Result;
use crate::cluster::UnionFind;
use crate::memory::{Grow, filled};
use std::iter::Peekable;

/// Bytes that the search of a batch takes for each boundary, approximately.
const BYTES_A_BOUNDARY: usize = 160;

/// The fewest boundaries of a batch, except the last: with fewer, threads would mostly pass them on.
const LEAST: usize = 1 << 10;

/// Boundaries of whole documents, in the order of their first words.
pub struct BoundaryBatch(pub(super) Vec<Boundary>);

impl BoundaryBatch {
    /// Returns the number of boundaries.
    pub fn boundaries(&self) -> usize {
        self.0.len()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }
}

/// All boundaries in batches.
pub struct Batches<S: Scratch> {
    /// Batch, first word, hash, word after, period.
    sorted: Peekable<SortedRecords<5, S>>,
}

impl<S: Scratch> Batches<S> {
    /// Divides boundaries into batches whose search takes up to `memory` bytes, or more for a single group.
    pub(super) fn new(
        mut places: Spool<4, S>,
        groups: Groups,
        starts: &[u64],
        memory: usize,
        look: &mut dyn FnMut(u64),
    ) -> Result<Self> {
        let most = (memory / BYTES_A_BOUNDARY).clamp(LEAST, u32::MAX as usize);
        let batch_of = groups.batches(most as u32);
        let mut sort = Sort::new(memory);
        let mut count = 0;
        places.drain(&mut |[first, hash, right, period]| {
            count += 1;
            if count % HEARTBEAT == 0 {
                look(count as u64);
            }
            let document = document_of(first, starts);
            let batch = u64::from(batch_of[document]);
            let mut check = || look(count as u64);
            sort.push([batch, first, hash, right, period], &mut check)
        })?;
        Ok(Self {
            sorted: sort.sorted(&mut || look(count as u64))?.peekable(),
        })
    }

    /// Returns the next batch; None after the last.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn next(&mut self, check: &mut dyn FnMut()) -> Result<Option<BoundaryBatch>> {
        let Some(number) = self.sorted.peek().map(|record| record[0]) else {
            return Ok(None);
        };
        let mut batch = Vec::new();
        while let Some([_, place @ ..]) = self.sorted.next_if(|record| record[0] == number) {
            if batch.len() % HEARTBEAT == 0 {
                check();
            }
            batch.try_push(place)?;
        }
        Ok(Some(BoundaryBatch(batch)))
    }
}

/// The documents of a collection in groups: documents with the same boundary are in one group. 8 bytes a document.
pub(super) struct Groups {
    links: UnionFind,
    /// The number of boundaries of each document.
    boundaries: Vec<u32>,
    /// The window of the last boundary, and its document.
    last: Option<(u64, usize)>,
}

impl Groups {
    /// Returns `documents` documents, each a group of its own.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(documents: usize) -> Result<Self> {
        Ok(Self {
            links: UnionFind::new(documents as u32)?,
            boundaries: filled(0, documents)?,
            last: None,
        })
    }

    /// Adds a boundary of a document. Boundaries with the same window come one after the other.
    pub fn add(&mut self, window: u64, document: usize) {
        let boundaries = &mut self.boundaries[document];
        *boundaries = boundaries.saturating_add(1);
        if let Some((same, other)) = self.last.replace((window, document))
            && same == window
        {
            self.links.union(other as u32, document as u32);
        }
    }

    /// Returns the batch of every document. A batch has whole groups, in the order of their first documents, up to
    /// `most` boundaries; or one larger group.
    pub fn batches(self, most: u32) -> Vec<u32> {
        self.links.batches(self.boundaries, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stay_together_and_fill_batches() {
        let mut groups = Groups::new(7).expect("memory");
        let shared = [(1, 0), (1, 4), (2, 6), (2, 0), (3, 6)];
        let own = (10..13).map(|window| (window, 1));
        let of_another = (20..29).map(|window| (window, 3));
        for (window, document) in own.chain(shared).chain(of_another) {
            groups.add(window, document);
        }
        // Groups of 5, 3, 0, 9 and 0.
        assert_eq!(groups.batches(8), [0, 0, 0, 1, 0, 1, 0]);
    }
}
