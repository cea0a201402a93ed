//! The operator class `hamming_ops`: `bit <@ _ball`, ordered by `<->`.
//!
//! An index for distance d stores the keys of d + 1 blocks of a bit string. Keys also depend on the length, so strings
//! of all lengths can share a column.

use super::options::{ClassOptions, DEFAULT, Declared, read_options};
use super::{ComparedClass, KeySearch, Keyed, ValueParameters, shorten};
use crate::index::ball::Within;
use crate::index::bound::Bound;
use crate::pg::bits::Bits;
use crate::pg::prelude::*;
use bitvec::prelude::*;
use neardup::bands::{HammingBlocks, MAX_BLOCKS, Occurrence};
use pgrx::Internal;
use pgrx::prelude::*;
use std::mem::offset_of;

/// `hamming_ops` at the distance of an index column.
pub struct HammingClass {
    pub blocks: HammingBlocks,
}

impl HammingClass {
    /// Returns the class with the `options` of an index column, or None if they are out of range, which only a damaged
    /// catalog can cause.
    ///
    /// # Safety
    /// `options` is NULL or the parsed options of an index column of this class.
    pub unsafe fn from_options(options: *mut pg_sys::bytea) -> Option<Self> {
        Self::new(read_options(options).distance.into()).ok()
    }

    /// Returns the class with keys for lookups within `distance`.
    ///
    /// # Errors
    /// `Invalid` unless 0 <= distance < 64.
    pub fn new(distance: i64) -> neardup::Result<Self> {
        let blocks = HammingBlocks::new(distance, distance + 1)?;
        Ok(Self { blocks })
    }

    /// Returns how many keys all strings within `distance` of each other share, or None if they may share none.
    pub fn occurrence(&self, distance: u32) -> Option<Occurrence> {
        self.blocks.occurrence(distance as usize)
    }

    /// Appends the keys of `bits` to `keys`, and returns the parameters of `bits`.
    fn push_keys(&self, bits: &BitSlice<u8, Msb0>, keys: &mut Vec<u32>) -> ValueParameters {
        keys.extend(self.blocks.block_hashes(bits).map(shorten));
        parameters(bits.len())
    }
}

impl ComparedClass for HammingClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed {
        let bits = Bits::from_raw(value);
        (self.push_keys(bits.as_bitslice(), keys), None)
    }

    fn keys_of(&self, center: &Within<'_>, keys: &mut Vec<u32>) -> Option<Keyed> {
        match center {
            Within::Bits(center, _) => Some((self.push_keys(center.bits(), keys), None)),
            _ => None,
        }
    }

    fn search_for(&self, _: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)> {
        let Within::Bits(center, distance) = ball else {
            return None;
        };
        let hashes = self.blocks.block_hashes(center.bits());
        let search = KeySearch::of(hashes, self.occurrence(*distance));
        Some((search, parameters(center.len)))
    }

    fn own_bound(&self) -> Option<Bound> {
        Some(Bound::Distance(self.blocks.distance as u32))
    }

    fn least_distance(&self, _center: &Within<'_>, shared: usize) -> f64 {
        self.blocks.least_distance(shared) as f64
    }

    fn describe(&self, parameters: &ValueParameters) -> String {
        format!("{} bits", u128::from_le_bytes(*parameters))
    }
}

/// Returns the parameters of a string of `bits` bits. Strings of different lengths are not comparable.
fn parameters(bits: usize) -> ValueParameters {
    (bits as u128).to_le_bytes()
}

/// Declares the options of `hamming_ops`.
#[pg_extern(immutable, parallel_safe, strict, name = "_hamming_options")]
fn hamming_options(mut relopts: Internal) {
    // SAFETY: PostgreSQL calls this with its options; the field at the offset is an integer.
    unsafe {
        let declared = Declared::begin(&mut relopts);
        declared.integer(
            c"distance",
            c"greatest Hamming distance that the index finds by its keys",
            [DEFAULT.distance, 0, MAX_BLOCKS as i32 - 1],
            offset_of!(ClassOptions, distance),
        );
    }
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_hamming.sql",
    name = "neardup_hamming",
    requires = ["ball", "hamming", "neardup_access_method", hamming_options]
);
