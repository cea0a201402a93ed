//! Words between spaces, found 64 bytes at a time.

use super::super::words::{hash_words, positions};
use super::load;
use crate::hash::Key;
use std::arch::x86_64::{_mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set1_epi8};

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn word_hashes(text: &[u8], key: &Key, out: &mut Vec<u64>) {
    let classify = |block: &[u8; 64]| {
        let halves = block.as_chunks::<32>().0;
        !(u64::from(spaces(&halves[0])) | u64::from(spaces(&halves[1])) << 32)
    };
    hash_words::<8>(text, key, out, classify, positions);
}

/// Returns a bit for each of 32 bytes that is a space.
#[inline]
#[target_feature(enable = "avx2")]
fn spaces(bytes: &[u8; 32]) -> u32 {
    let is_space = _mm256_cmpeq_epi8(load(bytes), _mm256_set1_epi8(b' ' as i8));
    _mm256_movemask_epi8(is_space) as u32
}
