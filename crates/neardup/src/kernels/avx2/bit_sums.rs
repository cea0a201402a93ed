//! Weighted sums of bit positions, 4 positions at a time.

use super::super::bit_sums::add_planes;
use super::{load, store};
use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_cmpeq_epi64, _mm256_set1_epi64x,
};

/// Sums held in registers at a time: 32 positions.
const VECTORS: usize = 8;

#[target_feature(enable = "avx2")]
pub fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    let (halves, _) = sums.as_chunks_mut::<{ 4 * VECTORS }>();
    for (half, sums) in halves.iter_mut().enumerate() {
        add_half(words, weights, 32 * half as u32, sums);
    }
}

#[target_feature(enable = "avx2")]
pub fn add_weight(words: &[u64], weight: i64, sums: &mut [i64; 64]) {
    add_planes(words, weight, |planes, weights| {
        add_where_set(planes, weights, sums);
    });
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_half(words: &[u64], weights: &[i64], first: u32, sums: &mut [i64; 4 * VECTORS]) {
    let (stored, _) = sums.as_chunks_mut::<4>();
    let mut held: [__m256i; VECTORS] = std::array::from_fn(|i| load(&stored[i]));
    for (word, weight) in words.iter().zip(weights) {
        let word = _mm256_set1_epi64x((word >> first) as i64);
        let weight = _mm256_set1_epi64x(*weight);
        for (i, sums) in held.iter_mut().enumerate() {
            let bit = 1i64 << (4 * i);
            let position = load(&[bit, bit << 1, bit << 2, bit << 3]);
            let is_set = _mm256_cmpeq_epi64(_mm256_and_si256(word, position), position);
            *sums = _mm256_add_epi64(*sums, _mm256_and_si256(is_set, weight));
        }
    }
    for (stored, held) in stored.iter_mut().zip(held) {
        store(stored, held);
    }
}
