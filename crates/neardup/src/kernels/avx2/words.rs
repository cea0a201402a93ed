//! Words between spaces: found 64 bytes at a time, hashed four at a time.

use super::super::siphash::LONGEST;
use super::super::words::{PieceText, Steps, WordLimits, hash_words, positions};
use super::siphash::SipStateOfFour;
use crate::hash::Key;
use bytemuck::cast;
use std::arch::x86_64::*;

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn word_hashes(text: &[u8], key: &Key, out: &mut Vec<u64>) {
    let state = SipStateOfFour::new(key);
    let steps = Steps {
        classify: |block: &[u8; 64]| {
            let halves = block.as_chunks::<32>().0;
            !(u64::from(spaces(&halves[0])) | u64::from(spaces(&halves[1])) << 32)
        },
        positions,
        hash: |source: &PieceText<'_>, limits: &[WordLimits; 4], hashes: &mut [u64; 4]| {
            let lengths = lengths(limits);
            let bytes = |place| two_blocks(source, limits, place);
            *hashes = cast(state.hash(lengths, bytes));
            let is_long = _mm256_cmpgt_epi64(lengths, _mm256_set1_epi64x(LONGEST as i64));
            _mm256_testz_si256(is_long, is_long) == 1
        },
    };
    hash_words(text, key, out, &steps);
}

/// Returns a bit for each of 32 bytes, set if the byte is a space.
#[inline]
#[target_feature(enable = "avx2")]
fn spaces(bytes: &[u8; 32]) -> u32 {
    let is_space = _mm256_cmpeq_epi8(cast(*bytes), _mm256_set1_epi8(b' ' as i8));
    _mm256_movemask_epi8(is_space) as u32
}

/// Returns the two blocks of 8 bytes at `place` of each of four words, with arbitrary bytes after a word's end.
#[inline]
#[target_feature(enable = "avx2")]
fn two_blocks(
    source: &PieceText<'_>,
    limits: &[WordLimits; 4],
    place: usize,
) -> (__m256i, __m256i) {
    let at = |i: usize| {
        let [start, end] = limits[i].map(usize::from);
        cast(*source.bytes((start + place).min(end)))
    };
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
fn lengths(limits: &[WordLimits; 4]) -> __m256i {
    let limits: __m128i = cast(*limits);
    let starts = _mm_and_si128(limits, _mm_set1_epi32(0xffff));
    _mm256_cvtepu32_epi64(_mm_sub_epi32(_mm_srli_epi32::<16>(limits), starts))
}
