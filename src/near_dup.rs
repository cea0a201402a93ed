//! `near_dup` and `hamming_within`: the conditions that users write in WHERE and JOIN. Their
//! planner support turns them into `<@`, which the GIN operator classes index.

use crate::bits::Bits;
use crate::datum::StoredSignature;
use crate::error::OrRaise;
use crate::options;
use neardup::minhash::near_duplicates_stored;
use pgrx::prelude::*;

/// Whether `minhash_sim(a, b) >= threshold`; not for signatures made with different parameters, nor
/// for those of empty documents.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[inline]
pub fn near_dup(a: StoredSignature<'_>, b: StoredSignature<'_>, threshold: f64) -> bool {
    near_duplicates_stored(a.bytes(), b.bytes(), options::threshold(threshold)).or_raise()
}

/// Whether two bit strings differ in at most `distance` bits; not if their lengths differ.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, cost = 5, support = hamming_within_support)]
pub fn hamming_within(a: Bits<'_>, b: Bits<'_>, distance: i32) -> bool {
    let distance = options::distance(distance);
    a.len() == b.len() && neardup::hamming::distance(a.bytes(), b.bytes()) <= distance
}

pgrx::extension_sql_file!(
    "../sql/near_dup.sql",
    name = "near_dup",
    requires = ["signature", near_dup_support, hamming_within]
);
