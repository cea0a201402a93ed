//! `near_dup_clusters`: clusters of similar rows.

use crate::collection::bit_strings::BitStrings;
use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::options;
use crate::pg::call::Call;
use crate::pg::srf::ResultRows;
use crate::pg::value::Keys;
use pgrx::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Star,
    Connected,
}

/// Implements `near_dup_clusters(key, query, threshold, method, k, unit, fold, slots, seed,
/// params)`.
///
/// # Errors
/// As `near_dup_pairs`, and `invalid_parameter_value` for an unknown method.
#[pg_extern(sql = false)]
fn near_dup_clusters(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let method = method(call.argument(3, "method"));
    let mut rows = call.rows();
    match BitStrings::of_call(&call) {
        Ok(mut strings) => {
            put_alone(&strings.without, &mut rows);
            let mut put = put_in(&mut rows);
            match method {
                Method::Star => strings.for_each_in_star(&mut put),
                Method::Connected => strings.for_each_in_component(&mut put),
            }
        }
        Err(query) => {
            let threshold = options::threshold_argument(&call, 2);
            let mut collection = Collection::new(&call, threshold, 4);
            collection.read(query);
            put_alone(&collection.without, &mut rows);
            let Some(mut matches) = Matches::of(collection) else {
                return;
            };
            let mut put = put_in(&mut rows);
            match method {
                Method::Star => matches.for_each_in_star(&mut put),
                Method::Connected => matches.for_each_in_component(&mut put),
            }
        }
    }
}

/// Puts the rows that are like nothing, not even themselves.
fn put_alone(keys: &Keys, rows: &mut ResultRows) {
    for row in 0..keys.len() as u32 {
        let key = keys.get(row);
        rows.put([key, key, None]);
    }
}

/// Returns the function that puts a row with its canonical row, and the similarity to it.
fn put_in(rows: &mut ResultRows) -> impl FnMut([Option<pg_sys::Datum>; 2], f64) + '_ {
    |[key, canonical], similarity| rows.put([key, canonical, similarity.into_datum()])
}

fn method(datum: pg_sys::Datum) -> Method {
    let choices = [("star", Method::Star), ("connected", Method::Connected)];
    options::one_of(datum, "method", choices)
}
