//! Blocks of a bit string: strings within a Hamming distance agree in some of their blocks.
//!
//! Of B blocks, at least B - d are intact in strings at distance d (the lemma of [`super::occurrence`]). An index
//! that counts shared keys stores one hash for each block. A plain B-tree stores one key for every subset of B - d
//! blocks, one of which is intact (Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007,
//! section 3).
//!
//! Scheme 1, frozen by known-answer vectors. Block i of B in n bits is [i n / B, (i + 1) n / B); its
//! words are 64 bits from its start, the first bit the highest, the last word shorter. Block hash:
//! start with `split_mix(GOLDEN * (n * 2^16 + B * 2^8 + i))`, then `h = finish(h ^ word)`. The key
//! of a subset starts with `split_mix` of its mask (bit i set: block i is in it) and takes in the
//! hashes of its blocks in order by `h = split_mix(h + hash)`.
#![allow(clippy::disallowed_methods, reason = "at most MAX_KEYS keys of at most MAX_BLOCKS blocks")]

use super::occurrence::Occurrence;
use crate::hash::{GOLDEN, finish, split_mix};
use crate::{Error, Result};
use bitvec::prelude::*;
use std::ops::Range;

/// Maximum number of blocks that a bit string is cut into.
pub const MAX_BLOCKS: usize = 64;

/// Maximum number of keys for one bit string.
pub const MAX_KEYS: usize = 1024;

/// A cut of bit strings of any length into `blocks` consecutive blocks of almost equal length, for lookups of up to
/// `distance` differing bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HammingBlocks {
    pub distance: usize,
    pub blocks: usize,
}

impl HammingBlocks {
    /// Returns a cut into `blocks` blocks for lookups up to `distance`.
    ///
    /// # Errors
    /// `Invalid` unless 0 <= distance < blocks <= [`MAX_BLOCKS`].
    pub fn new(distance: i64, blocks: i64) -> Result<Self> {
        match (usize::try_from(distance), usize::try_from(blocks)) {
            (Ok(distance), Ok(blocks)) if distance < blocks && blocks <= MAX_BLOCKS => {
                Ok(Self { distance, blocks })
            }
            _ => Err(Error::invalid(
                format!("{blocks} blocks cannot serve a Hamming distance of {distance}"),
                format!(
                    "Valid distances are 0 to {}; there must be more blocks than the distance, and at most \
                     {MAX_BLOCKS}.",
                    MAX_BLOCKS - 1
                ),
            )),
        }
    }

    /// Returns the bits of block number `block` in a string of `length` bits. A string with fewer bits than blocks has
    /// empty blocks; the lemma still holds.
    pub fn range(&self, length: usize, block: usize) -> Range<usize> {
        let start = |block| block * length / self.blocks;
        start(block)..start(block + 1)
    }

    /// Returns how many blocks a string at most `distance` from a query shares with it, or `None` if it may share none,
    /// so these blocks cannot find it.
    pub fn occurrence(&self, distance: usize) -> Option<Occurrence> {
        Occurrence::within(self.blocks, distance)
    }

    /// Returns the minimum distance of strings that share `shared` blocks.
    pub fn least_distance(&self, shared: usize) -> usize {
        self.blocks.saturating_sub(shared)
    }

    /// Returns one well-mixed hash for each block. Each hash also covers the length of `bits` and the number of blocks,
    /// so strings of different lengths share none.
    pub fn block_hashes<'a>(
        &self,
        bits: &'a BitSlice<u8, Msb0>,
    ) -> impl Iterator<Item = u64> + use<'a> {
        let this = *self;
        (0..this.blocks).map(move |block| {
            let place = bits.len() << 16 | this.blocks << 8 | block;
            let start = split_mix(GOLDEN.wrapping_mul(place as u64));
            bits[this.range(bits.len(), block)]
                .chunks(64)
                .fold(start, |hash, word| finish(hash ^ word.load_be::<u64>()))
        })
    }

    /// Returns the keys to store: one for every subset of `blocks - distance` blocks.
    ///
    /// # Errors
    /// `Invalid` if there are more than [`MAX_KEYS`].
    pub fn keys(&self, bits: &BitSlice<u8, Msb0>) -> Result<Vec<i64>> {
        self.subset_keys(bits, self.blocks)
    }

    /// Returns the keys to look up for strings at most `distance` apart: every such string shares one of them. Enough
    /// of the first `blocks - self.distance + distance` blocks are intact, so only subsets of these are looked up.
    ///
    /// # Errors
    /// `Invalid` if `distance` is above that of the stored keys, or if there are more than [`MAX_KEYS`] keys.
    pub fn probe(&self, bits: &BitSlice<u8, Msb0>, distance: i64) -> Result<Vec<i64>> {
        match usize::try_from(distance) {
            Ok(distance) if distance <= self.distance => {
                self.subset_keys(bits, self.blocks - self.distance + distance)
            }
            _ => Err(Error::invalid(
                format!(
                    "keys for Hamming distance {} cannot find distance {distance}",
                    self.distance
                ),
                format!("Valid distances are 0 to {}.", self.distance),
            )),
        }
    }

    /// Returns the keys of the subsets of `blocks - distance` blocks among the first `among`.
    fn subset_keys(&self, bits: &BitSlice<u8, Msb0>, among: usize) -> Result<Vec<i64>> {
        let size = self.blocks - self.distance;
        let count = subsets(among, size);
        if count > MAX_KEYS as u128 {
            return Err(Error::invalid(
                format!(
                    "distance {} with {} blocks takes {count} keys for one bit string",
                    self.distance, self.blocks
                ),
                format!("At most {MAX_KEYS} are allowed; use fewer blocks."),
            ));
        }
        let hashes: Vec<u64> = self.block_hashes(bits).collect();
        let mut keys = Vec::with_capacity(count as usize);
        let mut members: Vec<usize> = (0..size).collect();
        loop {
            keys.push(subset_key(&members, &hashes));
            if !next_subset(&mut members, among) {
                return Ok(keys);
            }
        }
    }
}

fn subset_key(members: &[usize], hashes: &[u64]) -> i64 {
    let mask = members.iter().fold(0u64, |mask, block| mask | 1 << block);
    members.iter().fold(split_mix(mask), |key, &block| {
        split_mix(key.wrapping_add(hashes[block]))
    }) as i64
}

/// Returns the number of subsets with `size` elements of a set of `among` elements.
pub(super) fn subsets(among: usize, size: usize) -> u128 {
    (0..size as u128).fold(1, |count, i| count * (among as u128 - i) / (i + 1))
}

/// Changes `members` to the next subset of the numbers below `among`, in lexicographic order. Returns false after the
/// last subset.
fn next_subset(members: &mut [usize], among: usize) -> bool {
    let size = members.len();
    let Some(moving) = (0..size).rfind(|&i| members[i] < among - size + i) else {
        return false;
    };
    members[moving] += 1;
    for i in moving + 1..size {
        members[i] = members[i - 1] + 1;
    }
    true
}
