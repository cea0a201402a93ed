//! Intervals, containment and cardinality from signatures.

use crate::minhash::datum::StoredSignature;
use crate::pg::error::OrRaise;
use crate::pg::srf::Record;
use neardup::minhash::{interval, measures};
use pgrx::prelude::*;

type IntervalRecord = Record<(f64, f64, f64)>;

pgrx::impl_sql_translatable!(IntervalRecord, "record");

/// Returns the estimate of `minhash_sim` between its Clopper-Pearson limits, which are corrected for packing like the
/// estimate.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters, and for a confidence
/// outside 0 < confidence < 1.
#[pg_extern(sql = r#"
CREATE FUNCTION minhash_interval(a minhash_signature, b minhash_signature, confidence float8 DEFAULT 0.95,
    OUT low float8, OUT estimate float8, OUT high float8)
IMMUTABLE STRICT PARALLEL SAFE COST 200 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn minhash_interval(
    a: StoredSignature<'_>,
    b: StoredSignature<'_>,
    confidence: f64,
) -> IntervalRecord {
    let limits = interval::interval(&a.read(), &b.read(), confidence).or_raise();
    Record((limits.low, limits.estimate, limits.high))
}

/// Returns the estimated share of the set of `a` that is in the set of `b`: 1 for subsets, 0 if one of them is empty,
/// NULL if no slot of `a` is at or below the same slot of `b`.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters or packed.
#[pg_extern(immutable, parallel_safe, strict, cost = 50)]
fn minhash_containment(a: StoredSignature<'_>, b: StoredSignature<'_>) -> Option<f64> {
    measures::containment(&a.read(), &b.read()).or_raise()
}

/// Returns the estimated number of distinct shingles or elements. The standard error is 6 to 9 % with 128 slots.
///
/// # Errors
/// `invalid_parameter_value` for packed and for imported signatures.
#[pg_extern(immutable, parallel_safe, strict, cost = 50)]
fn minhash_cardinality(m: StoredSignature<'_>) -> f64 {
    measures::cardinality(&m.read()).or_raise()
}
