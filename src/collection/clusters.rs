//! `near_dup_clusters`: clusters of similar rows.

use crate::collection::exceptions::Exceptions;
use crate::collection::matches::Matches;
use crate::collection::reading::{Collection, PairMeasure};
use crate::options;
use crate::pg::prelude::*;
use pgrx::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Star,
    Connected,
}

/// Implements `near_dup_clusters(key, query, threshold, method, k, unit, fold, slots, seed, exceptions, params)`.
///
/// # Errors
/// The errors of `near_dup_pairs`, and `invalid_parameter_value` for an unknown method.
#[pg_extern(sql = false)]
fn near_dup_clusters(call: Call) {
    let method = options::one_of(&call, 3, "method", METHODS);
    let exceptions = Exceptions::of_call(&call, 9);
    let mut collection = Collection::of_query(&call, PairMeasure::Resemblance, 4);
    collection.except(exceptions);
    let mut rows = call.rows();
    // Rows without a value are similar to no row, themselves included.
    let without = 0..collection.without.len() as u32;
    for row in over("listing rows without a value", without) {
        // SAFETY: no other key is read before the next row.
        let key = unsafe { collection.without.get(row) };
        rows.put([key, key, None]);
    }
    let Some(mut matches) = Matches::of(collection) else {
        return;
    };
    let mut put = |[key, canonical]: [Option<pg_sys::Datum>; 2], similarity: f64| {
        rows.put([key, canonical, similarity.into_datum()]);
    };
    match method {
        Method::Star => matches.for_each_in_star(&mut put),
        Method::Connected => matches.for_each_in_component(&mut put),
    }
}

const METHODS: [(&str, Method); 2] = [("star", Method::Star), ("connected", Method::Connected)];
