//! The rounds of a sketch, eight shingles or eight rounds at a time.

use super::super::portable::{self, OpenSlots};
use super::{multiply, multiply_halves};
use crate::hash::slot::{STEP_OF_FACTOR, STEP_OF_SLOT, first_code};
use crate::hash::{GOLDEN, SPLIT_MIX_FACTORS};
use bytemuck::cast;
use std::arch::x86_64::*;
use std::ops::Range;

/// Number of shingles that are tested before those that passed are applied: about as many as an article has.
const CHUNK: usize = 320;

/// Maximum number of shingles for which the lanes are rounds.
const FEW: usize = CHUNK / 8;

#[target_feature(enable = "avx512f,bmi1,bmi2,popcnt")]
pub fn sketch(slots: &mut [u32], hashes: &[u64]) {
    let find = |open: &mut OpenSlots, slots: &[u32], round| find_open(open, slots, round);
    let mut passed = [0; CHUNK + 8];
    portable::sketch_with(slots, hashes, find, |slots, hashes, rounds, open| {
        if hashes.len() <= FEW && rounds.len() > 1 {
            few(slots, hashes, rounds, open, &mut passed);
        } else {
            for round in rounds {
                many(slots, hashes, round, open, &mut passed);
            }
        }
    });
}

/// Sets `open` to the slots that were not filled before `round`. Returns false if there are none.
#[inline]
#[target_feature(enable = "avx512f")]
fn find_open(open: &mut OpenSlots, slots: &[u32], round: usize) -> bool {
    let (whole, rest) = slots.as_chunks::<32>();
    let from = _mm512_set1_epi32(first_code(round) as i32);
    let mut any = 0;
    for (word, slots) in open.words.iter_mut().zip(whole) {
        let halves = slots.as_chunks::<16>().0;
        let bits = |half: &[u32; 16]| u32::from(_mm512_cmpge_epu32_mask(cast(*half), from));
        *word = bits(&halves[0]) | bits(&halves[1]) << 16;
        any |= *word;
    }
    let words = &mut open.words[whole.len()..];
    portable::find_open(words, rest, round) || any != 0
}

/// Performs one round for many shingles. Collects the shingles for open slots before making their codes.
#[inline]
#[target_feature(enable = "avx512f,bmi2,popcnt")]
fn many(
    slots: &mut [u32],
    hashes: &[u64],
    round: usize,
    open: &OpenSlots,
    passed: &mut [u64; CHUNK + 8],
) {
    let rounds = Rounds::new([round; 8]);
    let test = OpenTestOfEight::new(slots.len(), open);
    for chunk in hashes.chunks(CHUNK) {
        let mut count = 0;
        let mut pass = |x, present| {
            let is_open = present & test.is_open(rounds.slots(x, test.slots));
            push(passed, &mut count, x, is_open);
        };
        let (lanes, rest) = chunk.as_chunks::<8>();
        lanes.iter().for_each(|hashes| pass(cast(*hashes), u8::MAX));
        pass(load_rest(rest), !(u8::MAX << rest.len()));
        for hashes in passed[..count.next_multiple_of(8)].as_chunks_mut().0 {
            let x = cast::<[u64; 8], _>(*hashes);
            *hashes = cast(rounds.offers(x, rounds.slots(x, test.slots)));
        }
        apply(slots, &passed[..count]);
    }
}

/// Performs rounds for a few shingles, eight rounds at a time in the lanes.
#[inline]
#[target_feature(enable = "avx512f,bmi2,popcnt")]
fn few(
    slots: &mut [u32],
    hashes: &[u64],
    rounds: Range<usize>,
    open: &OpenSlots,
    offers: &mut [u64; CHUNK + 8],
) {
    let test = OpenTestOfEight::new(slots.len(), open);
    for first in rounds.clone().step_by(8) {
        let eight = Rounds::new(std::array::from_fn(|i| first + i));
        let present = u8::MAX >> (8 - (rounds.end - first).min(8));
        let mut count = 0;
        for x in hashes {
            let x = _mm512_set1_epi64(*x as i64);
            let slots = eight.slots(x, test.slots);
            let is_open = present & test.is_open(slots);
            push(offers, &mut count, eight.offers(x, slots), is_open);
        }
        apply(slots, &offers[..count]);
    }
}

