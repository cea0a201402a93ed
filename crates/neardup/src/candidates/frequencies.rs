//! Approximate counts of the rows that have a token.

use crate::Result;
use crate::hash::{GOLDEN, finish};
use crate::memory::filled;

/// Returns one well-mixed hash of a band number and its token.
#[inline]
pub(super) fn place(band: usize, token: u32) -> u64 {
    finish((((band as u64) << 32) | u64::from(token)).wrapping_mul(GOLDEN))
}

/// Approximate counts of the rows that have a token: at least 1 for one row, and at least 2 for two.
///
/// Counters of 4 bits (Morris, CACM 1978): exact up to 2, then each step stands for twice as many rows, up to 2^13.
/// Tokens that share a counter are counted together.
pub struct Frequencies {
    nibbles: Vec<u8>,
    mask: u64,
    coin: u64,
}

impl Frequencies {
    /// Returns counters for about `tokens` tokens in at most `max_bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(tokens: usize, max_bytes: usize) -> Result<Self> {
        let most = 1usize << max_bytes.max(64).ilog2();
        let bytes = tokens
            .saturating_mul(2)
            .checked_next_power_of_two()
            .map_or(most, |wanted| wanted.clamp(64, most));
        Ok(Self {
            nibbles: filled(0, bytes)?,
            mask: 2 * bytes as u64 - 1,
            coin: GOLDEN,
        })
    }

    /// Adds a row with `token` to the count of the token.
    pub fn add(&mut self, token: u32) {
        let count = self.count(token);
        if count < 2 || (count < 15 && self.heads(count - 1)) {
            let counter = place(0, token) & self.mask;
            self.nibbles[(counter / 2) as usize] += 1 << (4 * (counter % 2));
        }
    }

    /// Returns the counter of `token`, from 0 to 15, which rises with the number of rows that have the token.
    #[inline]
    pub fn count(&self, token: u32) -> u8 {
        let counter = place(0, token) & self.mask;
        (self.nibbles[(counter / 2) as usize] >> (4 * (counter % 2))) & 15
    }

    /// Returns true once in 2^`bits` calls on average, with the same sequence on every run.
    fn heads(&mut self, bits: u8) -> bool {
        self.coin = self.coin.wrapping_add(GOLDEN);
        finish(self.coin) >> (64 - u32::from(bits)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rise_with_the_rows() {
        let mut counts = Frequencies::new(1000, 1 << 20).unwrap();
        let mut last = 0;
        for rows in [1, 2, 100, 10_000] {
            let before = if rows <= 2 { rows - 1 } else { 0 };
            (before..rows).for_each(|_| counts.add(7));
            assert!(counts.count(7) > last);
            last = counts.count(7);
        }
        assert_eq!(counts.count(8), 0);
    }
}
