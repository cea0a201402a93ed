//! Words between spaces, found 64 bytes at a time.

use super::super::words::{Positions, hash_words};
use super::{load, store};
use crate::hash::Key;
use std::arch::x86_64::{
    _mm512_add_epi16, _mm512_castsi512_si256, _mm512_cmpneq_epi8_mask, _mm512_cvtepu8_epi16,
    _mm512_extracti64x4_epi64, _mm512_maskz_compress_epi8, _mm512_set1_epi8, _mm512_set1_epi16,
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn word_hashes(text: &[u8], key: &Key, out: &mut Vec<u64>) {
    let spaces = _mm512_set1_epi8(b' ' as i8);
    let classify = |block: &[u8; 64]| _mm512_cmpneq_epi8_mask(load(block), spaces);
    let positions = |bits: u64, from: u16, out: &mut Positions| {
        store_positions(bits, from, out);
        bits.count_ones() as usize
    };
    hash_words::<8>(text, key, out, classify, positions);
}

/// The positions of the set bits, followed by anything.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
fn store_positions(bits: u64, from: u16, out: &mut Positions) {
    let all: [u8; 64] = std::array::from_fn(|i| i as u8);
    let positions = _mm512_maskz_compress_epi8(bits, load(&all));
    let (halves, _) = out.as_chunks_mut::<32>();
    let from = _mm512_set1_epi16(from as i16);
    let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions));
    let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(positions));
    store(&mut halves[0], _mm512_add_epi16(low, from));
    store(&mut halves[1], _mm512_add_epi16(high, from));
}
