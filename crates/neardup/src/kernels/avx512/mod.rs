//! The kernels for x86-64 processors with the AVX-512 of Intel's Ice Lake (2019) and AMD's Zen 4 (2022).
//!
//! AVX512DQ is enabled only for loops of 64-bit products: with it, the compiler also multiplies two 32-bit numbers with
//! an instruction for 64-bit numbers, which takes three times as long.

mod fold;
mod siphash;
mod sketch;
mod words;

use super::{Kernels, avx2, bit_sums, portable};
use std::arch::x86_64::*;

/// Returns whether this processor has the instructions of [`KERNELS`].
pub fn is_available() -> bool {
    avx2::is_available()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("lzcnt")
}

/// The kernels with AVX-512, only for processors on which [`is_available`] is true.
pub static KERNELS: Kernels = Kernels {
    name: "avx512",
    fold_words: fold::fold_words,
    fold_chars: fold::fold_chars,
    word_hashes: words::word_hashes,
    combine_windows,
    sketch: sketch::sketch,
    count_equal: avx2::count_equal,
    merge: avx2::merge,
    add_where_set,
    add_weight,
};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn combine_windows(tokens: &[u64], k: usize, out: &mut Vec<u64>) {
    portable::combine_windows(tokens, k, 8, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    bit_sums::add_where_set(words, weights, sums);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn add_weight(words: &[u64], weight: i64, sums: &mut [i64; 64]) {
    bit_sums::add_weight(words, weight, sums);
}

/// Returns the low 64 bits of the products of `x` with `factor`. Uses the instruction of AVX512DQ, which the compiler
/// must not use elsewhere.
#[inline]
#[target_feature(enable = "avx512f")]
fn multiply(x: __m512i, factor: u64) -> __m512i {
    let product;
    // SAFETY: works only on registers, and [`is_available`] has checked for the instruction.
    unsafe {
        std::arch::asm!(
            "vpmullq {product}, {x}, {factor}",
            product = lateout(zmm_reg) product,
            x = in(zmm_reg) x,
            factor = in(zmm_reg) _mm512_set1_epi64(factor as i64),
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}

/// Multiplies the lower halves of the lanes with the single instruction for this. From the corresponding intrinsic, the
/// compiler makes 64-bit products, which take three such instructions, if only the lower half of the product counts or
/// if one factor stays the same throughout a loop.
#[inline]
#[target_feature(enable = "avx512f")]
fn multiply_halves(a: __m512i, b: __m512i) -> __m512i {
    let product;
    // SAFETY: works only on registers.
    unsafe {
        std::arch::asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(zmm_reg) product,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}
