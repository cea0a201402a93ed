//! SipHash-1-3 of four tokens at a time (Aumasson, Bernstein, INDOCRYPT 2012).

use super::super::siphash::{LONGEST, initial_state};
use crate::hash::Key;
use std::arch::x86_64::*;

/// The state of four hashes.
#[derive(Clone, Copy)]
pub struct SipStateOfFour {
    v: [__m256i; 4],
}

impl SipStateOfFour {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn new(key: &Key) -> Self {
        Self {
            v: initial_state(key).map(|half| _mm256_set1_epi64x(half as i64)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn round(self) -> Self {
        let [v0, v1, v2, v3] = self.v;
        let v0 = _mm256_add_epi64(v0, v1);
        let v2 = _mm256_add_epi64(v2, v3);
        let v1 = _mm256_xor_si256(rotate::<13, 51>(v1), v0);
        let v3 = _mm256_xor_si256(rotate::<16, 48>(v3), v2);
        let v0 = rotate_32(v0);
        let v2 = _mm256_add_epi64(v2, v1);
        let v0 = _mm256_add_epi64(v0, v3);
        let v1 = _mm256_xor_si256(rotate::<17, 47>(v1), v2);
        let v3 = _mm256_xor_si256(rotate::<21, 43>(v3), v0);
        Self {
            v: [v0, v1, rotate_32(v2), v3],
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn absorb(mut self, block: __m256i) -> Self {
        self.v[3] = _mm256_xor_si256(self.v[3], block);
        self = self.round();
        self.v[0] = _mm256_xor_si256(self.v[0], block);
        self
    }

    /// Returns the hashes of four tokens of these lengths. `bytes` returns, for each token, the two blocks of 8 bytes
    /// at a place, with arbitrary bytes after the token's end. The hash of a token longer than [`LONGEST`] is
    /// meaningless.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn hash(self, lengths: __m256i, bytes: impl Fn(usize) -> (__m256i, __m256i)) -> __m256i {
        let mut state = self;
        for place in (0..LONGEST).step_by(16) {
            let (first, second) = bytes(place);
            state = state.absorb_part(first, lengths, place);
            state = state.absorb_part(second, lengths, place + 8);
            let goes_on = _mm256_cmpgt_epi64(lengths, _mm256_set1_epi64x(place as i64 + 15));
            if _mm256_testz_si256(goes_on, goes_on) == 1 {
                break;
            }
        }
        state.finish()
    }

    /// Absorbs the block at `place` for the tokens that reach it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn absorb_part(self, block: __m256i, lengths: __m256i, place: usize) -> Self {
        let left = _mm256_sub_epi64(lengths, _mm256_set1_epi64x(place as i64));
        let is_last = _mm256_cmpgt_epi64(_mm256_set1_epi64x(8), left);
        let is_there = _mm256_cmpgt_epi64(left, _mm256_set1_epi64x(-1));
        // Shifts by 64 or more leave 0.
        let behind = _mm256_sllv_epi64(_mm256_set1_epi64x(-1), _mm256_slli_epi64::<3>(left));
        let block = _mm256_andnot_si256(behind, block);
        let end = _mm256_and_si256(is_last, _mm256_slli_epi64::<56>(lengths));
        let next = self.absorb(_mm256_or_si256(block, end));
        if place == 0 {
            return next;
        }
        let pick = |i: usize| _mm256_blendv_epi8(self.v[i], next.v[i], is_there);
        Self {
            v: [pick(0), pick(1), pick(2), pick(3)],
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish(mut self) -> __m256i {
        self.v[2] = _mm256_xor_si256(self.v[2], _mm256_set1_epi64x(0xff));
        let [v0, v1, v2, v3] = self.round().round().round().v;
        _mm256_xor_si256(_mm256_xor_si256(v0, v1), _mm256_xor_si256(v2, v3))
    }
}

/// Rotates each lane to the left by `LEFT` bits. `RIGHT` is 64 - `LEFT`.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi64::<LEFT>(x), _mm256_srli_epi64::<RIGHT>(x))
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_32(x: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(x)
}
