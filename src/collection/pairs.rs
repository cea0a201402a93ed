//! `near_dup_pairs` and `near_dup_join`: all similar pairs of a collection, or between two.

use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::options;
use crate::pg::call::Call;
use crate::pg::srf::Rows;
use pgrx::prelude::*;

/// Implements `near_dup_pairs(key, query, threshold, k, unit, fold, slots, seed)`.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range or signatures made with different
/// parameters, `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_pairs(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 2);
    let mut collection = Collection::new(&call, 3);
    collection.read(call.argument(1, "query"));
    put_pairs(collection, threshold, call.rows());
}

/// Implements `near_dup_join(key, query_a, query_b, threshold, k, unit, fold, slots, seed)`.
///
/// # Errors
/// As `near_dup_pairs`.
#[pg_extern(sql = false)]
fn near_dup_join(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 3);
    let mut collection = Collection::new(&call, 4);
    collection.read(call.argument(1, "query_a"));
    collection.first_side = Some(collection.rows());
    collection.read(call.argument(2, "query_b"));
    put_pairs(collection, threshold, call.rows());
}

fn put_pairs(collection: Collection, threshold: f64, mut rows: Rows) {
    if let Some(mut matches) = Matches::of(collection, threshold) {
        matches.for_each_pair(&mut |[a, b], similarity| rows.put([a, b, similarity.into_datum()]));
    }
}

pgrx::extension_sql_file!(
    "../../sql/collection/pairs.sql",
    name = "pairs",
    requires = ["signature"]
);
