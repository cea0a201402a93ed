//! The weighted sums behind the bits.

use super::planes::{self, MAX_WORDS, PLANES};
use crate::kernels::add_where_set;
use crate::shingle::{GOLDEN, split_mix};
use crate::{Error, Result};
use bitvec::prelude::*;

/// Bits of fraction of a weight.
const FRACTION_BITS: i32 = 32;

/// Terms whose sums are added at once, where each has a weight of its own.
const TERMS_AT_ONCE: usize = 64;

/// The most bits of a SimHash.
const MAX_BITS: i64 = 4096;

/// The size of a SimHash, in 64-bit words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    words: usize,
}

impl Width {
    /// # Errors
    /// `Invalid` unless `bits` is a multiple of 64 from 64 to 4096.
    pub fn new(bits: i64) -> Result<Self> {
        if (64..=MAX_BITS).contains(&bits) && bits % 64 == 0 {
            return Ok(Self {
                words: bits as usize / 64,
            });
        }
        Err(Error::invalid(
            format!("bits = {bits} is out of range"),
            format!("Valid values are multiples of 64 from 64 to {MAX_BITS}."),
        ))
    }

    pub fn bits(self) -> usize {
        64 * self.words
    }
}

/// A weight as a multiple of 2^-32, to the nearest.
///
/// # Errors
/// `Invalid` for NaN, and for 2^31 or more.
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

/// The weighted sums of the signs of terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the magnitudes of all weights; while it fits, no other sum can overflow.
    magnitude: i64,
    /// The sum of all weights.
    total: i64,
    /// For every bit, from the lowest of each word, the sum of the weights of the terms that set it.
    set: Vec<[i64; 64]>,
}

impl Sums {
    pub fn new(width: Width) -> Self {
        Self {
            magnitude: 0,
            total: 0,
            set: vec![[0; 64]; width.words],
        }
    }

    /// Adds one term with a weight in multiples of 2^-32. Terms may repeat: weights add up.
    ///
    /// # Errors
    /// `Invalid` where the magnitudes of all weights sum up to 2^31 or more.
    pub fn add(&mut self, term: u64, weight: i64) -> Result<()> {
        self.add_each(&[term], &[weight], &mut || ())
    }

    /// Adds terms of one weight, which is not negative. Counting bits first spares most of the
    /// work: 2 ns a term and word where [`Self::add`] takes 10.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn add_all(
        &mut self,
        terms: &[u64],
        weight: i64,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        for terms in terms.chunks(MAX_WORDS) {
            check();
            self.count(terms.len(), weight)?;
            let used = PLANES.min(terms.len().ilog2() as usize + 1);
            let weights: [i64; PLANES] = std::array::from_fn(|plane| weight << plane);
            for (word, sums) in self.set.iter_mut().enumerate() {
                let planes = planes::count(terms, |term| sign_bits(term, word));
                add_where_set(&planes[..used], &weights[..used], sums);
            }
        }
        Ok(())
    }

    /// Adds terms, each with its weight.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn add_each(
        &mut self,
        terms: &[u64],
        weights: &[i64],
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        let mut words = [0; TERMS_AT_ONCE];
        for (terms, weights) in terms
            .chunks(TERMS_AT_ONCE)
            .zip(weights.chunks(TERMS_AT_ONCE))
        {
            check();
            for weight in weights {
                self.count(1, *weight)?;
            }
            let words = &mut words[..terms.len()];
            for (word, sums) in self.set.iter_mut().enumerate() {
                for (signs, term) in words.iter_mut().zip(terms) {
                    *signs = sign_bits(*term, word);
                }
                add_where_set(words, weights, sums);
            }
        }
        Ok(())
    }

    fn count(&mut self, terms: usize, weight: i64) -> Result<()> {
        let added = weight
            .checked_abs()
            .and_then(|magnitude| magnitude.checked_mul(terms as i64));
        let magnitude = added.and_then(|added| self.magnitude.checked_add(added));
        self.magnitude = magnitude.ok_or_else(too_heavy)?;
        self.total += weight * terms as i64;
        Ok(())
    }

    /// Adds the terms of another part of the same document.
    ///
    /// # Errors
    /// As [`Self::add`]; `Incomparable` for sums of another width.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.set.len() != other.set.len() {
            return Err(Error::Incomparable {
                message: format!(
                    "cannot combine sums for {} and {} bits",
                    64 * self.set.len(),
                    64 * other.set.len()
                ),
                hint: "Use one number of bits throughout an aggregate.".into(),
            });
        }
        let magnitude = self.magnitude.checked_add(other.magnitude);
        self.magnitude = magnitude.ok_or_else(too_heavy)?;
        self.total += other.total;
        let sums = self.set.as_flattened_mut().iter_mut();
        sums.zip(other.set.as_flattened())
            .for_each(|(sum, other)| *sum += other);
        Ok(())
    }

    /// Whether no term with a weight has been added.
    pub fn is_empty(&self) -> bool {
        self.magnitude == 0
    }

    /// The SimHash.
    pub fn signature(&self) -> BitVec<u8, Msb0> {
        let outweighs = |sum: i64| u64::from(sum > self.total - sum);
        let word = |sums: &[i64; 64]| {
            let bits = sums.iter().enumerate();
            bits.fold(0, |word, (bit, sum)| word | outweighs(*sum) << bit)
        };
        let bytes = self.set.iter().flat_map(|sums| word(sums).to_be_bytes());
        BitVec::from_vec(bytes.collect())
    }

    /// The sums as bytes, for another process of the same server.
    pub fn to_bytes(&self) -> Vec<u8> {
        let scalars = [self.magnitude, self.total];
        let numbers = scalars.iter().chain(self.set.as_flattened());
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// # Errors
    /// `Corrupt` for bytes of no possible length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<i64> = numbers
            .iter()
            .map(|bytes| i64::from_le_bytes(*bytes))
            .collect();
        match numbers.as_slice() {
            [magnitude, total, sums @ ..] if rest.is_empty() && sums.len() % 64 == 0 => Ok(Self {
                magnitude: *magnitude,
                total: *total,
                set: sums.as_chunks().0.to_vec(),
            }),
            _ => Err(Error::corrupt(format!("{} bytes are no sums", bytes.len()))),
        }
    }
}

/// The signs of a term for one word of the result.
#[inline]
fn sign_bits(term: u64, word: usize) -> u64 {
    match word {
        0 => term,
        _ => split_mix(term.wrapping_add(GOLDEN.wrapping_mul(word as u64))),
    }
}

fn too_heavy() -> Error {
    Error::invalid(
        "the weights sum up to 2147483648 or more",
        "Only the ratios of weights matter: divide all of them by the same number.",
    )
}
