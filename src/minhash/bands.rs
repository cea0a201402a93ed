//! Band keys for B-trees, and the choice of bands for the classic scheme.
#![allow(clippy::disallowed_methods, reason = "at most one key per slot")]

use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::error::OrRaise;
use crate::pg::srf::Record;
use neardup::Error;
use neardup::bands::{self, Bands, band_keys};
use neardup::minhash::Header;
use pgrx::prelude::*;

/// Returns the band keys of a signature; none for an empty document. If two signatures of k slots have b keys each, and
/// their `minhash_sim` is at least t, they share at least b - (1 - t) k keys.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 150)]
fn minhash_bands(m: StoredSignature<'_>, threshold: f64) -> Vec<i64> {
    let signature = m.read();
    let bands = bands_of(&signature.header, options::threshold(threshold));
    band_keys(&signature, &bands).collect()
}

/// Returns the first key of `minhash_bands(m, threshold)` that two signatures share, or NULL if they share none. A join
/// on band keys finds a pair once for every band that it shares; filtered by this key, it finds the pair only once.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1, and for signatures with different parameters.
#[pg_extern(immutable, parallel_safe, strict, cost = 100)]
fn minhash_shared_band(
    a: StoredSignature<'_>,
    b: StoredSignature<'_>,
    threshold: f64,
) -> Option<i64> {
    let (a, b) = (a.read(), b.read());
    a.header.check_comparable(&b.header).or_raise();
    let threshold = options::threshold(threshold);
    let [of_a, of_b] = [&a, &b].map(|signature| bands_of(&signature.header, threshold));
    let mut keys = band_keys(&a, &of_a).zip(band_keys(&b, &of_b));
    keys.find_map(|(key, other)| (key == other).then_some(key))
}

/// Returns the keys of the classic scheme, `bands` bands of `rows` slots each; none for an empty document. Documents of
/// Jaccard similarity s share one with probability `lsh_probability(s, bands, rows)`.
///
/// # Errors
/// `invalid_parameter_value` unless bands and rows are at least 1 and their product is at most the
/// number of slots.
#[pg_extern(immutable, parallel_safe, strict, cost = 100, name = "minhash_bands")]
fn minhash_bands_classic(m: StoredSignature<'_>, bands: i32, rows: i32) -> Vec<i64> {
    let signature = m.read();
    let slots = usize::from(signature.header.slots);
    let bands = Bands::classic(i64::from(bands), i64::from(rows), slots).or_raise();
    band_keys(&signature, &bands).collect()
}

/// Returns the fewest keys that find every signature at or above `threshold`; none for an empty document. Each such
/// signature has at least one of them among its own keys, which were made for `index_threshold`.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range, and if keys made for `index_threshold` would miss answers at
/// `threshold`.
#[pg_extern(immutable, parallel_safe, strict, cost = 150)]
fn minhash_probe(m: StoredSignature<'_>, index_threshold: f64, threshold: f64) -> Vec<i64> {
    let signature = m.read();
    let bands = bands_of(&signature.header, options::threshold(index_threshold));
    let bits = u32::from(signature.header.slot_bits);
    let found = bands.occurrence(bits, options::threshold(threshold));
    let too_low = || {
        Error::invalid(
            format!(
                "band keys for threshold {index_threshold} miss answers at threshold {threshold}"
            ),
            "Use a higher threshold, or store the band keys for the lowest threshold to be used.",
        )
    };
    let probes = found.ok_or_else(too_low).or_raise().probes();
    band_keys(&signature, &bands).take(probes).collect()
}

fn bands_of(header: &Header, threshold: f64) -> Bands {
    let slots = usize::from(header.slots);
    Bands::for_threshold(slots, u32::from(header.slot_bits), threshold)
}

type Params = Record<(i32, i32, f64, f64)>;

pgrx::impl_sql_translatable!(Params, "record");

/// Returns the probability that documents of Jaccard `similarity` share one of `bands` bands of
/// `rows` rows: 1 - (1 - s^r)^b.
///
/// # Errors
/// `invalid_parameter_value` for a similarity outside 0 to 1, and bands or rows below 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 15)]
fn lsh_probability(similarity: f64, bands: i32, rows: i32) -> f64 {
    bands::lsh_probability(similarity, i64::from(bands), i64::from(rows)).or_raise()
}

/// Returns the bands and rows within `slots` slots that minimize a weighted sum of two areas: the area of false
/// positives, under the S-curve below the threshold, and the area of false negatives, over the S-curve above it. Also
/// returns both areas.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < threshold <= 1, slots outside 1 to 1024, and
/// weights that are negative, not finite or both 0.
#[pg_extern(sql = r#"
CREATE FUNCTION lsh_params(threshold float8, slots int DEFAULT 128,
    fp_weight float8 DEFAULT 0.5, fn_weight float8 DEFAULT 0.5,
    OUT bands int, OUT rows int, OUT fp_area float8, OUT fn_area float8)
IMMUTABLE STRICT PARALLEL SAFE COST 500000 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn lsh_params(threshold: f64, slots: i32, fp_weight: f64, fn_weight: f64) -> Params {
    let params = bands::lsh_params(threshold, i64::from(slots), fp_weight, fn_weight).or_raise();
    let (bands, rows) = (params.bands as i32, params.rows as i32);
    Record((bands, rows, params.fp_area, params.fn_area))
}
