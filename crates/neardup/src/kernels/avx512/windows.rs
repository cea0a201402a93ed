//! Shingle hashes of eight windows at a time.

use super::super::portable;
use super::{load, multiply, store};
use crate::hash::{FINISH_FACTOR, POLYNOMIAL_BASE};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_mul_epu32, _mm512_set1_epi64, _mm512_slli_epi64,
    _mm512_srli_epi64, _mm512_xor_si512,
};

/// Longer windows than 8 tokens cost less by rolling.
#[target_feature(enable = "avx512f")]
pub fn combine_windows(tokens: &[u64], k: usize, out: &mut Vec<u64>) {
    match k {
        1 => windows::<1>(tokens, out),
        2 => windows::<2>(tokens, out),
        3 => windows::<3>(tokens, out),
        4 => windows::<4>(tokens, out),
        5 => windows::<5>(tokens, out),
        6 => windows::<6>(tokens, out),
        7 => windows::<7>(tokens, out),
        8 => windows::<8>(tokens, out),
        _ => portable::combine_windows(tokens, k, out),
    }
}

#[target_feature(enable = "avx512f")]
fn windows<const K: usize>(tokens: &[u64], out: &mut Vec<u64>) {
    let begin = out.len();
    let count = tokens.len() + 1 - K;
    out.resize(begin + count, 0);
    let (lanes, rest) = out[begin..].as_chunks_mut::<8>();
    for (i, hashes) in lanes.iter_mut().enumerate() {
        let tokens = &tokens[8 * i..8 * i + 7 + K];
        let mut sum = load(first_lanes(tokens));
        for j in 1..K {
            sum = _mm512_add_epi64(times_base(sum), load(first_lanes(&tokens[j..])));
        }
        store(hashes, finish(sum));
    }
    let done = count - rest.len();
    for (hash, window) in rest.iter_mut().zip(tokens[done..].windows(K)) {
        *hash = crate::hash::combine(window);
    }
}

#[inline]
fn first_lanes(tokens: &[u64]) -> &[u64; 8] {
    tokens.first_chunk().expect("8 windows begin here")
}

#[inline]
#[target_feature(enable = "avx512f")]
fn times_base(x: __m512i) -> __m512i {
    let base = _mm512_set1_epi64(POLYNOMIAL_BASE as i64);
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(x), base);
    _mm512_add_epi64(_mm512_mul_epu32(x, base), _mm512_slli_epi64::<32>(high))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn finish(x: __m512i) -> __m512i {
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<32>(x));
    let x = multiply(x, FINISH_FACTOR);
    _mm512_xor_si512(x, _mm512_srli_epi64::<32>(x))
}
