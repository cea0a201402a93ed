//! The rounds of a sketch, four shingles at a time.

use super::super::portable::{self, OpenSlots};
use super::multiply_halves;
use crate::hash::slot::{STEP_OF_FACTOR, STEP_OF_SLOT, first_code};
use bytemuck::cast;
use std::arch::x86_64::*;

/// Maximum number of slots whose bitmap of open slots fits into a register.
const SLOTS_IN_REGISTER: usize = 256;

/// Number of shingles that are tested before those that passed are applied: about as many as an article has.
const CHUNK: usize = 320;

/// Minimum number of shingles for the preparation of a round to pay off.
const FEW: usize = 16;

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn sketch(slots: &mut [u32], hashes: &[u64]) {
    let find = |open: &mut OpenSlots, slots: &[u32], round| find_open(open, slots, round);
    if hashes.len() < FEW {
        return portable::sketch_with(slots, hashes, find, portable::later_rounds);
    }
    let mut passed = [0; CHUNK + 4];
    portable::sketch_with(slots, hashes, find, |slots, hashes, rounds, open| {
        for round in rounds {
            later_round(slots, hashes, round, open, &mut passed);
        }
    });
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn later_round(
    slots: &mut [u32],
    hashes: &[u64],
    round: usize,
    open: &OpenSlots,
    passed: &mut [u64; CHUNK + 4],
) {
    for chunk in hashes.chunks(CHUNK) {
        let (lanes, rest) = chunk.as_chunks::<4>();
        let count = if slots.len() <= SLOTS_IN_REGISTER {
            pass::<true>(slots.len(), lanes, round, open, passed)
        } else {
            pass::<false>(slots.len(), lanes, round, open, passed)
        };
        portable::apply(slots, &passed[..count], round);
        portable::apply(slots, rest, round);
    }
}

/// Sets `open` to the slots that were not filled before `round`. Returns false if there are none.
#[inline]
#[target_feature(enable = "avx2")]
fn find_open(open: &mut OpenSlots, slots: &[u32], round: usize) -> bool {
    let (whole, rest) = slots.as_chunks::<32>();
    let from = _mm256_set1_epi32(first_code(round) as i32);
    let mut any = 0;
    for (word, slots) in open.words.iter_mut().zip(whole) {
        *word = slots.as_chunks().0.iter().rev().fold(0, |bits, codes| {
            let codes = cast::<[u32; 8], _>(*codes);
            let is_open = _mm256_cmpeq_epi32(_mm256_max_epu32(codes, from), codes);
            bits << 8 | _mm256_movemask_ps(_mm256_castsi256_ps(is_open)) as u32
        });
        any |= *word;
    }
    let words = &mut open.words[whole.len()..];
    portable::find_open(words, rest, round) || any != 0
}

/// Copies the shingles that the round sends to open slots, and returns their number.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn pass<const IN_REGISTER: bool>(
    slots: usize,
    hashes: &[[u64; 4]],
    round: usize,
    open: &OpenSlots,
    passed: &mut [u64; CHUNK + 4],
) -> usize {
    let test = OpenTestOfFour::<IN_REGISTER>::new(slots, round, open);
    let mut count = 0;
    for x in hashes {
        let x = cast(*x);
        let is_open = test.lanes_to_open_slots(x);
        let halves = cast(HALVES_OF_SET_LANES[is_open % 16]);
        let set_first = cast::<_, [u64; 4]>(_mm256_permutevar8x32_epi32(x, halves));
        passed[count..][..4].copy_from_slice(&set_first);
        count += is_open.count_ones() as usize;
    }
    count
}

/// Tests for shingles that a round sends to open slots.
struct OpenTestOfFour<'a, const IN_REGISTER: bool> {
    slots: __m256i,
    sum_step: __m256i,
    factor_step: __m256i,
    open: &'a OpenSlots,
    first_words: __m256i,
}

impl<'a, const IN_REGISTER: bool> OpenTestOfFour<'a, IN_REGISTER> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(slots: usize, round: usize, open: &'a OpenSlots) -> Self {
        let step = |step: u32| _mm256_set1_epi64x(i64::from(step.wrapping_mul(round as u32)));
        let first_words: &[u32; 8] = open.words.first_chunk().expect("32 words");
        Self {
            slots: _mm256_set1_epi64x(slots as i64),
            sum_step: step(STEP_OF_SLOT),
            factor_step: step(STEP_OF_FACTOR),
            open,
            first_words: cast(*first_words),
        }
    }

    /// Returns a bit for each of four shingles, set if its slot is open.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn lanes_to_open_slots(&self, x: __m256i) -> usize {
        let high = _mm256_srli_epi64::<32>(x);
        let sum = _mm256_xor_si256(_mm256_xor_si256(x, high), self.sum_step);
        let factor = _mm256_xor_si256(high, self.factor_step);
        let factor = _mm256_or_si256(factor, _mm256_set1_epi64x(1));
        let bits = multiply_halves(sum, factor);
        let slot = _mm256_srli_epi64::<32>(multiply_halves(bits, self.slots));

        let last_bit = _mm256_set1_epi64x(31);
        let bit = _mm256_and_si256(slot, last_bit);
        let to_sign = _mm256_xor_si256(bit, _mm256_set1_epi64x(63));
        let signs = _mm256_sllv_epi64(self.words(_mm256_srli_epi64::<5>(slot)), to_sign);
        _mm256_movemask_pd(_mm256_castsi256_pd(signs)) as usize
    }

    /// Returns, in the lower half of every lane, the word of the bitmap whose number is in that lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn words(&self, numbers: __m256i) -> __m256i {
        if IN_REGISTER {
            return _mm256_permutevar8x32_epi32(self.first_words, numbers);
        }
        let words = self.open.words.as_ptr().cast();
        // SAFETY: slots are below 1024, so their words are among the 32; the upper halves are 0.
        unsafe { _mm256_i32gather_epi32::<4>(words, numbers) }
    }
}

/// The numbers of the halves of the set lanes, in order.
static HALVES_OF_SET_LANES: [[u32; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut lane, mut count) = (0, 0);
        while lane < 4 {
            if set >> lane & 1 == 1 {
                table[set][count] = 2 * lane;
                table[set][count + 1] = 2 * lane + 1;
                count += 2;
            }
            lane += 1;
        }
        set += 1;
    }
    table
};
