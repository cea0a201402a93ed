//! The classic scheme: b bands of r rows each (Broder 1997; Leskovec, Rajaraman, Ullman, "Mining of
//! Massive Datasets", section 3.4). Documents of Jaccard similarity s share a band with probability
//! 1 - (1 - s^r)^b.

use super::key;
use crate::minhash::Signature;
use crate::{Error, Result};

/// `bands` bands of `rows` slots each; slots behind the last band are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassicBands {
    bands: usize,
    rows: usize,
}

impl ClassicBands {
    /// Checks a cut into `bands` bands of `rows` of `slots` slots.
    ///
    /// # Errors
    /// `Invalid` unless both are positive and the bands fit into `slots` slots.
    pub fn new(bands: i64, rows: i64, slots: usize) -> Result<Self> {
        let fits = |bands: usize, rows: usize| {
            bands > 0 && rows > 0 && bands.checked_mul(rows).is_some_and(|used| used <= slots)
        };
        match (usize::try_from(bands), usize::try_from(rows)) {
            (Ok(bands), Ok(rows)) if fits(bands, rows) => Ok(Self { bands, rows }),
            _ => Err(Error::invalid(
                format!("{bands} bands of {rows} rows do not fit into {slots} slots"),
                format!(
                    "Valid are at least 1 band and 1 row whose product is at most the number \
                     of slots, {slots}."
                ),
            )),
        }
    }

    /// Returns one key a band, in order; none of an empty document. The signature has at least the
    /// slots that these bands were made for.
    pub fn keys<'a>(&self, signature: &Signature<'a>) -> impl Iterator<Item = i64> + use<'a> {
        let rows = self.rows;
        key::hashes(*signature, self.bands, move |band| {
            band * rows..(band + 1) * rows
        })
        .map(|hash| hash as i64)
    }
}