/// Appends the lanes of `x` whose bit is set in `lanes` to `list`.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn push(list: &mut [u64], count: &mut usize, x: __m512i, lanes: u8) {
    let kept: [u64; 8] = cast(_mm512_maskz_compress_epi64(lanes, x));
    list[*count..][..8].copy_from_slice(&kept);
    *count += lanes.count_ones() as usize;
}

/// Applies `offers`, each with a slot in the upper half and a code in the lower half, to `slots`.
#[inline]
fn apply(slots: &mut [u32], offers: &[u64]) {
    for offer in offers {
        let slot = &mut slots[(offer >> 32) as usize];
        *slot = (*slot).min(*offer as u32);
    }
}

/// Loads at most seven hashes, followed by zeros.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn load_rest(hashes: &[u64]) -> __m512i {
    let present = !(u8::MAX << hashes.len());
    // SAFETY: only elements whose bit is set are read.
    unsafe { _mm512_maskz_loadu_epi64(present, hashes.as_ptr().cast()) }
}

/// Tests for slots that a round can still lower.
struct OpenTestOfEight {
    slots: __m512i,
    words: [__m512i; 2],
}

impl OpenTestOfEight {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(slots: usize, open: &OpenSlots) -> Self {
        let halves = open.words.as_chunks::<16>().0;
        Self {
            slots: _mm512_set1_epi64(slots as i64),
            words: [cast(halves[0]), cast(halves[1])],
        }
    }

    /// Returns a bit for each of eight slots, set if the slot is open.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn is_open(&self, slots: __m512i) -> u8 {
        let number = _mm512_srli_epi64::<5>(slots);
        let word = _mm512_permutex2var_epi32(self.words[0], number, self.words[1]);
        let bit = _mm512_rorv_epi32(word, slots);
        _mm512_test_epi64_mask(bit, _mm512_set1_epi64(1))
    }
}

/// Constants for each lane, computed from its round, that determine slots and codes.
struct Rounds {
    sum_step: __m512i,
    factor_step: __m512i,
    offset: __m512i,
    first_code: __m512i,
    value_shift: __m512i,
}

impl Rounds {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(rounds: [usize; 8]) -> Self {
        let times = |step: u32| rounds.map(|round| u64::from(step.wrapping_mul(round as u32)));
        Self {
            sum_step: cast(times(STEP_OF_SLOT)),
            factor_step: cast(times(STEP_OF_FACTOR)),
            offset: cast(rounds.map(|round| GOLDEN.wrapping_mul(round as u64))),
            first_code: cast(rounds.map(|round| u64::from(first_code(round)))),
            value_shift: cast(rounds.map(|round| 32 + if round < 7 { 3u64 } else { 14 })),
        }
    }

    /// Returns the slots to which the rounds send shingles.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn slots(&self, x: __m512i, slots: __m512i) -> __m512i {
        let high = _mm512_srli_epi64::<32>(x);
        let sum = _mm512_xor_si512(_mm512_xor_si512(x, high), self.sum_step);
        let factor = _mm512_xor_si512(high, self.factor_step);
        let factor = _mm512_or_si512(factor, _mm512_set1_epi64(1));
        let bits = multiply_halves(sum, factor);
        _mm512_srli_epi64::<32>(multiply_halves(bits, slots))
    }

    /// Returns the offers of the rounds: the slot in the upper half, the code in the lower half.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn offers(&self, x: __m512i, slots: __m512i) -> __m512i {
        let mixed = split_mix(_mm512_add_epi64(x, self.offset));
        let value = _mm512_srlv_epi64(mixed, self.value_shift);
        let code = _mm512_or_si512(value, self.first_code);
        _mm512_or_si512(code, _mm512_slli_epi64::<32>(slots))
    }
}

/// Applies the finalizer of SplitMix64 to each lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn split_mix(x: __m512i) -> __m512i {
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<30>(x));
    let x = multiply(x, SPLIT_MIX_FACTORS[0]);
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<27>(x));
    let x = multiply(x, SPLIT_MIX_FACTORS[1]);
    _mm512_xor_si512(x, _mm512_srli_epi64::<31>(x))
}
