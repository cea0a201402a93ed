//! Intervals, containment and cardinality from signatures.

use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::error::OrRaise;
use crate::pg::srf::Record;
use neardup::bands;
use neardup::minhash::{interval, measures};
use pgrx::prelude::*;

type IntervalRecord = Record<(f64, f64, f64)>;

pgrx::impl_sql_translatable!(IntervalRecord, "record");

/// Returns the estimate of `minhash_sim` between its Clopper-Pearson limits, corrected for packing
/// as the estimate is.
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

/// Returns half the width of the widest interval that estimates from `slots` slots have.
///
/// # Errors
/// `invalid_parameter_value` for slots outside 1 to 1024 and a confidence outside 0 < confidence < 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 400)]
fn minhash_margin(slots: default!(i32, 128), confidence: default!(f64, 0.95)) -> f64 {
    interval::margin(options::slots(slots), confidence).or_raise()
}

/// Returns the threshold on `minhash_sim` that pairs of true Jaccard `threshold` reach with a
/// probability of at least `recall`.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range, and where only a threshold of 0 would do.
#[pg_extern(immutable, parallel_safe, strict, cost = 200)]
fn minhash_relax(threshold: f64, slots: default!(i32, 128), recall: default!(f64, 0.999)) -> f64 {
    bands::relax(threshold, i64::from(slots), recall).or_raise()
}

/// Returns the estimated share of the set behind a that is in the set behind b, 1 for subsets. 0 if
/// one of them is empty, NULL where no slot tells.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters or packed.
#[pg_extern(immutable, parallel_safe, strict, cost = 50)]
fn minhash_containment(a: StoredSignature<'_>, b: StoredSignature<'_>) -> Option<f64> {
    measures::containment(&a.read(), &b.read()).or_raise()
}

/// Returns the estimated number of distinct shingles or elements, with a standard error of 6 to 9 %
/// from 128 slots.
///
/// # Errors
/// `invalid_parameter_value` for packed and for imported signatures.
#[pg_extern(immutable, parallel_safe, strict, cost = 50)]
fn minhash_cardinality(m: StoredSignature<'_>) -> f64 {
    measures::cardinality(&m.read()).or_raise()
}
