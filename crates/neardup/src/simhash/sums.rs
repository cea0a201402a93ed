//! The weighted sums that determine the bits.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "at most MAX_BITS sums, and TERMS_AT_ONCE terms"
)]

use crate::hash::{GOLDEN, split_mix};
use crate::kernels::active;
use crate::{Error, Result};
use bitvec::prelude::*;
use std::ops::{Deref, DerefMut};

/// Number of fractional bits of a weight.
const FRACTION_BITS: i32 = 32;

/// A weight of 1.
pub(super) const ONE: i64 = 1 << FRACTION_BITS;

/// Number of terms whose signs are computed at a time.
const TERMS_AT_ONCE: usize = 4096;

/// Maximum number of bits of a SimHash.
const MAX_BITS: i64 = 4096;

/// The size of a SimHash, in 64-bit words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width(usize);

impl Width {
    /// Returns the width of `bits` bits.
    ///
    /// # Errors
    /// `Invalid` unless `bits` is a multiple of 64 from 64 to 4096.
    pub fn new(bits: i64) -> Result<Self> {
        if (64..=MAX_BITS).contains(&bits) && bits % 64 == 0 {
            return Ok(Self(bits as usize / 64));
        }
        Err(Error::invalid(
            format!("bits = {bits} is out of range"),
            format!("Valid values are multiples of 64 from 64 to {MAX_BITS}."),
        ))
    }

    pub fn bits(self) -> usize {
        64 * self.0
    }
}

/// Rounds `weight` to the nearest multiple of 2^-32, and returns it in units of 2^-32.
///
/// # Errors
/// `Invalid` for NaN, and for magnitudes of 2^31 or more.
pub fn fixed_point(weight: f64) -> Result<i64> {
    let scaled = (weight * 2f64.powi(FRACTION_BITS)).round();
    if scaled.abs() < 2f64.powi(63) {
        return Ok(scaled as i64);
    }
    Err(Error::invalid(
        format!("weight {weight} is out of range"),
        "Valid weights are finite and below 2147483648 in magnitude.",
    ))
}

/// Numbers stored before the sums of the bits: the sum of the magnitudes of all weights, which bounds every other sum,
/// and the sum of all weights.
const SCALARS: usize = 2;

/// The weighted sums over terms, in memory chosen by the caller: two scalars, then one sum per bit, lowest bit of each
/// word first. The sum of a bit is the total weight of the terms that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums<N = Vec<i64>> {
    numbers: N,
}

impl Sums {
    pub fn new(width: Width) -> Self {
        Self::over(vec![0; Self::numbers_needed(width)])
    }

    /// Reads the result of [`Sums::to_bytes`].
    ///
    /// # Errors
    /// `Corrupt` if no sums have the length of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let sums = numbers.len().checked_sub(SCALARS);
        if !rest.is_empty() || sums.is_none_or(|sums| sums == 0 || sums % 64 != 0) {
            return Err(Error::corrupt(format!(
                "{} bytes are not the sums of a SimHash",
                bytes.len()
            )));
        }
        let numbers = numbers.iter().map(|bytes| i64::from_le_bytes(*bytes));
        Ok(Self::over(numbers.collect()))
    }

    /// Returns the number of elements that [`Sums::over`] needs for `width`.
    pub fn numbers_needed(width: Width) -> usize {
        SCALARS + width.bits()
    }
}

impl<N: Deref<Target = [i64]>> Sums<N> {
    /// Returns sums stored in `numbers`, which holds the numbers of other sums, or [`Sums::numbers_needed`] zeros.
    pub fn over(numbers: N) -> Self {
        Self { numbers }
    }

    pub fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// Returns the SimHash, or None if no term with a nonzero weight has been added.
    pub fn signature(&self) -> Option<BitVec<u8, Msb0>> {
        if self.numbers[0] == 0 {
            return None;
        }
        let total = self.numbers[1];
        // The highest bit of the difference is its sign.
        let outweighs = |sum: i64| (total - sum - sum) as u64 >> 63;
        let byte = |sums: &[i64; 8]| {
            let bits = sums.iter().enumerate();
            bits.fold(0, |byte, (bit, sum)| byte | outweighs(*sum) << bit) as u8
        };
        let (words, _) = self.numbers[SCALARS..].as_chunks::<64>();
        let mut bytes = Vec::with_capacity(8 * words.len());
        for word in words {
            let (sums, _) = word.as_chunks();
            let lowest_first: [u8; 8] = std::array::from_fn(|i| byte(&sums[i]));
            bytes.extend(lowest_first.iter().rev());
        }
        Some(BitVec::from_vec(bytes))
    }

