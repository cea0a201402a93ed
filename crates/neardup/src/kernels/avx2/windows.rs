//! Shingle hashes of four windows at a time.

use super::super::portable;
use super::{load, multiply, store};
use crate::hash::{FINISH_FACTOR, POLYNOMIAL_BASE};
use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_mul_epu32, _mm256_set1_epi64x, _mm256_slli_epi64,
    _mm256_srli_epi64, _mm256_xor_si256,
};

/// Longer windows than 5 tokens cost less by rolling.
#[target_feature(enable = "avx2")]
pub fn combine_windows(tokens: &[u64], k: usize, out: &mut Vec<u64>) {
    match k {
        1 => windows::<1>(tokens, out),
        2 => windows::<2>(tokens, out),
        3 => windows::<3>(tokens, out),
        4 => windows::<4>(tokens, out),
        5 => windows::<5>(tokens, out),
        _ => portable::combine_windows(tokens, k, out),
    }
}

#[target_feature(enable = "avx2")]
fn windows<const K: usize>(tokens: &[u64], out: &mut Vec<u64>) {
    let begin = out.len();
    let count = tokens.len() + 1 - K;
    out.resize(begin + count, 0);
    let (lanes, rest) = out[begin..].as_chunks_mut::<4>();
    for (i, hashes) in lanes.iter_mut().enumerate() {
        let tokens = &tokens[4 * i..4 * i + 3 + K];
        let mut sum = load(first_lanes(tokens));
        for j in 1..K {
            sum = _mm256_add_epi64(times_base(sum), load(first_lanes(&tokens[j..])));
        }
        store(hashes, finish(sum));
    }
    let done = count - rest.len();
    for (hash, window) in rest.iter_mut().zip(tokens[done..].windows(K)) {
        *hash = crate::hash::combine(window);
    }
}

#[inline]
fn first_lanes(tokens: &[u64]) -> &[u64; 4] {
    tokens.first_chunk().expect("4 windows begin here")
}

#[inline]
#[target_feature(enable = "avx2")]
fn times_base(x: __m256i) -> __m256i {
    let base = _mm256_set1_epi64x(POLYNOMIAL_BASE as i64);
    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), base);
    _mm256_add_epi64(_mm256_mul_epu32(x, base), _mm256_slli_epi64::<32>(high))
}

#[inline]
#[target_feature(enable = "avx2")]
fn finish(x: __m256i) -> __m256i {
    let x = _mm256_xor_si256(x, _mm256_srli_epi64::<32>(x));
    let x = multiply(x, FINISH_FACTOR);
    _mm256_xor_si256(x, _mm256_srli_epi64::<32>(x))
}
