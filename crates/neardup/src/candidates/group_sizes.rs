//! Approximate sizes of the groups of rows that share a key.

use super::frequencies::place;
use crate::Result;
use crate::memory::filled;
use std::hint::black_box;

/// Number of bits of a word that represent a key.
const BITS: u32 = 4;

/// Number of words of the filter in a cache line.
const WORDS: usize = 4;

/// Number of bytes of sizes in a cache line, with two sizes each.
const SIZES: usize = 32;

/// The sizes of the groups of two or more rows that have the same token, in powers of 2.
///
/// A Bloom filter distinguishes tokens that only one row has. All its bits for a token lie in one word (Putze,
/// Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007). Groups whose sizes share a place get
/// the largest of these sizes. Unlike counters, the sizes do not depend on the order of the rows.
///
/// The filter and the size of a key lie in one cache line. Lines are in the order of the keys, so adding groups in the
/// order of their keys goes through memory once.
pub struct GroupSizes {
    lines: Vec<GroupLine>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct GroupLine {
    filter: [u64; WORDS],
    sizes: [u8; SIZES],
}

impl GroupSizes {
    /// Returns an empty table with room for the groups of `tokens` tokens in at most `max_bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(tokens: usize, max_bytes: usize) -> Result<Self> {
        let least = 2 * size_of::<GroupLine>();
        let bytes = (tokens / 2).clamp(least, max_bytes.max(least));
        let empty = GroupLine {
            filter: [0; _],
            sizes: [0; _],
        };
        let lines = filled(empty, 1 << (bytes / size_of::<GroupLine>()).ilog2())?;
        Ok(Self { lines })
    }

    /// Returns the key of a band's token. Different tokens have different keys.
    #[inline]
    pub fn key(band: usize, token: u32) -> u64 {
        place(band, token)
    }

    /// Adds a group of `rows` rows (at least two) that share `key`.
    pub fn add(&mut self, key: u64, rows: usize) {
        let size = rows.ilog2().min(14) as u8 + 1;
        let number = self.line(key);
        let line = &mut self.lines[number];
        let (word, bits) = filter_place(key);
        line.filter[word] |= bits;
        let (byte, shift) = size_place(key);
        if size > line.sizes[byte] >> shift & 15 {
            line.sizes[byte] = line.sizes[byte] & !(15 << shift) | size << shift;
        }
    }

    /// Returns the approximate size of the group of a band's `token`: 1 for a single row, or a number from 2 to 15 that
    /// rises with the size.
    pub fn size(&self, band: usize, token: u32) -> u8 {
        let key = Self::key(band, token);
        let line = &self.lines[self.line(key)];
        let (word, bits) = filter_place(key);
        if line.filter[word] & bits != bits {
            return 1;
        }
        let (byte, shift) = size_place(key);
        (line.sizes[byte] >> shift & 15).max(2)
    }

    /// Returns the [`Self::size`] of each token of a row. Loads all lines at once: most are in no cache, and waiting
    /// for one after the other takes 5 times as long.
    pub(super) fn sizes<'a>(&'a self, row: &'a [u32]) -> impl Iterator<Item = u8> + 'a {
        let line = |(band, token): (usize, &u32)| self.line(Self::key(band, *token));
        let lines = row.iter().enumerate().map(line);
        black_box(lines.fold(0, |all, line| all ^ self.lines[line].filter[0]));
        (row.iter().enumerate()).map(|(band, token)| self.size(band, *token))
    }

    /// Returns the line of `key`.
    #[inline]
    fn line(&self, key: u64) -> usize {
        (key >> (u64::BITS - self.lines.len().ilog2())) as usize
    }
}

/// Returns the word of the filter that `key` uses within its line, and the key's bits.
#[inline]
fn filter_place(key: u64) -> (usize, u64) {
    let bits = (0..BITS).fold(0, |bits, n| bits | 1 << (key >> (6 * n) & 63));
    ((key >> (6 * BITS)) as usize % WORDS, bits)
}

/// Returns the byte within its line whose half holds the size of `key`, and the half's shift in bits.
#[inline]
fn size_place(key: u64) -> (usize, u32) {
    ((key >> 27) as usize % SIZES, 4 * (key >> 26 & 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(from: u32) -> impl Iterator<Item = u32> {
        (from..from + 4000).map(|token| token * 7919)
    }

    #[test]
    fn groups_are_told_from_single_rows() {
        let mut sizes = GroupSizes::new(1 << 15, 1 << 20).unwrap();
        tokens(0).for_each(|token| sizes.add(GroupSizes::key(3, token), 2));
        assert!(tokens(0).all(|token| sizes.size(3, token) == 2));
        let others = |band, from| {
            tokens(from)
                .filter(|&token| sizes.size(band, token) > 1)
                .count()
        };
        let found = others(4, 0) + others(3, 5000);
        assert!(found < 160, "{found} of 8000");
    }

    #[test]
    fn sizes_rise_with_the_rows() {
        let mut sizes = GroupSizes::new(1 << 15, 1 << 20).unwrap();
        let rows = |token: u32| 1usize << (token / 7919 % 20 + 1);
        tokens(0).for_each(|token| sizes.add(GroupSizes::key(0, token), rows(token)));
        let exact = |token: u32| (token / 7919 % 20 + 2).min(15) as u8;
        assert!(tokens(0).all(|token| sizes.size(0, token) >= exact(token)));
        let too_large = tokens(0)
            .filter(|&token| sizes.size(0, token) > exact(token))
            .count();
        assert!(too_large < 800, "{too_large}");
    }

    #[test]
    fn memory_is_limited() {
        let sizes = GroupSizes::new(1 << 30, 1 << 13).unwrap();
        assert_eq!(size_of_val(sizes.lines.as_slice()), 1 << 13);
        GroupSizes::new(0, 0).unwrap().add(GroupSizes::key(0, 0), 2);
    }
}
