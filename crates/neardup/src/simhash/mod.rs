//! SimHash: one bit for the side of each of many random hyperplanes on which a document's weighted
//! term vector lies, so that the share of differing bits is the angle of two vectors divided by pi
//! (Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; Manku, Jain,
//! Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007).
//!
//! Scheme 1, frozen by known-answer vectors:
//! - a term is a shingle, known by its hash x; word 0 of its random signs is x, word j > 0 is
//!   `split_mix(x + j * GOLDEN)`; the first bit of the result belongs to the highest bit of word 0;
//! - a weight is a multiple of 2^-32, see [`fixed_point`];
//! - a bit is 1 if the weights of the terms whose sign bit is 1 outweigh the others; a tie gives 0.
//!
//! Sums are integers, so that neither order nor parallelism changes a bit.

mod planes;
mod sums;
mod terms;

pub use sums::{Sums, Width, fixed_point};

use crate::shingle::{Key, Shingling, for_each_block};
use crate::{Error, Result};
use bitvec::prelude::*;
use std::str::FromStr;
use terms::TermCounts;

/// How much a term that occurs `tf` times counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// tf.
    Frequency,
    /// 1 + ln tf.
    Logarithm,
    /// 1.
    Set,
}

impl FromStr for Weighting {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "tf" => Ok(Self::Frequency),
            "log" => Ok(Self::Logarithm),
            "set" => Ok(Self::Set),
            _ => Err(Error::invalid(
                format!("unknown weighting \"{name}\""),
                "Valid weightings are 'tf', 'log' and 'set'.",
            )),
        }
    }
}

impl Weighting {
    /// The weight of a term that occurs `tf` times, tf >= 1.
    pub fn weight(self, tf: u32) -> f64 {
        match self {
            Self::Frequency => f64::from(tf),
            Self::Logarithm => 1.0 + f64::from(tf).ln(),
            Self::Set => 1.0,
        }
    }
}

/// Terms of one frequency are added together up to this one; of higher ones there are too few.
const GROUPED_FREQUENCIES: u32 = 4;

/// Terms that are added one by one between two checks for interrupts.
const TERMS_A_CHECK: usize = 1024;

/// The SimHash of a document; `None` without any shingle. Linear time; for 'tf' in constant memory,
/// otherwise at most 48 bytes a distinct shingle.
///
/// # Errors
/// `OutOfMemory`; `Invalid` for 2^31 shingles or more.
pub fn document(
    doc: &[u8],
    shingling: &Shingling,
    key: &Key,
    width: Width,
    weighting: Weighting,
    check: &mut dyn FnMut(),
) -> Result<Option<BitVec<u8, Msb0>>> {
    let mut sums = Sums::new(width);
    if weighting == Weighting::Frequency {
        let one = fixed_point(1.0)?;
        for_each_try_block(doc, shingling, key, check, |terms| {
            sums.add_all(terms, one, &mut || ())
        })?;
    } else {
        let mut counts = TermCounts::new();
        for_each_try_block(doc, shingling, key, check, |terms| counts.add(terms))?;
        add_counted(&mut sums, counts, weighting, check)?;
    }
    Ok((!sums.is_empty()).then(|| sums.signature()))
}

/// [`for_each_block`] with a sink that may fail, which ends the work but not the walk.
fn for_each_try_block(
    doc: &[u8],
    shingling: &Shingling,
    key: &Key,
    check: &mut dyn FnMut(),
    mut sink: impl FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    for_each_block(doc, shingling, key, &mut |terms| {
        check();
        if outcome.is_ok() {
            outcome = sink(terms);
        }
    });
    outcome
}

fn add_counted(
    sums: &mut Sums,
    counts: TermCounts,
    weighting: Weighting,
    check: &mut dyn FnMut(),
) -> Result<()> {
    let (mut terms, mut counts) = counts.into_lists();
    if weighting == Weighting::Set {
        return sums.add_all(&terms, fixed_point(1.0)?, check);
    }
    let mut group = vec![0; terms.len()];
    for tf in 1..=GROUPED_FREQUENCIES {
        let grouped = take_frequency(tf, &mut terms, &mut counts, &mut group);
        sums.add_all(&group[..grouped], fixed_point(weighting.weight(tf))?, check)?;
    }
    for (i, (term, tf)) in terms.iter().zip(counts).enumerate() {
        if i % TERMS_A_CHECK == 0 {
            check();
        }
        sums.add(*term, fixed_point(weighting.weight(tf))?)?;
    }
    Ok(())
}

/// Moves the terms of one frequency to the beginning of `group` and returns how many they are.
/// Without a branch on the frequency, which cannot be predicted.
fn take_frequency(
    tf: u32,
    terms: &mut Vec<u64>,
    counts: &mut Vec<u32>,
    group: &mut [u64],
) -> usize {
    let (mut taken, mut kept) = (0, 0);
    for i in 0..terms.len() {
        let (term, count) = (terms[i], counts[i]);
        let is_taken = usize::from(count == tf);
        group[taken] = term;
        terms[kept] = term;
        counts[kept] = count;
        taken += is_taken;
        kept += 1 - is_taken;
    }
    terms.truncate(kept);
    counts.truncate(kept);
    taken
}
