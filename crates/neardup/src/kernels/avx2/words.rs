//! Words of an ASCII text: found 64 bytes at a time, hashed four at a time.

use super::super::siphash::LONGEST;
use super::super::words::{Limits, Source, Steps, case_bit, hash_words, positions};
use super::siphash::State;
use super::{load, load_half, store};
use crate::hash::Key;
use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_set1_epi32, _mm_srli_epi32, _mm_sub_epi32,
    _mm256_cmpeq_epi8, _mm256_cmpgt_epi64, _mm256_cvtepu32_epi64, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_m128i, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_sub_epi8, _mm256_testz_si256, _mm256_unpackhi_epi64, _mm256_unpacklo_epi64,
};

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn ascii_word_hashes(text: &[u8], lower: bool, key: &Key, out: &mut Vec<u64>) {
    let case_bits = _mm256_set1_epi8(case_bit(lower) as i8);
    let state = State::new(key);
    let steps = Steps {
        classify: |block: &[u8; 64]| {
            let halves = block.as_chunks::<32>().0;
            u64::from(classify(&halves[0])) | u64::from(classify(&halves[1])) << 32
        },
        positions,
        hash: |source: &Source<'_>, limits: &[Limits; 4], hashes: &mut [u64; 4]| {
            let (first, second) = first_bytes(source, limits);
            let lengths = lengths(limits);
            let lower = |bytes| _mm256_or_si256(bytes, case_bits);
            store(hashes, state.hash(lower(first), lower(second), lengths));
            let is_long = _mm256_cmpgt_epi64(lengths, _mm256_set1_epi64x(LONGEST as i64));
            _mm256_testz_si256(is_long, is_long) == 1
        },
    };
    hash_words(text, lower, key, out, &steps);
}

/// Returns a bit for each of 32 bytes that belongs to a word.
#[inline]
#[target_feature(enable = "avx2")]
fn classify(bytes: &[u8; 32]) -> u32 {
    let bytes = load(bytes);
    let is_letter = is_within(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), b'a', 26);
    let is_digit = is_within(bytes, b'0', 10);
    _mm256_movemask_epi8(_mm256_or_si256(is_letter, is_digit)) as u32
}

/// Returns the first and the second 8 bytes behind each of four starts.
#[inline]
#[target_feature(enable = "avx2")]
fn first_bytes(source: &Source<'_>, limits: &[Limits; 4]) -> (__m256i, __m256i) {
    let at = |i: usize| load_half(source.bytes(limits[i][0]));
    let even = _mm256_set_m128i(at(2), at(0));
    let odd = _mm256_set_m128i(at(3), at(1));
    (
        _mm256_unpacklo_epi64(even, odd),
        _mm256_unpackhi_epi64(even, odd),
    )
}

/// Returns the lengths of four words.
#[inline]
#[target_feature(enable = "avx2")]
fn lengths(limits: &[Limits; 4]) -> __m256i {
    let limits: __m128i = load_half(limits);
    let starts = _mm_and_si128(limits, _mm_set1_epi32(0xffff));
    _mm256_cvtepu32_epi64(_mm_sub_epi32(_mm_srli_epi32::<16>(limits), starts))
}

/// Ones in the bytes from `first` to `first + count - 1`.
#[inline]
#[target_feature(enable = "avx2")]
fn is_within(bytes: __m256i, first: u8, count: u8) -> __m256i {
    let offset = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first as i8));
    let last = _mm256_set1_epi8((count - 1) as i8);
    _mm256_cmpeq_epi8(_mm256_min_epu8(offset, last), offset)
}
