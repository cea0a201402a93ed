//! `near_dup_pairs` and `near_dup_join`: all similar pairs in a collection or between two, or all pairs where one
//! document contains the other.

use crate::collection::containment;
use crate::collection::exceptions::Exceptions;
use crate::collection::matches::Matches;
use crate::collection::reading::{Collection, PairMeasure};
use crate::options;
use crate::pg::prelude::*;
use crate::pg::srf::ResultRows;
use neardup::bands::plan::VerifiedPlan;
use pgrx::prelude::*;

/// Implements `near_dup_pairs(key, query, threshold, k, unit, fold, slots, seed, measure, exceptions, most, params)`.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range, an unknown measure or signatures made with
/// different parameters, `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_pairs(call: Call) {
    let measure = measure(&call, 8);
    let exceptions = Exceptions::of_call(&call, 9);
    let mut collection = Collection::of_query(&call, measure, 3);
    collection.except(exceptions);
    let Some(most) = call.optional(10) else {
        return put_pairs(collection, false, call.rows());
    };
    let most = options::within("most", most, 1, MOST) as u32;
    if measure == PairMeasure::Containment {
        invalid(
            "most cannot be combined with measure containment",
            "Use measure resemblance, or leave out most.",
        );
    }
    let mut rows = call.rows();
    if let Some(mut matches) = Matches::of(collection) {
        matches.for_each_partner(most, &mut |[a, b], similarity| {
            rows.put([a, b, similarity.into_datum()]);
        });
    }
}

/// Implements `near_dup_join(key, query_a, query_b, threshold, k, unit, fold, slots, seed, measure, params)`.
///
/// # Errors
/// The errors of `near_dup_pairs`.
#[pg_extern(sql = false)]
fn near_dup_join(call: Call) {
    let threshold = options::threshold_argument(&call, 3);
    let measure = measure(&call, 9);
    let mut collection =
        Collection::of_call(&call, measure, threshold, 4, VerifiedPlan::slots_as_stored);
    let [query_a, query_b] =
        [(1, "query_a"), (2, "query_b")].map(|(number, name)| Query::open(&call, number, name));
    // The smaller side is read first: its tokens rule out rows of the other side.
    let is_reversed =
        measure == PairMeasure::Resemblance && query_b.estimate().0 < query_a.estimate().0;
    let [first, second] = match is_reversed {
        true => [query_b, query_a],
        false => [query_a, query_b],
    };
    collection.read(first);
    collection.end_first_side();
    collection.read(second);
    put_pairs(collection, is_reversed, call.rows());
}

/// Upper limit of the argument `most`.
const MOST: i32 = 1000;

/// Puts the pairs of `collection` into `rows`. If `is_reversed`, query_b of a join was read first, and the keys of each
/// pair are swapped.
fn put_pairs(collection: Collection, is_reversed: bool, mut rows: ResultRows) {
    let mut put = |[first, second]: [Option<pg_sys::Datum>; 2], similarity: f64| {
        let [a, b] = match is_reversed {
            true => [second, first],
            false => [first, second],
        };
        rows.put([a, b, similarity.into_datum()]);
    };
    if collection.measure == PairMeasure::Containment {
        containment::for_each_pair(collection, &mut put);
    } else if let Some(mut matches) = Matches::of(collection) {
        matches.for_each_pair(&mut put);
    }
}

fn measure(call: &Call, number: usize) -> PairMeasure {
    let choices = [
        ("resemblance", PairMeasure::Resemblance),
        ("containment", PairMeasure::Containment),
    ];
    options::one_of(call, number, "measure", choices)
}

pgrx::extension_sql_file!("../../sql/collection/pairs.sql", name = "pairs");
