//! k-shingles of a document: as strings, as a stream of hashes, and the fingerprints chosen from them.

mod shingler;
mod stop;
mod stream;
mod strings;
mod units;
mod winnow;

pub use crate::hash::Key;
pub use stream::{for_each_block, sequence_hashes, shingle_hashes};
pub use strings::{for_each_shingle, shingles};
pub use winnow::{MAX_WINDOW, winnow};

use crate::Result;
use crate::error::within;
use crate::text::{Fold, Unit};

/// Maximum number of units of a shingle.
pub const MAX_K: usize = 256;

/// Maximum number of shingle hashes passed to a sink at once: their 32 KiB stay in the first-level cache.
pub const BLOCK: usize = 4096;

/// The rule by which a document is cut into shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shingling {
    pub k: usize,
    pub unit: Unit,
    pub fold: Fold,
}

impl Default for Shingling {
    /// Returns shingles of three words, with case folded.
    fn default() -> Self {
        Self {
            k: 3,
            unit: Unit::Word,
            fold: Fold::Case,
        }
    }
}

impl Shingling {
    /// Checks k and returns the parameters.
    ///
    /// # Errors
    /// `Invalid` unless 1 <= k <= [`MAX_K`].
    pub fn new(k: i64, unit: Unit, fold: Fold) -> Result<Self> {
        let k = within("shingle length k", k, 1, MAX_K as i64)? as usize;
        Ok(Self { k, unit, fold })
    }
}
