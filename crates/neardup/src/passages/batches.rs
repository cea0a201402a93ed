//! The boundaries of documents that share none with others, a batch of them at a time.

use super::boundaries::Boundary;
use super::file::Scratch;
use super::groups::Groups;
use super::place::document_of;
use super::sort::{HEARTBEAT, Sort, SortedRecords};
use super::spool::Spool;
use crate::Result;
use crate::memory::Grow;
use std::iter::Peekable;

/// Bytes that the search of a batch takes for each of its boundaries, about.
const BYTES_A_BOUNDARY: usize = 160;

/// Fewest boundaries of a batch but the last: with fewer, threads would mostly hand them on.
const LEAST: usize = 1 << 10;

/// Boundaries of whole documents, in the order of their first words.
pub struct BoundaryBatch(pub(super) Vec<Boundary>);

impl BoundaryBatch {
    /// Returns the number of boundaries.
    pub fn boundaries(&self) -> usize {
        self.0.len()
    }

    /// Returns how many bytes it has.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }
}

/// All boundaries in batches.
pub struct Batches<S: Scratch> {
    /// Batch, first word, hash, word behind, period.
    sorted: Peekable<SortedRecords<5, S>>,
}

impl<S: Scratch> Batches<S> {
    /// Divides boundaries into batches whose search takes up to `memory` bytes, unless a group takes
    /// more.
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
            batch.try_push(Boundary::from(place))?;
        }
        Ok(Some(BoundaryBatch(batch)))
    }
}
