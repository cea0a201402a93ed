//! The keys that several rows have.

use super::Counts;
use super::frequencies::place;
use super::tokens::key;
use crate::Result;
use crate::memory::filled;

/// The keys that several rows have, where a row needs to share no more than one: a bit for each key
/// expected. A key that falls on the bit of another one counts as shared, too.
pub struct SharedKeys {
    words: Vec<u64>,
}

impl SharedKeys {
    /// Returns no keys, with room for those of so many tokens in at most `max_bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(tokens: usize, max_bytes: usize) -> Result<Self> {
        let words = (tokens / 64).clamp(1, (max_bytes / size_of::<u64>()).max(1));
        Ok(Self {
            words: filled(0, 1 << words.ilog2())?,
        })
    }

    /// Returns the key of the token of a band: two that are equal are the same token, but for one pair
    /// of different ones in 2^64.
    #[inline]
    pub fn whole_key(band: usize, token: u32) -> u64 {
        place(band, token)
    }

    /// Adds a key, as [`Self::whole_key`] returns it.
    pub fn add(&mut self, whole_key: u64) {
        let (word, bit) = self.place((whole_key >> 32) as u32);
        self.words[word] |= 1 << bit;
    }

    /// Returns the word and the bit of a key, which is well mixed.
    #[inline]
    fn place(&self, key: u32) -> (usize, u32) {
        ((key as usize / 64) & (self.words.len() - 1), key % 64)
    }
}

impl Counts for SharedKeys {
    fn count(&self, band: usize, token: u32) -> u8 {
        let (word, bit) = self.place(key(band, token));
        1 + (self.words[word] >> bit & 1) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_keys_are_told_from_others() {
        let mut shared = SharedKeys::new(1 << 16, 1 << 20).unwrap();
        let tokens = |from: u32| (from..from + 1000).map(|token| token * 7919);
        tokens(0).for_each(|token| shared.add(SharedKeys::whole_key(3, token)));
        assert!(tokens(0).all(|token| shared.count(3, token) == 2));
        let others = |band| {
            tokens(0)
                .filter(|&token| shared.count(band, token) > 1)
                .count()
        };
        assert!(others(4) < 40, "{}", others(4));
        let others = tokens(5000)
            .filter(|&token| shared.count(3, token) > 1)
            .count();
        assert!(others < 40, "{others}");
    }

    #[test]
    fn memory_is_limited() {
        assert_eq!(SharedKeys::new(1 << 30, 1 << 12).unwrap().words.len(), 512);
        assert_eq!(SharedKeys::new(0, 0).unwrap().words.len(), 1);
    }
}
