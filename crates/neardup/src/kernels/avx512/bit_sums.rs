//! Weighted sums of bit positions, 8 positions at a time.

use super::{load, store};
use std::arch::x86_64::{
    __m512i, _mm_cvtsi64_si128, _mm512_add_epi64, _mm512_cvtepu8_epi64, _mm512_mask_add_epi8,
    _mm512_mask_add_epi64, _mm512_mullo_epi64, _mm512_set1_epi8, _mm512_set1_epi64,
    _mm512_setzero_si512,
};

/// Words that a byte can count.
const MAX_COUNT: usize = 255;

#[target_feature(enable = "avx512f")]
pub fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    let (stored, _) = sums.as_chunks_mut::<8>();
    let mut held: [__m512i; 8] = std::array::from_fn(|i| load(&stored[i]));
    for (word, weight) in words.iter().zip(weights) {
        let weight = _mm512_set1_epi64(*weight);
        for (sums, is_set) in held.iter_mut().zip(word.to_le_bytes()) {
            *sums = _mm512_mask_add_epi64(*sums, is_set, *sums, weight);
        }
    }
    for (stored, held) in stored.iter_mut().zip(held) {
        store(stored, held);
    }
}

/// Counts in bytes, one for each position: 1 cycle a word.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub fn add_weight(words: &[u64], weight: i64, sums: &mut [i64; 64]) {
    let mut counts = [_mm512_setzero_si512(); 8];
    for words in words.chunks(MAX_COUNT) {
        let mut bytes = _mm512_setzero_si512();
        for word in words {
            bytes = _mm512_mask_add_epi8(bytes, *word, bytes, _mm512_set1_epi8(1));
        }
        let mut stored = [0u8; 64];
        store(&mut stored, bytes);
        for (count, bytes) in counts.iter_mut().zip(stored.as_chunks::<8>().0) {
            let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*bytes));
            *count = _mm512_add_epi64(*count, _mm512_cvtepu8_epi64(bytes));
        }
    }
    let weight = _mm512_set1_epi64(weight);
    for (sums, count) in sums.as_chunks_mut::<8>().0.iter_mut().zip(counts) {
        let sum = _mm512_add_epi64(load(sums), _mm512_mullo_epi64(count, weight));
        store(sums, sum);
    }
}