    /// Returns the numbers as bytes, for another process of the same server.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.numbers.iter();
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }
}

impl<N: DerefMut<Target = [i64]>> Sums<N> {
    /// Returns the sums of the bits, word by word.
    fn words(&mut self) -> &mut [[i64; 64]] {
        self.numbers[SCALARS..].as_chunks_mut().0
    }

    /// Adds `term` with `weight` in units of 2^-32. The weights of a repeated term add up.
    ///
    /// # Errors
    /// `Invalid` if the magnitudes of all weights add up to 2^31 or more.
    pub fn add(&mut self, term: u64, weight: i64) -> Result<()> {
        self.add_each(&[term], &[weight], &mut || ())
    }

    /// Adds `terms`, all with the same `weight`. Takes 1 ns per term and word; [`Self::add`] takes 10 ns.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    pub(super) fn add_all(
        &mut self,
        terms: &[u64],
        weight: i64,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        self.count(terms.len(), weight)?;
        let mut signs = Vec::new();
        for terms in terms.chunks(TERMS_AT_ONCE) {
            check();
            for (word, sums) in self.words().iter_mut().enumerate() {
                active().add_weight(signs_of(terms, word, &mut signs), weight, sums);
            }
        }
        Ok(())
    }

    /// Adds `terms` with their `weights`.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    pub(super) fn add_each(
        &mut self,
        terms: &[u64],
        weights: &[i64],
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        let mut signs = Vec::new();
        for (terms, weights) in terms
            .chunks(TERMS_AT_ONCE)
            .zip(weights.chunks(TERMS_AT_ONCE))
        {
            check();
            for weight in weights {
                self.count(1, *weight)?;
            }
            for (word, sums) in self.words().iter_mut().enumerate() {
                active().add_where_set(signs_of(terms, word, &mut signs), weights, sums);
            }
        }
        Ok(())
    }

    fn count(&mut self, terms: usize, weight: i64) -> Result<()> {
        let magnitude = weight
            .checked_abs()
            .and_then(|magnitude| magnitude.checked_mul(terms as i64));
        self.grow(magnitude, weight.wrapping_mul(terms as i64))
    }

    fn grow(&mut self, magnitude: Option<i64>, total: i64) -> Result<()> {
        let magnitude = magnitude.and_then(|more| self.numbers[0].checked_add(more));
        self.numbers[0] = magnitude.ok_or_else(|| {
            Error::invalid(
                "the weights add up to 2147483648 or more",
                "Only the ratios of weights matter: divide all of them by the same number.",
            )
        })?;
        self.numbers[1] += total;
        Ok(())
    }

    /// Adds the sums `other`, of another part of the same document.
    ///
    /// # Errors
    /// The errors of [`Self::add`]; `Incomparable` if the sums differ in width.
    pub fn merge(&mut self, other: &Sums<impl Deref<Target = [i64]>>) -> Result<()> {
        let (own, others) = (self.numbers.len(), other.numbers.len());
        if own != others {
            let (own, others) = (own - SCALARS, others - SCALARS);
            return Err(Error::Incomparable {
                message: format!("cannot combine sums for {own} and {others} bits"),
                hint: "Use one number of bits throughout an aggregate.".into(),
            });
        }
        self.grow(Some(other.numbers[0]), other.numbers[1])?;
        let sums = self.numbers[SCALARS..].iter_mut();
        sums.zip(&other.numbers[SCALARS..])
            .for_each(|(sum, other)| *sum += other);
        Ok(())
    }
}

/// Returns the signs of `terms` for word number `word` of the SimHash. `room` is scratch space.
#[inline]
fn signs_of<'a>(terms: &'a [u64], word: usize, room: &'a mut Vec<u64>) -> &'a [u64] {
    if word == 0 {
        return terms;
    }
    let offset = GOLDEN.wrapping_mul(word as u64);
    room.clear();
    let sign = |term: &u64| split_mix(term.wrapping_add(offset));
    room.extend(terms.iter().map(sign));
    room
}
