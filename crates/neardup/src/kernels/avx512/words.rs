//! Words between spaces: found 64 bytes at a time, hashed eight at a time.

use super::super::siphash::LONGEST;
use super::super::words::{PieceText, Positions, Steps, WordLimits, hash_words};
use super::siphash::SipStateOfEight;
use crate::hash::Key;
use bytemuck::cast;
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn word_hashes(text: &[u8], key: &Key, out: &mut Vec<u64>) {
    let spaces = _mm512_set1_epi8(b' ' as i8);
    let state = SipStateOfEight::new(key);
    let steps = Steps {
        classify: |block: &[u8; 64]| _mm512_cmpneq_epi8_mask(cast(*block), spaces),
        positions: |bits: u64, from: u16, out: &mut Positions| {
            store_positions(bits, from, out);
            bits.count_ones() as usize
        },
        hash: |source: &PieceText<'_>, limits: &[WordLimits; 8], hashes: &mut [u64; 8]| {
            let lengths = lengths(limits);
            let bytes = |place| two_blocks(source, limits, place);
            *hashes = cast(state.hash(lengths, bytes));
            _mm512_cmpgt_epu64_mask(lengths, _mm512_set1_epi64(LONGEST as i64)) == 0
        },
    };
    hash_words(text, key, out, &steps);
}

/// Writes the positions of the set bits of `bits`, plus `from`, to `out`. Arbitrary numbers follow them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
fn store_positions(bits: u64, from: u16, out: &mut Positions) {
    let all: [u8; 64] = std::array::from_fn(|i| i as u8);
    let positions = _mm512_maskz_compress_epi8(bits, cast(all));
    let (halves, _) = out.as_chunks_mut::<32>();
    let from = _mm512_set1_epi16(from as i16);
    let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions));
    let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(positions));
    halves[0] = cast(_mm512_add_epi16(low, from));
    halves[1] = cast(_mm512_add_epi16(high, from));
}

/// Returns the two blocks of 8 bytes at `place` of each of eight words, with arbitrary bytes after a word's end.
#[inline]
#[target_feature(enable = "avx512f")]
fn two_blocks(
    source: &PieceText<'_>,
    limits: &[WordLimits; 8],
    place: usize,
) -> (__m512i, __m512i) {
    let at = |i: usize| {
        let [start, end] = limits[i].map(usize::from);
        cast(*source.bytes((start + place).min(end)))
    };
    let four = |first: usize| {
        let bytes = _mm512_castsi128_si512(at(first));
        let bytes = _mm512_inserti32x4::<1>(bytes, at(first + 2));
        let bytes = _mm512_inserti32x4::<2>(bytes, at(first + 4));
        _mm512_inserti32x4::<3>(bytes, at(first + 6))
    };
    let (even, odd) = (four(0), four(1));
    (
        _mm512_unpacklo_epi64(even, odd),
        _mm512_unpackhi_epi64(even, odd),
    )
}

/// Returns the lengths of eight words.
#[inline]
#[target_feature(enable = "avx512f")]
fn lengths(limits: &[WordLimits; 8]) -> __m512i {
    let limits = cast(*limits);
    let starts = _mm256_and_si256(limits, _mm256_set1_epi32(0xffff));
    _mm512_cvtepu32_epi64(_mm256_sub_epi32(_mm256_srli_epi32::<16>(limits), starts))
}
