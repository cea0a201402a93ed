//! The number of characters between two places.

use super::place::Texts;
use crate::{Grow, Result};
use std::ops::Range;

/// Number of bytes of a block.
const BLOCK: u64 = 1 << 13;

/// Counts the characters of documents without reading much of them. Takes 8 bytes for every 8 KiB.
#[derive(Default)]
pub struct Characters {
    /// The number of characters before every block.
    before: Vec<u64>,
    bytes: u64,
    characters: u64,
}

impl Characters {
    /// Adds the next document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn push(&mut self, mut doc: &[u8]) -> Result<()> {
        while !doc.is_empty() {
            if self.bytes.is_multiple_of(BLOCK) {
                self.before.try_push(self.characters)?;
            }
            let room = (BLOCK - self.bytes % BLOCK) as usize;
            let (block, rest) = doc.split_at(room.min(doc.len()));
            self.characters += count(block);
            self.bytes += block.len() as u64;
            doc = rest;
        }
        Ok(())
    }

    /// Returns the number of characters that begin in `bytes`, a range within one document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn count(&self, bytes: Range<u64>, texts: &mut dyn Texts) -> Result<u64> {
        let mut read = |bytes| {
            let mut text = Vec::new();
            texts.read(bytes, &mut text)?;
            Ok(count(&text))
        };
        let [first, last] = [bytes.start.div_ceil(BLOCK), bytes.end / BLOCK];
        if first >= last {
            return read(bytes);
        }
        let before = |block| *self.before.get(block as usize).unwrap_or(&self.characters);
        let between = before(last) - before(first);
        Ok(read(bytes.start..first * BLOCK)? + between + read(last * BLOCK..bytes.end)?)
    }
}

/// Returns the number of bytes that are not continuation bytes.
fn count(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64
}
