//! The fingerprints of a collection, and which of them repeat.

use super::file::Scratch;
use super::repeated::{DocumentPiece, Repeated};
use super::sort::{HEARTBEAT, Sort};
use super::winnowing::{DocumentReader, Winnowed};
use crate::Result;
use crate::memory::{Grow, filled};
use bitvec::vec::BitVec;

/// The fingerprints of all documents.
///
/// `memory`, in bytes, limits a sort; records beyond it go to an `S`. In addition, every document takes 8 bytes, and
/// every fingerprint one bit.
pub struct Fingerprints<S> {
    reader: DocumentReader,
    sort: Sort<2, S>,
    count: u64,
    pieces: Vec<DocumentPiece>,
    starts: Vec<u64>,
    end: u64,
}

impl<S: Scratch> Fingerprints<S> {
    /// Returns an empty list for the documents of a reader.
    pub fn new(reader: DocumentReader, memory: usize) -> Self {
        Self {
            reader,
            sort: Sort::new(memory),
            count: 0,
            pieces: Vec::new(),
            starts: Vec::new(),
            end: 0,
        }
    }

    /// Adds the fingerprints of the next documents. The second reading will read these documents together again.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, read: &Winnowed, check: &mut dyn FnMut()) -> Result<()> {
        self.pieces.try_push(DocumentPiece {
            first_document: self.starts.len(),
            first_fingerprint: self.count,
        })?;
        for words in &read.words {
            self.starts.try_push(self.end)?;
            // The number between two documents belongs to neither, so that no run reaches across it.
            self.end += words + 1;
        }
        for anchor in &read.anchors {
            self.sort.push([*anchor, self.count], check)?;
            self.count += 1;
        }
        Ok(())
    }

    /// Returns the number of fingerprints.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends the first reading. Calls `look` with the number of fingerprints processed so far.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn repeated(self, look: &mut dyn FnMut(u64)) -> Result<Repeated> {
        let words = filled(0, self.count.div_ceil(64) as usize)?;
        let mut repeats = BitVec::from_vec(words);
        let mut last: Option<[u64; 2]> = None;
        for (count, next) in self.sort.sorted(&mut || look(0))?.enumerate() {
            if count % HEARTBEAT == 0 {
                look(count as u64);
            }
            if let Some(last) = last.filter(|last| last[0] == next[0]) {
                repeats.set(last[1] as usize, true);
                repeats.set(next[1] as usize, true);
            }
            last = Some(next);
        }
        Ok(Repeated {
            reader: self.reader,
            repeats,
            pieces: self.pieces,
            starts: self.starts,
        })
    }
}
