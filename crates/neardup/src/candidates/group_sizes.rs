//! The keys that several rows have, and how many have them.

use super::Counts;
use super::frequencies::place;
use crate::Result;
use crate::memory::filled;

/// Bits of a word that stand for a key.
const BITS: u32 = 4;

/// The sizes of the groups of rows that have one token, from 2 rows on, by powers of 2.
///
/// A token that one row has is told from the others by a Bloom filter, all of whose bits for a token
/// lie in one word (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007);
/// sizes of groups that fall on one place are taken for the largest of them. Unlike counters, they do
/// not depend on the order of the rows. Places ascend with the keys, so that groups added in the order
/// of their keys are added from one end to the other.
pub struct GroupSizes {
    filter: Vec<u64>,
    /// Two sizes a byte.
    sizes: Vec<u8>,
}

impl GroupSizes {
    /// Returns no groups, with room for those of that many tokens in at most `max_bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(tokens: usize, max_bytes: usize) -> Result<Self> {
        let bytes = (tokens / 4).clamp(64, (max_bytes / 2).max(64));
        let bytes = 1 << bytes.ilog2();
        Ok(Self {
            filter: filled(0, bytes / size_of::<u64>())?,
            sizes: filled(0, bytes)?,
        })
    }

    /// Returns the key of the token of a band; different tokens share it with a probability of 2^-64.
    #[inline]
    pub fn key(band: usize, token: u32) -> u64 {
        place(band, token)
    }

    /// Adds the key of a group of two rows at least.
    pub fn add(&mut self, key: u64, rows: usize) {
        let size = rows.ilog2().min(14) as u8 + 1;
        let (word, bits) = self.filter_place(key);
        self.filter[word] |= bits;
        let (byte, shift) = self.size_place(key);
        if size > self.sizes[byte] >> shift & 15 {
            self.sizes[byte] = self.sizes[byte] & !(15 << shift) | size << shift;
        }
    }

    /// Returns the word of a key in the filter, and its bits.
    #[inline]
    fn filter_place(&self, key: u64) -> (usize, u64) {
        let bits = (0..BITS).fold(0, |bits, n| bits | 1 << (key >> (6 * n) & 63));
        (highest(key, self.filter.len()), bits)
    }

    /// Returns the byte of a key among the sizes, and how far its half is shifted.
    #[inline]
    fn size_place(&self, key: u64) -> (usize, u32) {
        let place = highest(key, 2 * self.sizes.len());
        (place / 2, 4 * (place % 2) as u32)
    }
}

/// Returns the highest bits of a key, as a place among `places`, a power of 2.
#[inline]
fn highest(key: u64, places: usize) -> usize {
    (key >> (64 - places.ilog2())) as usize
}

impl Counts for GroupSizes {
    fn count(&self, band: usize, token: u32) -> u8 {
        let key = Self::key(band, token);
        let (word, bits) = self.filter_place(key);
        if self.filter[word] & bits != bits {
            return 1;
        }
        let (byte, shift) = self.size_place(key);
        (self.sizes[byte] >> shift & 15).max(2)
    }
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
        assert!(tokens(0).all(|token| sizes.count(3, token) == 2));
        let others = |band, from| {
            tokens(from)
                .filter(|&token| sizes.count(band, token) > 1)
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
        assert!(tokens(0).all(|token| sizes.count(0, token) >= exact(token)));
        let too_large = tokens(0)
            .filter(|&token| sizes.count(0, token) > exact(token))
            .count();
        assert!(too_large < 800, "{too_large}");
    }

    #[test]
    fn memory_is_limited() {
        let sizes = GroupSizes::new(1 << 30, 1 << 13).unwrap();
        assert_eq!((sizes.filter.len(), sizes.sizes.len()), (512, 4096));
        GroupSizes::new(0, 0).unwrap().add(GroupSizes::key(0, 0), 2);
    }
}
