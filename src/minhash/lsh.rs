//! Choosing the bands of the classic scheme.

use crate::pg::error::OrRaise;
use crate::pg::record::Record;
use neardup::bands;
use pgrx::prelude::*;

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

/// Returns the bands and rows within `slots` slots that minimize the weighted sum of the areas of
/// false positives, under the S-curve below the threshold, and of false negatives, over it above.
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
    Record((
        params.bands as i32,
        params.rows as i32,
        params.fp_area,
        params.fn_area,
    ))
}
