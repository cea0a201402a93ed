//! The kernels for x86-64 processors with AVX2, BMI and POPCNT (Intel from 2013, AMD from 2015).

mod siphash;
mod sketch;
mod words;

use super::{Kernels, Vectorize, bit_sums, portable};
use std::arch::x86_64::__m256i;

/// Returns whether this processor has the instructions of [`KERNELS`].
pub fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// The kernels with AVX2, only for processors on which [`is_available`] is true.
pub static KERNELS: Kernels = Kernels {
    name: "avx2",
    fold_words: portable::fold_nothing,
    fold_chars: portable::fold_nothing,
    word_hashes: words::word_hashes,
    combine_windows,
    sketch: sketch::sketch,
    count_equal,
    merge,
    add_where_set,
    add_weight,
};

pub fn vectorized<W: Vectorize>(work: W) -> W::Output {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn call<W: Vectorize>(work: W) -> W::Output {
        work.run()
    }
    // SAFETY: kernels other than the portable ones are in use only if the processor has the features.
    unsafe { call(work) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn combine_windows(tokens: &[u64], k: usize, out: &mut Vec<u64>) {
    portable::combine_windows(tokens, k, 5, out);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn count_equal(a: &[u8], b: &[u8], slots: usize, slot_bits: u32) -> usize {
    portable::count_equal(a, b, slots, slot_bits)
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn merge(slots: &mut [u32], other: &[u32]) {
    portable::merge(slots, other);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    bit_sums::add_where_set(words, weights, sums);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn add_weight(words: &[u64], weight: i64, sums: &mut [i64; 64]) {
    bit_sums::add_weight(words, weight, sums);
}

/// Multiplies the lower halves of the lanes with the single instruction for this. From the corresponding intrinsic, the
/// compiler makes 64-bit products, which take three such instructions, if only the lower half of the product counts or
/// if one factor stays the same throughout a loop.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply_halves(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // SAFETY: works only on registers.
    unsafe {
        std::arch::asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}
