//! `near_dup_pairs` and `near_dup_join`: all similar pairs of a collection, or between two; or all pairs
//! where one document contains the other.

use crate::collection::bit_strings::BitStrings;
use crate::collection::containment::SetCollection;
use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::options;
use crate::pg::call::Call;
use crate::pg::query::Query;
use crate::pg::srf::ResultRows;
use pgrx::prelude::*;

/// The measure that pairs have to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairMeasure {
    /// Resemblance of the documents, or of the signatures where there are no documents; symmetric.
    Resemblance,
    /// Containment of the first document in the second.
    Containment,
}

/// Implements `near_dup_pairs(key, query, threshold, k, unit, fold, slots, seed, measure, params)`.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range, an unknown measure or signatures made with
/// different parameters, `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_pairs(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    if measure(call.argument(8, "measure")) == PairMeasure::Containment {
        let threshold = options::threshold_argument(&call, 2);
        let mut collection = SetCollection::new(&call, 3);
        collection.read(Query::open(&call, 1, "query"));
        return put_containing(collection, threshold, call.rows());
    }
    let mut rows = call.rows();
    match BitStrings::of_call(&call) {
        Ok(mut strings) => strings.for_each_pair(&mut |[a, b], similarity| {
            rows.put([a, b, similarity.into_datum()]);
        }),
        Err(query) => {
            let threshold = options::threshold_argument(&call, 2);
            let mut collection = Collection::new(&call, threshold, 3);
            collection.read(query);
            put_pairs(collection, false, rows);
        }
    }
}

/// Implements `near_dup_join(key, query_a, query_b, threshold, k, unit, fold, slots, seed, measure, params)`.
///
/// # Errors
/// The errors of `near_dup_pairs`.
#[pg_extern(sql = false)]
fn near_dup_join(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 3);
    if measure(call.argument(9, "measure")) == PairMeasure::Containment {
        let mut collection = SetCollection::new(&call, 4);
        collection.read(Query::open(&call, 1, "query_a"));
        collection.end_first_side();
        collection.read(Query::open(&call, 2, "query_b"));
        return put_containing(collection, threshold, call.rows());
    }
    let [query_a, query_b] =
        [(1, "query_a"), (2, "query_b")].map(|(number, name)| Query::open(&call, number, name));
    // The smaller side is read first: it tells which rows of the other one can be left out.
    let is_reversed = query_b.estimate().0 < query_a.estimate().0;
    let [first, second] = match is_reversed {
        true => [query_b, query_a],
        false => [query_a, query_b],
    };
    let mut collection = Collection::new(&call, threshold, 4);
    collection.read(first);
    collection.end_first_side();
    collection.read(second);
    put_pairs(collection, is_reversed, call.rows());
}

/// Puts the pairs of a collection. If the two queries of a join were read in reverse, turns each pair round.
fn put_pairs(collection: Collection, is_reversed: bool, mut rows: ResultRows) {
    if let Some(mut matches) = Matches::of(collection) {
        matches.for_each_pair(&mut |[first, second], similarity| {
            let [a, b] = match is_reversed {
                true => [second, first],
                false => [first, second],
            };
            rows.put([a, b, similarity.into_datum()]);
        });
    }
}

fn put_containing(collection: SetCollection, threshold: f64, mut rows: ResultRows) {
    collection.for_each_pair(threshold, &mut |[a, b], share| {
        rows.put([a, b, share.into_datum()]);
    });
}

fn measure(datum: pg_sys::Datum) -> PairMeasure {
    let choices = [
        ("resemblance", PairMeasure::Resemblance),
        ("containment", PairMeasure::Containment),
    ];
    options::one_of(datum, "measure", choices)
}

pgrx::extension_sql_file!("../../sql/collection/pairs.sql", name = "pairs");
