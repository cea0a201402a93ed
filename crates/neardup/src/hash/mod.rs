//! Keyed hashes of tokens and shingles, and the slots that shingles go to.
//!
//! Scheme 1, frozen by known-answer vectors because stored signatures and band keys depend on it:
//! - key: the first two outputs of SplitMix64 started at the seed;
//! - token hash: SipHash-1-3 of the token's UTF-8 bytes;
//! - shingle hash: `finish(((t0 * C + t1) * C + t2) ...)`, modulo 2^64.

pub mod slot;

use siphasher::sip::SipHasher13;

/// C of the shingle hash. It is 3 modulo 8: C - 1 and C + 1 have few factors of two, so no reordering of tokens cancels
/// many bits. It has 32 bits, so AVX2 multiplies by it in two steps.
pub const POLYNOMIAL_BASE: u64 = 0x9E37_79BB;

/// The factor of [`finish`].
pub const FINISH_FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// The key of every hash of one seed. Nobody without the seed can forge or dodge a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub k0: u64,
    pub k1: u64,
}

impl Key {
    /// Returns the key derived from `seed`.
    pub fn from_seed(seed: i64) -> Self {
        let nth = |n: u64| split_mix((seed as u64).wrapping_add(GOLDEN.wrapping_mul(n)));
        Self {
            k0: nth(1),
            k1: nth(2),
        }
    }

    /// Returns a number that identifies the seed without revealing it.
    pub fn id(&self) -> u64 {
        self.token_hash(b"pg_neardup seed")
    }

    /// Returns the SipHash-1-3 of the bytes of one token.
    pub fn token_hash(&self, token: &[u8]) -> u64 {
        self.hasher().hash(token)
    }

    /// Returns the hasher for a token that comes in parts.
    pub(crate) fn hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.k0, self.k1)
    }

    /// Returns the hash of a set element that is not one of our shingles: the shingle hash of one token.
    pub fn element_hash(&self, element: &[u8]) -> u64 {
        finish(self.token_hash(element))
    }
}

/// The increment of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 2^64 / golden ratio, odd.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The factors of [`split_mix`].
pub const SPLIT_MIX_FACTORS: [u64; 2] = [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];

/// Returns `x` with all bits mixed: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[inline]
pub fn split_mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(SPLIT_MIX_FACTORS[0]);
    x = (x ^ (x >> 27)).wrapping_mul(SPLIT_MIX_FACTORS[1]);
    x ^ (x >> 31)
}

/// Spreads the bits of the polynomial, whose low bits depend only on the low bits of the tokens.
#[inline]
pub fn finish(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(FINISH_FACTOR);
    x ^ (x >> 32)
}

/// Returns the hash of one shingle from its token hashes.
#[inline]
pub fn combine(tokens: &[u64]) -> u64 {
    finish(tokens.iter().fold(0, |acc: u64, t| {
        acc.wrapping_mul(POLYNOMIAL_BASE).wrapping_add(*t)
    }))
}
