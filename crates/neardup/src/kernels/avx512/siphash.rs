//! SipHash-1-3 of eight tokens at a time (Aumasson, Bernstein, INDOCRYPT 2012).

use crate::hash::Key;
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_andnot_si512, _mm512_cmplt_epu64_mask,
    _mm512_mask_blend_epi64, _mm512_mask_or_epi64, _mm512_or_si512, _mm512_rol_epi64,
    _mm512_set1_epi64, _mm512_slli_epi64, _mm512_sllv_epi64, _mm512_sub_epi64, _mm512_xor_si512,
};

/// The state of eight hashes.
#[derive(Clone, Copy)]
pub struct State {
    v: [__m512i; 4],
}

impl State {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(key: &Key) -> Self {
        let set = |half: u64, ascii: &[u8; 8]| {
            _mm512_set1_epi64((half ^ u64::from_be_bytes(*ascii)) as i64)
        };
        Self {
            v: [
                set(key.k0, b"somepseu"),
                set(key.k1, b"dorandom"),
                set(key.k0, b"lygenera"),
                set(key.k1, b"tedbytes"),
            ],
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

    /// Returns the hashes of eight tokens of at most 15 bytes, given as their first and second 8
    /// bytes, whatever follows them, and their lengths. For longer ones the result means nothing.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn hash(self, first: __m512i, second: __m512i, lengths: __m512i) -> __m512i {
        let ones = _mm512_set1_epi64(-1);
        let bits = _mm512_slli_epi64::<3>(lengths);
        let second_bits = _mm512_sub_epi64(bits, _mm512_set1_epi64(64));
        // Shifts by 64 and more leave 0.
        let first = _mm512_andnot_si512(_mm512_sllv_epi64(ones, bits), first);
        let second = _mm512_andnot_si512(_mm512_sllv_epi64(ones, second_bits), second);
        let end = _mm512_slli_epi64::<56>(lengths);
        let is_short = _mm512_cmplt_epu64_mask(lengths, _mm512_set1_epi64(8));

        let one = self.absorb(_mm512_mask_or_epi64(first, is_short, first, end));
        let two = one.absorb(_mm512_or_si512(second, end));
        let pick = |i: usize| _mm512_mask_blend_epi64(is_short, two.v[i], one.v[i]);
        Self {
            v: [pick(0), pick(1), pick(2), pick(3)],
        }
        .finish()
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn finish(mut self) -> __m512i {
        self.v[2] = _mm512_xor_si512(self.v[2], _mm512_set1_epi64(0xff));
        let [v0, v1, v2, v3] = self.round().round().round().v;
        _mm512_xor_si512(_mm512_xor_si512(v0, v1), _mm512_xor_si512(v2, v3))
    }
}
