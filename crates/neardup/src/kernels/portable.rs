//! The kernels for any processor. All others must give the same results.
//!
//! The compiler vectorizes the always-inlined loops for the instructions of their caller.

use super::bit_sums::{add_weight, add_where_set};
use super::fold::{FoldRows, Folded};
use super::words::{PieceText, Steps, WordLimits, hash_words, positions};
use super::{Kernels, first_bytes, siphash};
use crate::hash::slot::MAX_SLOTS;
use crate::hash::slot::{code, first_code, slot};
use crate::hash::{Key, POLYNOMIAL_BASE, combine, finish};
use crate::memory::copied;
use std::iter::Sum;
use std::ops::Range;

pub static KERNELS: Kernels = Kernels {
    name: "portable",
    fold_words: fold_nothing,
    fold_chars: fold_nothing,
    word_hashes,
    combine_windows: |tokens, k, out| combine_windows(tokens, k, 4, out),
    sketch,
    count_equal,
    merge,
    add_where_set,
    add_weight,
};

/// Folds nothing: leaves the whole text to the caller.
pub fn fold_nothing<T>(_: &[u8], is_after: bool, _: &'static FoldRows, _: &mut [T]) -> Folded {
    Folded {
        is_after,
        ..Folded::default()
    }
}

fn word_hashes(text: &[u8], key: &Key, out: &mut Vec<u64>) {
    let hash = |source: &PieceText<'_>, limits: &[WordLimits; 4], hashes: &mut [u64; 4]| {
        let mut longest = 0;
        for (limits, hash) in limits.iter().zip(hashes) {
            let [start, end] = limits.map(usize::from);
            *hash = siphash::hash(key, end - start, |place| {
                let bytes = source.bytes(start + place).first_chunk();
                u64::from_le_bytes(*bytes.expect("16 bytes"))
            });
            longest = longest.max(end - start);
        }
        longest <= siphash::LONGEST
    };
    let steps = Steps {
        classify,
        positions,
        hash,
    };
    hash_words(text, key, out, &steps);
}

/// Returns a mask with a bit for each byte that is not a space. Has no branches, so that the compiler uses vectors.
fn classify(block: &[u8; 64]) -> u64 {
    let is_word = block.map(|byte| u8::from(byte != b' '));
    let bytes = is_word.as_chunks().0.iter().enumerate();
    // The highest byte of the product collects the lowest bits of the bytes.
    bytes.fold(0, |bits, (i, ones)| {
        let gathered = u64::from_le_bytes(*ones).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits | gathered << (8 * i)
    })
}

/// Appends the hash of every window of `k` tokens to `out`. Combines windows of up to `longest` tokens (at most 8) one
/// by one; for longer windows, a rolling hash is faster.
#[inline(always)]
pub fn combine_windows(tokens: &[u64], k: usize, longest: usize, out: &mut Vec<u64>) {
    match k {
        _ if k > longest => roll(tokens, k, out),
        1 => combine_each::<1>(tokens, out),
        2 => combine_each::<2>(tokens, out),
        3 => combine_each::<3>(tokens, out),
        4 => combine_each::<4>(tokens, out),
        5 => combine_each::<5>(tokens, out),
        6 => combine_each::<6>(tokens, out),
        7 => combine_each::<7>(tokens, out),
        _ => combine_each::<8>(tokens, out),
    }
}

#[inline(always)]
fn combine_each<const K: usize>(tokens: &[u64], out: &mut Vec<u64>) {
    out.extend(tokens.array_windows::<K>().map(|window| combine(window)));
}

fn roll(tokens: &[u64], k: usize, out: &mut Vec<u64>) {
    let append = |hash: u64, token: u64| hash.wrapping_mul(POLYNOMIAL_BASE).wrapping_add(token);
    let oldest_factor = POLYNOMIAL_BASE.wrapping_pow(k as u32);
    let (first, rest) = tokens.split_at(k);
    let mut hash = first.iter().copied().fold(0, append);
    out.push(finish(hash));
    out.extend(rest.iter().zip(tokens).map(|(&newest, &oldest)| {
        hash = append(hash, newest).wrapping_sub(oldest.wrapping_mul(oldest_factor));
        finish(hash)
    }));
}

fn sketch(slots: &mut [u32], hashes: &[u64]) {
    let find =
        |open: &mut OpenSlots, slots: &[u32], round| find_open(&mut open.words, slots, round);
    sketch_with(slots, hashes, find, later_rounds);
}

/// Distinct shingles leave one slot in 10^6 open after this many shingles per slot. If slots are still open then, the
/// shingles repeat, as in a repetitive text, or are few.
const REPEATS_SEEN: usize = 14;

/// Fills the slots of a sketch. `find` finds the open slots; `later_rounds` runs a range of rounds.
#[inline(always)]
pub fn sketch_with(
    slots: &mut [u32],
    hashes: &[u64],
    find: impl Fn(&mut OpenSlots, &[u32], usize) -> bool,
    mut later_rounds: impl FnMut(&mut [u32], &[u64], Range<usize>, &OpenSlots),
) {
    round_zero(slots, hashes);
    let mut open = OpenSlots::default();
    let (mut hashes, mut distinct) = (hashes, Vec::new());
    let mut round = 1;
    while round < slots.len() {
        if !find(&mut open, slots, round) {
            return;
        }
        if distinct.is_empty() && round * hashes.len() > REPEATS_SEEN * slots.len() {
            // If there is no memory for the copy, the rounds just take longer.
            if let Ok(copy) = copied(hashes) {
                distinct = copy;
                distinct.sort_unstable();
                distinct.dedup();
                hashes = &distinct;
            }
        }
        // A slot filled in the meantime counts as open for a few more rounds, which cannot lower it.
        let rounds = 2 * slots.len() / hashes.len();
        // Whole vectors of eight rounds.
        let rounds = if rounds > 4 {
            rounds.next_multiple_of(8)
        } else {
            rounds
        };
        let rounds = rounds.clamp(1, slots.len() - round);
        later_rounds(slots, hashes, round..round + rounds, &open);
        round += rounds;
    }
    last_rounds(slots, hashes);
}

