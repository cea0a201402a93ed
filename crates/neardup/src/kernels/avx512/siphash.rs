//! SipHash-1-3 of eight tokens at a time (Aumasson, Bernstein, INDOCRYPT 2012).

use super::super::siphash::{LONGEST, initial_state};
use crate::hash::Key;
use std::arch::x86_64::*;

/// The state of eight hashes.
#[derive(Clone, Copy)]
pub struct SipStateOfEight {
    v: [__m512i; 4],
}

impl SipStateOfEight {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(key: &Key) -> Self {
        Self {
            v: initial_state(key).map(|half| _mm512_set1_epi64(half as i64)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn round(self) -> Self {
        let [v0, v1, v2, v3] = self.v;
        let v0 = _mm512_add_epi64(v0, v1);
        let v2 = _mm512_add_epi64(v2, v3);
        let v1 = _mm512_xor_si512(_mm512_rol_epi64::<13>(v1), v0);
        let v3 = _mm512_xor_si512(_mm512_rol_epi64::<16>(v3), v2);
        let v0 = _mm512_rol_epi64::<32>(v0);
        let v2 = _mm512_add_epi64(v2, v1);
        let v0 = _mm512_add_epi64(v0, v3);
        let v1 = _mm512_xor_si512(_mm512_rol_epi64::<17>(v1), v2);
        let v3 = _mm512_xor_si512(_mm512_rol_epi64::<21>(v3), v0);
        Self {
            v: [v0, v1, _mm512_rol_epi64::<32>(v2), v3],
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn absorb(mut self, block: __m512i) -> Self {
        self.v[3] = _mm512_xor_si512(self.v[3], block);
        self = self.round();
        self.v[0] = _mm512_xor_si512(self.v[0], block);
        self
    }

    /// Returns the hashes of eight tokens of these lengths. `bytes` returns, for each token, the two blocks of 8 bytes
    /// at a place, with arbitrary bytes after the token's end. The hash of a token longer than [`LONGEST`] is
    /// meaningless.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn hash(self, lengths: __m512i, bytes: impl Fn(usize) -> (__m512i, __m512i)) -> __m512i {
        let mut state = self;
        for place in (0..LONGEST).step_by(16) {
            let (first, second) = bytes(place);
            state = state.absorb_part(first, lengths, place);
            state = state.absorb_part(second, lengths, place + 8);
            let next = _mm512_set1_epi64(place as i64 + 16);
            if _mm512_cmpge_epu64_mask(lengths, next) == 0 {
                break;
            }
        }
        state.finish()
    }

    /// Absorbs the block at `place` for the tokens that reach it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn absorb_part(self, block: __m512i, lengths: __m512i, place: usize) -> Self {
        let left = _mm512_sub_epi64(lengths, _mm512_set1_epi64(place as i64));
        let is_last = _mm512_cmplt_epu64_mask(left, _mm512_set1_epi64(8));
        let is_there = _mm512_cmpge_epi64_mask(left, _mm512_setzero_si512());
        // Shifts by 64 or more leave 0.
        let behind = _mm512_sllv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64::<3>(left));
        let block = _mm512_andnot_si512(behind, block);
        let end = _mm512_slli_epi64::<56>(lengths);
        let next = self.absorb(_mm512_mask_or_epi64(block, is_last, block, end));
        if place == 0 {
            return next;
        }
        let pick = |i: usize| _mm512_mask_blend_epi64(is_there, self.v[i], next.v[i]);
        Self {
            v: [pick(0), pick(1), pick(2), pick(3)],
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn finish(mut self) -> __m512i {
        self.v[2] = _mm512_xor_si512(self.v[2], _mm512_set1_epi64(0xff));
        let [v0, v1, v2, v3] = self.round().round().round().v;
        _mm512_xor_si512(_mm512_xor_si512(v0, v1), _mm512_xor_si512(v2, v3))
    }
}
