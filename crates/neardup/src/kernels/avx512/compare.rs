//! Equal slots and slot-wise minima, 64 bytes at a time.

use super::super::portable;
use super::{load, store};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpneq_epi8_mask, _mm512_cmpneq_epi16_mask,
    _mm512_cmpneq_epi32_mask, _mm512_mask_storeu_epi32, _mm512_maskz_loadu_epi8,
    _mm512_maskz_loadu_epi32, _mm512_min_epu32, _mm512_or_si512, _mm512_popcnt_epi64,
    _mm512_reduce_add_epi64, _mm512_set1_epi8, _mm512_srli_epi64, _mm512_xor_si512,
};

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,bmi2,popcnt")]
pub fn count_equal(a: &[u8], b: &[u8], slots: usize, slot_bits: u32) -> usize {
    slots
        - match slot_bits {
            32 => differing(a, b, |a, b| _mm512_cmpneq_epi32_mask(a, b).count_ones()),
            16 => differing(a, b, |a, b| _mm512_cmpneq_epi16_mask(a, b).count_ones()),
            8 => differing(a, b, |a, b| _mm512_cmpneq_epi8_mask(a, b).count_ones()),
            1 => differing_fields(a, b, |bits| bits),
            2 => differing_fields(a, b, |bits| {
                let pairs = with_upper::<1>(bits);
                _mm512_and_si512(pairs, _mm512_set1_epi8(0x55))
            }),
            4 => differing_fields(a, b, |bits| {
                let fours = with_upper::<1>(with_upper::<2>(bits));
                _mm512_and_si512(fours, _mm512_set1_epi8(0x11))
            }),
            bits => portable::differing_fields(a, b, bits),
        }
}

/// Returns the number of slots that differ in all vectors; the last is filled up with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn differing(a: &[u8], b: &[u8], count: impl Fn(__m512i, __m512i) -> u32) -> usize {
    let ((a_lanes, a_rest), (b_lanes, b_rest)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
    let lanes = a_lanes.iter().zip(b_lanes);
    let whole: u32 = lanes.map(|(a, b)| count(load(a), load(b))).sum();
    let rest = count(load_bytes(a_rest), load_bytes(b_rest));
    (whole + rest) as usize
}

/// Returns the number of fields that differ in all vectors; the function leaves one bit of each such field.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,bmi2")]
fn differing_fields(a: &[u8], b: &[u8], one_bit_a_field: impl Fn(__m512i) -> __m512i) -> usize {
    let ((a_lanes, a_rest), (b_lanes, b_rest)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
    let ones = |a, b| _mm512_popcnt_epi64(one_bit_a_field(_mm512_xor_si512(a, b)));
    let mut sum = ones(load_bytes(a_rest), load_bytes(b_rest));
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        sum = _mm512_add_epi64(sum, ones(load(a), load(b)));
    }
    _mm512_reduce_add_epi64(sum) as usize
}

/// Combines each bit with the one `PLACES` above it by OR.
#[inline]
#[target_feature(enable = "avx512f")]
fn with_upper<const PLACES: u32>(bits: __m512i) -> __m512i {
    _mm512_or_si512(bits, _mm512_srli_epi64::<PLACES>(bits))
}

/// Loads at most 63 bytes, and zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn load_bytes(bytes: &[u8]) -> __m512i {
    let present = (1 << bytes.len()) - 1;
    // SAFETY: only bytes whose bit is set are read.
    unsafe { _mm512_maskz_loadu_epi8(present, bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,bmi2")]
pub fn merge(slots: &mut [u32], other: &[u32]) {
    let (lanes, rest) = slots.as_chunks_mut::<16>();
    let (other_lanes, other_rest) = other.as_chunks::<16>();
    for (slots, other) in lanes.iter_mut().zip(other_lanes) {
        let lower = _mm512_min_epu32(load(slots), load(other));
        store(slots, lower);
    }
    let present = ((1u32 << rest.len().min(other_rest.len())) - 1) as u16;
    // SAFETY: only elements whose bit is set are read and written, fewer than either slice has.
    unsafe {
        let slots = _mm512_maskz_loadu_epi32(present, rest.as_ptr().cast());
        let other = _mm512_maskz_loadu_epi32(present, other_rest.as_ptr().cast());
        let lower = _mm512_min_epu32(slots, other);
        _mm512_mask_storeu_epi32(rest.as_mut_ptr().cast(), present, lower);
    }
}