/// Runs round 0, which sends every shingle to its slot. Has no branches.
#[inline(always)]
fn round_zero(slots: &mut [u32], hashes: &[u64]) {
    for &x in hashes {
        let slot = slot(x, 0, slots.len());
        slots[slot] = slots[slot].min(code(x, 0));
    }
}

/// The slots that a round can still lower, as a bitmap.
#[derive(Default)]
pub struct OpenSlots {
    pub words: [u32; MAX_SLOTS / 32],
}

impl OpenSlots {
    #[inline]
    fn contains(&self, slot: usize) -> bool {
        self.words[slot / 32] >> (slot % 32) & 1 == 1
    }
}

/// Sets `words`, a part of the bitmap, to the `slots` that were not filled before `round`. Returns false if there are
/// none.
pub fn find_open(words: &mut [u32], slots: &[u32], round: usize) -> bool {
    let from = first_code(round);
    let mut any = 0;
    for (word, slots) in words.iter_mut().zip(slots.chunks(32)) {
        let slots = slots.iter().rev();
        *word = slots.fold(0, |bits, &code| bits << 1 | u32::from(code >= from));
        any |= *word;
    }
    any != 0
}

/// Runs `rounds` shingle by shingle. The vector kernels first collect the shingles for open slots without branches,
/// which does not pay off here.
pub fn later_rounds(slots: &mut [u32], hashes: &[u64], rounds: Range<usize>, open: &OpenSlots) {
    for round in rounds {
        for &x in hashes {
            let slot = slot(x, round, slots.len());
            if open.contains(slot) {
                slots[slot] = slots[slot].min(code(x, round));
            }
        }
    }
}

/// Runs a later `round`. Slots that are not open stay the same.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn apply(slots: &mut [u32], hashes: &[u64], round: usize) {
    for &x in hashes {
        let slot = slot(x, round, slots.len());
        slots[slot] = slots[slot].min(code(x, round));
    }
}

/// Runs the last `slots.len()` rounds. Each fills one slot with the lowest code of all shingles.
fn last_rounds(slots: &mut [u32], hashes: &[u64]) {
    let rounds = slots.len();
    for (i, slot) in slots.iter_mut().enumerate() {
        let round = rounds + i;
        if *slot >= first_code(round) {
            let lowest = hashes.iter().map(|&x| code(x, round)).min();
            *slot = (*slot).min(lowest.expect("there are shingles"));
        }
    }
}

#[inline(always)]
pub fn count_equal(a: &[u8], b: &[u8], slots: usize, slot_bits: u32) -> usize {
    match slot_bits {
        32 => equal_chunks::<4, u32>(a, b),
        16 => equal_chunks::<2, u16>(a, b),
        8 => equal_chunks::<1, u8>(a, b),
        // The unused bits of the last byte are 0 on both sides, unless the bytes are damaged.
        1 => slots.saturating_sub(differing_words(a, b, |word| word)),
        2 => {
            let one_bit_of_two = |word: u64| (word | word >> 1) & 0x5555_5555_5555_5555;
            slots.saturating_sub(differing_words(a, b, one_bit_of_two))
        }
        _ => {
            let one_bit_of_four = |word: u64| {
                let pairs = word | word >> 2;
                (pairs | pairs >> 1) & 0x1111_1111_1111_1111
            };
            slots.saturating_sub(differing_words(a, b, one_bit_of_four))
        }
    }
}

/// Returns the number of equal chunks of `N` bytes of `a` and `b`. Counters are as wide as chunks, so that a vector
/// holds as many of each.
#[inline(always)]
fn equal_chunks<const N: usize, C>(a: &[u8], b: &[u8]) -> usize
where
    C: From<bool> + Sum + Into<u32>,
{
    let (a, b) = (a.as_chunks::<N>().0, b.as_chunks::<N>().0);
    let most = 1 << (8 * N - 1);
    let parts = a.chunks(most).zip(b.chunks(most));
    let counts = parts.map(|(a, b)| a.iter().zip(b).map(|(a, b)| C::from(a == b)).sum::<C>());
    counts.map(|count| count.into() as usize).sum()
}

/// Returns the number of fields in which `a` and `b` differ. `one_bit_a_field` reduces the differing bits of a word to
/// one per field.
#[inline(always)]
fn differing_words(a: &[u8], b: &[u8], one_bit_a_field: impl Fn(u64) -> u64) -> usize {
    let differing = |a: &[u8; 8], b: &[u8; 8]| {
        one_bit_a_field(u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones()
    };
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let whole: u32 = a.iter().zip(b).map(|(a, b)| differing(a, b)).sum();
    let rest = match a_rest {
        [] => 0,
        _ => differing(&first_bytes(a_rest), &first_bytes(b_rest)),
    };
    (whole + rest) as usize
}

#[inline(always)]
pub fn merge(slots: &mut [u32], other: &[u32]) {
    for (slot, &code) in slots.iter_mut().zip(other) {
        *slot = (*slot).min(code);
    }
}
