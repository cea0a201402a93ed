//! Words of an ASCII text: found 64 bytes at a time, hashed four at a time.

use super::super::siphash::LONGEST;
use super::super::words::{PieceText, hash_words};
use super::siphash::State;
use super::{load, load_half, store};
use crate::shingle::Key;
use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_set1_epi32, _mm_srli_epi32, _mm_sub_epi32,
    _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi64, _mm256_cvtepu32_epi64,
    _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_m128i, _mm256_set1_epi8,
    _mm256_set1_epi64x, _mm256_sub_epi8, _mm256_testz_si256, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64,
};

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn ascii_word_hashes(text: &[u8], lower: bool, key: &Key, out: &mut Vec<u64>) {
    let case_bit = _mm256_set1_epi8(if lower { 0x20 } else { 0 });
    let state = State::new(key);
    let classify = |from: &[u8; 64], to: &mut [u8; 64]| {
        let (from, to) = (from.as_chunks::<32>().0, to.as_chunks_mut::<32>().0);
        let low = copy(&from[0], &mut to[0], case_bit);
        let high = copy(&from[1], &mut to[1], case_bit);
        u64::from(low) | u64::from(high) << 32
    };
    hash_words(text, key, out, classify, |text, edges, hashes| {
        let (first, second) = first_bytes(text, edges);
        let lengths = lengths(edges);
        store(hashes, state.hash(first, second, lengths));
        let is_long = _mm256_cmpgt_epi64(lengths, _mm256_set1_epi64x(LONGEST as i64));
        _mm256_testz_si256(is_long, is_long) == 1
    });
}

/// Copies 32 bytes, adding `case_bit` to letters, and says which belong to words.
#[inline]
#[target_feature(enable = "avx2")]
fn copy(from: &[u8; 32], to: &mut [u8; 32], case_bit: __m256i) -> u32 {
    let bytes = load(from);
    let lowered = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
    let is_letter = is_within(lowered, b'a', 26);
    let is_digit = is_within(bytes, b'0', 10);
    store(
        to,
        _mm256_or_si256(bytes, _mm256_and_si256(is_letter, case_bit)),
    );
    _mm256_movemask_epi8(_mm256_or_si256(is_letter, is_digit)) as u32
}

/// The first and the second 8 bytes behind each of four starts.
#[inline]
#[target_feature(enable = "avx2")]
fn first_bytes(text: &PieceText, edges: &[u16; 8]) -> (__m256i, __m256i) {
    let at = |i: usize| {
        let bytes = text[usize::from(edges[2 * i])..].first_chunk();
        load_half::<[u8; 16]>(bytes.expect("there is room behind the text"))
    };
    let even = _mm256_set_m128i(at(2), at(0));
    let odd = _mm256_set_m128i(at(3), at(1));
    (
        _mm256_unpacklo_epi64(even, odd),
        _mm256_unpackhi_epi64(even, odd),
    )
}

/// The lengths of four words, from their starts and ends.
#[inline]
#[target_feature(enable = "avx2")]
fn lengths(edges: &[u16; 8]) -> __m256i {
    let edges: __m128i = load_half(edges);
    let starts = _mm_and_si128(edges, _mm_set1_epi32(0xffff));
    _mm256_cvtepu32_epi64(_mm_sub_epi32(_mm_srli_epi32::<16>(edges), starts))
}

/// Ones in the bytes from `first` to `first + count - 1`.
#[inline]
#[target_feature(enable = "avx2")]
fn is_within(bytes: __m256i, first: u8, count: u8) -> __m256i {
    let offset = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first as i8));
    let last = _mm256_set1_epi8((count - 1) as i8);
    _mm256_cmpeq_epi8(_mm256_min_epu8(offset, last), offset)
}
