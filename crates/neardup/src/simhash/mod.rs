//! SimHash: each bit tells on which side of a random hyperplane a document's weighted term vector lies. So the share
//! of differing bits is the angle between two vectors divided by pi (Charikar, "Similarity estimation techniques
//! from rounding algorithms", STOC 2002; Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling", WWW
//! 2007).
//!
//! Scheme 1, frozen by known-answer vectors:
//! - a term is a shingle, known by its hash x; word 0 of its random signs is x, word j > 0 is
//!   `split_mix(x + j * GOLDEN)`; the first bit of the result belongs to the highest bit of word 0;
//! - a weight is a multiple of 2^-32, see [`fixed_point`];
//! - a bit is 1 if the weights of the terms whose sign bit is 1 outweigh the others; a tie gives 0.
//!
//! Sums are integers, so neither order nor parallelism changes a bit.

mod repeats;
mod sums;
mod terms;

use sums::ONE;
pub use sums::{Sums, Width, fixed_point};

use crate::set::sort_by;
use crate::shingle::{Key, Shingling, for_each_block};
use crate::{Error, Grow, Result, collected, unknown};
use bitvec::prelude::*;
use repeats::Repeats;
use std::cell::Cell;
use std::sync::LazyLock;
use strum::{Display, EnumString, VariantNames};
use terms::TermCounts;

/// The weight of a term that occurs `tf` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown_weighting)]
pub enum Weighting {
    /// tf.
    #[strum(serialize = "tf")]
    Frequency,
    /// 1 + ln tf.
    #[strum(serialize = "log")]
    Logarithm,
    /// 1.
    Set,
}

fn unknown_weighting(name: &str) -> Error {
    unknown("weighting", name, Weighting::VARIANTS)
}

impl Weighting {
    /// Returns the weight of a term that occurs `tf` times, tf >= 1.
    pub fn weight(self, tf: u32) -> f64 {
        match self {
            Self::Frequency => f64::from(tf),
            Self::Logarithm => 1.0 + f64::from(tf).ln(),
            Self::Set => 1.0,
        }
    }

    /// Returns [`Self::weight`] as a multiple of 2^-32, which [`Sums`] adds up. Remembers the logarithms of small
    /// numbers, because computing one takes as long as adding a term.
    fn fixed_point(self, tf: u32) -> Result<i64> {
        static LOGARITHMIC: LazyLock<[i64; 64]> = LazyLock::new(|| {
            std::array::from_fn(|tf| {
                let weight = Weighting::Logarithm.weight(tf.max(1) as u32);
                fixed_point(weight).expect("in range")
            })
        });
        match self {
            Self::Frequency => Ok(ONE * i64::from(tf)),
            Self::Set => Ok(ONE),
            Self::Logarithm => match LOGARITHMIC.get(tf as usize) {
                Some(weight) => Ok(*weight),
                None => fixed_point(self.weight(tf)),
            },
        }
    }
}

/// Returns the SimHash of a document, or None if it has no shingles. Linear time. Constant memory for 'tf'; otherwise a
/// block of shingles and at most 48 bytes for each distinct shingle.
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
        for_each_block(doc, shingling, key, &mut |terms| {
            check();
            sums.add_all(terms, ONE, &mut || ())
        })?;
    } else {
        let mut short = SHORT.take().unwrap_or_default();
        short.terms.clear();
        let mut counts = None;
        for_each_block(doc, shingling, key, &mut |terms| {
            check();
            if short.terms.is_empty() {
                short.terms.try_extend_from_slice(terms)?;
            } else if !terms.is_empty() {
                let counts = counts.get_or_insert_with(TermCounts::new);
                counts.add(terms)?;
            }
            Ok(())
        })?;
        match counts {
            None => short.add_to(&mut sums, weighting)?,
            Some(mut counts) => {
                counts.add(&short.terms)?;
                add_counted(&mut sums, counts, weighting, check)?;
            }
        }
        SHORT.set(Some(short));
    }
    Ok(sums.signature())
}

/// A document of one block of terms, in memory that is reused for the next one.
#[derive(Default)]
struct Short {
    terms: Vec<u64>,
    repeats: Repeats,
    differences: Vec<i64>,
}

thread_local! {
    static SHORT: Cell<Option<Box<Short>>> = const { Cell::new(None) };
}

impl Short {
    /// Adds every occurrence of every term. For repeated terms, then adds the difference from their weight.
    fn add_to(&mut self, sums: &mut Sums, weighting: Weighting) -> Result<()> {
        sums.add_all(&self.terms, ONE, &mut || ())?;
        let (repeated, counts) = self.repeats.find(&self.terms);
        self.differences.clear();
        for tf in counts {
            let difference = weighting.fixed_point(*tf)? - ONE * i64::from(*tf);
            self.differences.try_push(difference)?;
        }
        sums.add_each(repeated, &self.differences, &mut || ())
    }
}

/// Adds the terms, in groups of equal weight.
fn add_counted(
    sums: &mut Sums,
    counts: TermCounts,
    weighting: Weighting,
    check: &mut dyn FnMut(),
) -> Result<()> {
    let (terms, counts) = counts.into_lists();
    if weighting == Weighting::Set {
        return sums.add_all(&terms, ONE, check);
    }
    let (mut single, mut repeated) = (Vec::new(), Vec::new());
    for counted in terms.into_iter().zip(counts) {
        match counted {
            (term, 1) => single.try_push(term)?,
            _ => repeated.try_push(counted)?,
        }
    }
    sums.add_all(&single, ONE, check)?;
    sort_by(&mut repeated, |a, b| a.1.cmp(&b.1), check);
    for alike in repeated.chunk_by(|a, b| a.1 == b.1) {
        let terms = collected(alike.iter().map(|(term, _)| *term))?;
        sums.add_all(&terms, weighting.fixed_point(alike[0].1)?, check)?;
    }
    Ok(())
}
