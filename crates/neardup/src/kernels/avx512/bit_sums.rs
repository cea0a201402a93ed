//! Weighted sums of bit positions, 8 positions at a time.

use super::{load, store};
use std::arch::x86_64::{
    __m512i, _mm_cvtsi64_si128, _mm512_add_epi64, _mm512_and_si512, _mm512_cvtepu8_epi64,
    _mm512_mask_add_epi8, _mm512_mask_add_epi64, _mm512_mullo_epi64, _mm512_set1_epi8,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

/// Planes of the counts of 8 words at a time, as in the portable kernel.
const PLANES: usize = 5;

/// Words that fill a byte's count at most, and the planes.
const MAX_WORDS: usize = 8 * ((1 << PLANES) - 1);

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

/// Counts in planes, then in bytes, one for each position.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub fn add_weight(words: &[u64], weight: i64, sums: &mut [i64; 64]) {
    let mut counts = [_mm512_setzero_si512(); 8];
    for words in words.chunks(MAX_WORDS) {
        for (count, bytes) in counts.iter_mut().zip(count(words).as_chunks::<8>().0) {
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

/// Returns how many of at most [`MAX_WORDS`] have each bit set.
#[target_feature(enable = "avx512f,avx512bw")]
fn count(words: &[u64]) -> [u8; 64] {
    let mut planes = [_mm512_setzero_si512(); PLANES];
    let (blocks, rest) = words.as_chunks::<64>();
    for block in blocks {
        add_block(&mut planes, block);
    }
    if !rest.is_empty() {
        let mut block = [0; 64];
        block[..rest.len()].copy_from_slice(rest);
        add_block(&mut planes, &block);
    }
    let used = words.len().div_ceil(8).ilog2() as usize + 1;
    let mut counts = _mm512_setzero_si512();
    for (plane, bits) in planes[..used].iter().enumerate() {
        let mut words = [0u64; 8];
        store(&mut words, *bits);
        let value = _mm512_set1_epi8(1 << plane);
        for word in words {
            counts = _mm512_mask_add_epi8(counts, word, counts, value);
        }
    }
    let mut bytes = [0; 64];
    store(&mut bytes, counts);
    bytes
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add_block(planes: &mut [__m512i; PLANES], words: &[u64; 64]) {
    let [ones, twos, fours, eights, sixteens] = planes;
    let (words, _) = words.as_chunks::<8>();
    let mut add_words = |i: usize| add3(ones, load(&words[i]), load(&words[i + 1]));
    let (a, b, c, d) = (add_words(0), add_words(2), add_words(4), add_words(6));
    let (a, b) = (add3(twos, a, b), add3(twos, c, d));
    let carry = add3(fours, a, b);
    *sixteens = _mm512_xor_si512(*sixteens, _mm512_and_si512(*eights, carry));
    *eights = _mm512_xor_si512(*eights, carry);
}

/// Adds two vectors to a plane and returns the carries.
#[inline]
#[target_feature(enable = "avx512f")]
fn add3(plane: &mut __m512i, a: __m512i, b: __m512i) -> __m512i {
    const PARITY: i32 = 0b1001_0110;
    const MAJORITY: i32 = 0b1110_1000;
    let carry = _mm512_ternarylogic_epi64::<MAJORITY>(*plane, a, b);
    *plane = _mm512_ternarylogic_epi64::<PARITY>(*plane, a, b);
    carry
}
