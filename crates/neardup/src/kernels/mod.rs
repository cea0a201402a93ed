//! The inner loops, for any processor, for AVX2 and for AVX-512, with equal results.
//!
//! Words and sketches are written separately for each. The compiler vectorizes the other loops: they are written once,
//! in [`portable`], and compiled once more for each instruction set. Only AVX-512 folds text with vectors; elsewhere,
//! and if the vectors do not suffice, text is folded code point by code point.
//!
//! The path is chosen when the first kernel runs: the best one for the processor, or the one that the environment
//! variable `NEARDUP_KERNELS` names. Only this module contains `unsafe`.
//!
//! NEON needs no path of its own: every arm64 processor has it, so the compiler uses it for the portable path (`cmeq`,
//! `umin`, `bic` in the assembly).
#![allow(clippy::disallowed_methods, reason = "blocks of a document, or reserved by the caller")]
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bit_sums;
pub mod fold;
mod portable;
mod siphash;
#[cfg(test)]
mod tests;
mod words;

use crate::hash::Key;
use fold::{FoldRows, Folded};
use std::sync::OnceLock;

type FoldRun<T> = unsafe fn(&[u8], bool, &'static FoldRows, &mut [T]) -> Folded;

/// One implementation of every kernel. The ones that [`available`] returns are safe to call, because this processor
/// has their instructions.
pub struct Kernels {
    /// The name by which `NEARDUP_KERNELS` selects these kernels.
    pub name: &'static str,
    fold_words: FoldRun<u8>,
    fold_chars: FoldRun<u32>,
    word_hashes: unsafe fn(&[u8], &Key, &mut Vec<u64>),
    combine_windows: unsafe fn(&[u64], usize, &mut Vec<u64>),
    sketch: unsafe fn(&mut [u32], &[u64]),
    count_equal: unsafe fn(&[u8], &[u8], usize, u32) -> usize,
    merge: unsafe fn(&mut [u32], &[u32]),
    add_where_set: unsafe fn(&[u64], &[i64], &mut [i64; 64]),
    add_weight: unsafe fn(&[u64], i64, &mut [i64; 64]),
}

/// Returns the kernels in use.
#[inline]
pub fn active() -> &'static Kernels {
    static ACTIVE: OnceLock<&Kernels> = OnceLock::new();
    ACTIVE.get_or_init(|| {
        let wanted = std::env::var("NEARDUP_KERNELS").unwrap_or_default();
        let named = available().find(|kernels| kernels.name == wanted);
        named.unwrap_or_else(|| {
            available()
                .next()
                .expect("the portable kernels run anywhere")
        })
    })
}

/// Returns the kernels that this processor can run, the fastest first.
pub fn available() -> impl Iterator<Item = &'static Kernels> {
    #[cfg(target_arch = "x86_64")]
    let vectors = [
        avx512::is_available().then_some(&avx512::KERNELS),
        avx2::is_available().then_some(&avx2::KERNELS),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let vectors = [None];
    vectors.into_iter().flatten().chain([&portable::KERNELS])
}

impl Kernels {
    /// Folds the beginning of `text` to words separated by spaces and writes them to `room`, as far as `room` and the
    /// fast path allow. Returns how far it came.
    pub fn fold_words(
        &self,
        text: &[u8],
        is_after_alone: bool,
        rows: &'static FoldRows,
        room: &mut [u8],
    ) -> Folded {
        // SAFETY: `available` lists only kernels whose instructions this processor has.
        unsafe { (self.fold_words)(text, is_after_alone, rows, room) }
    }

    /// Folds like [`Self::fold_words`], but to characters, as code points, with white space collapsed.
    pub fn fold_chars(
        &self,
        text: &[u8],
        is_after_space: bool,
        rows: &'static FoldRows,
        room: &mut [u32],
    ) -> Folded {
        // SAFETY: as above.
        unsafe { (self.fold_chars)(text, is_after_space, rows, room) }
    }

    /// Appends the token hash of every word of `text` to `out`. A word is a maximal run of bytes that are not spaces.
    pub fn word_hashes(&self, text: &[u8], key: &Key, out: &mut Vec<u64>) {
        // SAFETY: as above.
        unsafe { (self.word_hashes)(text, key, out) };
    }

    /// Appends the shingle hash of every window of `k` tokens to `out`; nothing if there are fewer tokens.
    pub fn combine_windows(&self, tokens: &[u64], k: usize, out: &mut Vec<u64>) {
        assert!(k > 0, "a shingle has at least one token");
        if tokens.len() >= k {
            // SAFETY: as above.
            unsafe { (self.combine_windows)(tokens, k, out) };
        }
    }

    /// Adds shingle `hashes` to the `slots` of a sketch.
    pub fn sketch(&self, slots: &mut [u32], hashes: &[u64]) {
        assert!((1..=crate::hash::slot::MAX_SLOTS).contains(&slots.len()));
        if !hashes.is_empty() {
            // SAFETY: as above.
            unsafe { (self.sketch)(slots, hashes) };
        }
    }

    /// Returns the number of equal slots of two signatures, given `a` and `b`, their slots of `slot_bits` bits as
    /// stored.
    #[inline]
    pub fn count_equal(&self, a: &[u8], b: &[u8], slots: usize, slot_bits: u32) -> usize {
        let bytes = (slots * slot_bits as usize).div_ceil(8);
        assert!(a.len() == bytes && b.len() == bytes);
        // SAFETY: as above.
        unsafe { (self.count_equal)(a, b, slots, slot_bits) }
    }

    /// Lowers each of `slots` to the slot in `other` if that is lower.
    pub fn merge(&self, slots: &mut [u32], other: &[u32]) {
        assert_eq!(slots.len(), other.len());
        // SAFETY: as above.
        unsafe { (self.merge)(slots, other) };
    }

    /// Adds to the sum of each bit the weights of the words that set the bit. `sums` starts with the lowest bit.
    pub fn add_where_set(&self, words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
        assert_eq!(words.len(), weights.len());
        // SAFETY: as above.
        unsafe { (self.add_where_set)(words, weights, sums) };
    }

    /// Adds like [`Self::add_where_set`], with one weight for all words.
    pub fn add_weight(&self, words: &[u64], weight: i64, sums: &mut [i64; 64]) {
        // SAFETY: as above.
        unsafe { (self.add_weight)(words, weight, sums) };
    }
}

/// Returns the first bytes of `bytes`, followed by zeros if there are fewer.
#[inline(always)]
pub(crate) fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    match bytes.first_chunk() {
        Some(first) => *first,
        None => {
            let mut first = [0; N];
            first[..bytes.len()].copy_from_slice(bytes);
            first
        }
    }
}

/// Work whose `run` is always inlined, so that [`vectorized`] can compile it again. A closure is compiled only once
/// for all its calls, without vectors.
pub trait Vectorize {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs `work`, compiled for wider vectors if the active kernels use them.
#[inline]
pub fn vectorized<W: Vectorize>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if active().name != portable::KERNELS.name {
        return avx2::vectorized(work);
    }
    work.run()
}
