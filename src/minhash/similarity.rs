//! The similarity that two signatures estimate, and the condition on it for WHERE and JOIN.
//!
//! Planner support turns both into `<@`, which indexes serve.

use crate::minhash::datum::StoredSignature;
use crate::minhash::incomparable::never_near;
use crate::options;
use crate::pg::call::finfo;
use crate::pg::error::OrRaise;
use neardup::minhash::{estimate_stored, near_duplicates_stored};
use pgrx::fcinfo::pg_getarg_datum_raw;
use pgrx::pg_sys::{Datum, FunctionCallInfo};
use pgrx::prelude::*;

/// Returns the estimated Jaccard similarity of two documents, from 0 to 1. It is 0 if one of them is empty.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters.
#[inline]
fn minhash_sim(a: StoredSignature<'_>, b: StoredSignature<'_>) -> f64 {
    estimate_stored(a.bytes(), b.bytes()).or_raise()
}

/// Returns 1 - `minhash_sim`.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, support = near_dup_support)]
pub fn minhash_distance(a: StoredSignature<'_>, b: StoredSignature<'_>) -> f64 {
    1.0 - minhash_sim(a, b)
}

/// Implements `minhash_sim`.
///
/// # Safety
/// PostgreSQL calls it with the arguments that SQL declares, none of them NULL.
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn minhash_sim_wrapper(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: the arguments have the declared types and outlive the call.
    let similarity = unsafe {
        minhash_sim(
            StoredSignature::from_raw(pg_getarg_datum_raw(fcinfo, 0)),
            StoredSignature::from_raw(pg_getarg_datum_raw(fcinfo, 1)),
        )
    };
    Datum::from(similarity.to_bits())
}

finfo!(pg_finfo_minhash_sim_wrapper);

/// Returns whether `minhash_sim(a, b) >= threshold`. False for signatures with different parameters and for signatures
/// of empty documents.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[inline]
fn near_dup(a: StoredSignature<'_>, b: StoredSignature<'_>, threshold: f64) -> bool {
    near_duplicates_stored(a.bytes(), b.bytes(), options::threshold(threshold))
        .or_raise()
        .unwrap_or_else(|| never_near(&a.read().header, &b.read().header))
}

/// Implements `near_dup`.
///
/// # Safety
/// PostgreSQL calls it with the arguments that SQL declares, none of them NULL.
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn near_dup_wrapper(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: the arguments have the declared types and outlive the call.
    let is_near = unsafe {
        near_dup(
            StoredSignature::from_raw(pg_getarg_datum_raw(fcinfo, 0)),
            StoredSignature::from_raw(pg_getarg_datum_raw(fcinfo, 1)),
            f64::from_bits(pg_getarg_datum_raw(fcinfo, 2).value() as u64),
        )
    };
    Datum::from(is_near)
}

finfo!(pg_finfo_near_dup_wrapper);

pgrx::extension_sql_file!(
    "../../sql/minhash/similarity.sql",
    name = "near_dup",
    requires = ["signature", minhash_distance, near_dup_support]
);
