//! The operator class `minhash_ops`: `minhash_signature <@ _ball`, ordered by `<=>`.
//!
//! An index for threshold t stores the keys of the pigeonhole bands for t. The bands of a value depend on its own
//! parameters, so signatures of all parameters can share a column: comparable signatures have the same bands, and the
//! recheck removes chance matches between others.

use super::options::{Declared, read_options};
use super::{ComparedClass, KeySearch, Keyed, ValueParameters, shorten};
use crate::index::ball::{EVERYTHING, Within};
use crate::index::bound::Bound;
use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::prelude::*;
use neardup::bands::{Bands, Occurrence, band_hashes};
use neardup::minhash::{Header, Signature, is_estimate_between};
use pgrx::Internal;
use pgrx::prelude::*;
use std::ffi::{c_int, c_void};

/// `minhash_ops` at the threshold of an index column: one key for each pigeonhole band.
pub struct MinhashClass {
    pub threshold: f64,
}

impl MinhashClass {
    /// Returns the class with the `options` of an index column, or None if they are out of range, which only a damaged
    /// catalog can cause.
    ///
    /// # Safety
    /// `options` is NULL or the parsed options of an index column of this class.
    pub unsafe fn from_options(options: *mut pg_sys::bytea) -> Option<Self> {
        Self::new(read_options(options).threshold)
    }

    /// Returns the class for `threshold`, or None if `threshold` is out of range.
    pub fn new(threshold: f64) -> Option<Self> {
        options::is_threshold(threshold).then_some(Self { threshold })
    }

    fn bands(&self, header: &Header) -> Bands {
        let slots = usize::from(header.slots);
        Bands::for_threshold(slots, u32::from(header.slot_bits), self.threshold)
    }

    /// Returns the unshortened keys of a signature, one per band. Returns an empty list for an empty signature.
    fn hashes(&self, signature: &Signature<'_>) -> Vec<u64> {
        band_hashes(signature, &self.bands(&signature.header)).collect()
    }

    /// Returns how many keys every signature at or above `threshold` shares with a signature with `header`, or None if
    /// it may share none.
    pub fn occurrence(&self, header: &Header, threshold: f64) -> Option<Occurrence> {
        self.bands(header)
            .occurrence(u32::from(header.slot_bits), threshold)
    }

    /// Returns whether keys find every match at `threshold`: for a query with `header` or, if that is None, for every
    /// query. They also do so for a threshold that is lower only by rounding: it is reached by the same numbers of
    /// equal slots.
    pub fn serves(&self, header: Option<&Header>, threshold: f64) -> bool {
        threshold >= self.threshold
            || match header {
                Some(header) => self.occurrence(header, threshold).is_some(),
                None => !is_estimate_between(threshold, self.threshold),
            }
    }

    /// Appends the keys of `signature` to `keys`, and returns the signature's parameters.
    fn push_keys(&self, signature: &Signature<'_>, keys: &mut Vec<u32>) -> ValueParameters {
        keys.extend(self.hashes(signature).into_iter().map(shorten));
        signature.header.parameters()
    }
}

impl ComparedClass for MinhashClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed {
        let stored = StoredSignature::from_raw(value);
        (self.push_keys(&stored.read(), keys), None)
    }

    fn keys_of(&self, center: &Within<'_>, keys: &mut Vec<u32>) -> Option<Keyed> {
        match center {
            Within::Signature(center, _) => Some((self.push_keys(center, keys), None)),
            _ => None,
        }
    }

    fn search_for(&self, _: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)> {
        let Within::Signature(center, threshold) = ball else {
            return None;
        };
        let search = match center.header.empty {
            _ if *threshold == EVERYTHING => KeySearch::Everything,
            true => KeySearch::Nothing,
            false => {
                let occurrence = self.occurrence(&center.header, *threshold);
                KeySearch::of(self.hashes(center), occurrence)
            }
        };
        Some((search, center.header.parameters()))
    }

    fn own_bound(&self) -> Option<Bound> {
        Some(Bound::Threshold(self.threshold))
    }

    fn least_distance(&self, center: &Within<'_>, shared: usize) -> f64 {
        let Within::Signature(Signature { header, .. }, _) = center else {
            return 0.0;
        };
        let slot_bits = u32::from(header.slot_bits);
        1.0 - self.bands(header).greatest_similarity(slot_bits, shared)
    }

    fn describe(&self, parameters: &ValueParameters) -> String {
        Header::parse(parameters)
            .map_or_else(|_| String::from("unknown"), |header| header.to_string())
    }
}

/// Declares the options of `minhash_ops`.
#[pg_extern(immutable, parallel_safe, strict, name = "_minhash_options")]
fn minhash_options(mut relopts: Internal) {
    // SAFETY: PostgreSQL calls this with its options.
    let declared = unsafe { Declared::begin(&mut relopts) };
    let description = c"lowest similarity that the index finds by its keys";
    declared.threshold(description, check_options);
}

/// Checks the threshold.
///
/// # Errors
/// ERROR `invalid_parameter_value` for a threshold outside 0 < threshold <= 1.
#[pg_guard]
unsafe extern "C-unwind" fn check_options(
    stored: *mut c_void,
    _options: *mut pg_sys::relopt_value,
    _count: c_int,
) {
    // SAFETY: PostgreSQL passes the options that it has just filled in.
    options::threshold(unsafe { read_options(stored.cast()) }.threshold);
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_minhash.sql",
    name = "neardup_minhash",
    requires = ["ball", "near_dup", "neardup_access_method", minhash_options]
);
