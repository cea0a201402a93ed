//! Weighted sums of bit positions, 8 positions at a time.

use super::{load, store};
use std::arch::x86_64::{__m512i, _mm512_mask_add_epi64, _mm512_set1_epi64};

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
