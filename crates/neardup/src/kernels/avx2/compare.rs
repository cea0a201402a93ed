//! Equal slots and slot-wise minima, 32 bytes at a time.

use super::super::portable;
use super::{load, store};
use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_cmpeq_epi16, _mm256_cmpeq_epi32, _mm256_madd_epi16,
    _mm256_min_epu32, _mm256_sad_epu8, _mm256_set1_epi16, _mm256_setzero_si256, _mm256_sub_epi8,
    _mm256_sub_epi16, _mm256_sub_epi32,
};

#[target_feature(enable = "avx2,popcnt")]
pub fn count_equal(a: &[u8], b: &[u8], slots: usize, slot_bits: u32) -> usize {
    let ((a_lanes, a_rest), (b_lanes, b_rest)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
    let whole = match slot_bits {
        32 => equal_u32(a_lanes, b_lanes),
        16 => equal_u16(a_lanes, b_lanes),
        8 => equal_u8(a_lanes, b_lanes),
        bits => return slots - portable::differing_fields(a, b, bits),
    };
    let rest_slots = a_rest.len() * 8 / slot_bits as usize;
    whole + portable::count_equal(a_rest, b_rest, rest_slots, slot_bits)
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal_u32(a: &[[u8; 32]], b: &[[u8; 32]]) -> usize {
    let mut counts = _mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        counts = _mm256_sub_epi32(counts, _mm256_cmpeq_epi32(load(a), load(b)));
    }
    sum_u32(counts)
}

/// At most 64 a lane, with 1024 slots.
#[inline]
#[target_feature(enable = "avx2")]
fn equal_u16(a: &[[u8; 32]], b: &[[u8; 32]]) -> usize {
    let mut counts = _mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        counts = _mm256_sub_epi16(counts, _mm256_cmpeq_epi16(load(a), load(b)));
    }
    sum_u32(_mm256_madd_epi16(counts, _mm256_set1_epi16(1)))
}

/// At most 32 a lane, with 1024 slots.
#[inline]
#[target_feature(enable = "avx2")]
fn equal_u8(a: &[[u8; 32]], b: &[[u8; 32]]) -> usize {
    let mut counts = _mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        counts = _mm256_sub_epi8(counts, _mm256_cmpeq_epi8(load(a), load(b)));
    }
    sum_u32(_mm256_sad_epu8(counts, _mm256_setzero_si256()))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_u32(counts: __m256i) -> usize {
    let mut lanes = [0u32; 8];
    store(&mut lanes, counts);
    lanes.iter().sum::<u32>() as usize
}

#[target_feature(enable = "avx2")]
pub fn merge(slots: &mut [u32], other: &[u32]) {
    let (lanes, rest) = slots.as_chunks_mut::<8>();
    let (other_lanes, other_rest) = other.as_chunks::<8>();
    for (slots, other) in lanes.iter_mut().zip(other_lanes) {
        let lower = _mm256_min_epu32(load(slots), load(other));
        store(slots, lower);
    }
    portable::merge(rest, other_rest);
}
