//! `star_clusters` and `connected_components`: clusters of given pairs.

use crate::pg::prelude::*;
use crate::pg::sort::{NO_PLACE, ValueSort};
use neardup::cluster::{SimilarPair, UnionFind, stars_of_pairs};
use pgrx::prelude::*;

/// Stands for the row of a key that no row has.
const NONE: u32 = u32::MAX;

/// Implements `star_clusters(key, rows, pairs, params)`: returns every row, in the order of the first query, with the
/// canonical row of its cluster and the similarity to it. Pairs may come in any order, with either row first. Pairs
/// with a key that is not a row are ignored.
///
/// Memory: 24 bytes per row and 24 per pair, plus the keys.
///
/// # Errors
/// `datatype_mismatch` for columns of other types, `undefined_function` for a type that has no order,
/// `unique_violation` if two rows have the same key, `invalid_parameter_value` for a similarity of NaN.
#[pg_extern(sql = false)]
fn star_clusters(call: Call) {
    let mut ends = ValueSort::begin(call.argument_type(0));
    let rows = read_rows(&call, &mut ends);
    let similarities = read_pairs(&call, &mut ends, rows);
    let (keys, places) = ends.places(rows + 2 * similarities.len());
    let (of_rows, of_ends) = places.split_at(rows);
    let row_of = rows_by_place(of_rows, keys.len());
    let mut pairs = Vec::new();
    let ends = of_ends.as_chunks::<2>().0.iter();
    for (ends, similarity) in over("listing pairs", ends.zip(similarities)) {
        let [a, b] = ends.map(|place| row_of[place as usize]);
        if a != b && a != NONE && b != NONE {
            let (earlier, later) = (a.min(b), a.max(b));
            let pair = SimilarPair {
                earlier,
                later,
                similarity,
            };
            pairs.try_push(pair).or_raise();
        }
    }
    let stars = stars_of_pairs(rows as u32, &mut pairs, &mut check_interrupts).or_raise();
    let mut result = call.rows();
    for (row, (canonical, similarity)) in over("listing rows", stars.into_iter().enumerate()) {
        // SAFETY: no other key is read before these two are put.
        let [key, canonical] =
            [row, canonical as usize].map(|row| unsafe { keys.get(of_rows[row]) });
        result.put([key, canonical, similarity.into_datum()]);
    }
}

/// Puts the keys of the rows into `ends`, each with the number of its row, and returns the number of rows.
fn read_rows(call: &Call, ends: &mut ValueSort) -> usize {
    let query = Query::open(call, 1, "rows");
    let [key] = query.exactly("Select one column for rows: the key, in order.");
    let key = key.of_type(call.argument_type(0), "only", "key");
    let mut rows = 0;
    query.for_each("reading rows", &mut |row| {
        if let Some(key) = row.get(key) {
            ends.put(key, rows);
            rows += 1;
        }
    });
    if rows >= NONE as usize {
        too_large("the query yields more than 4 294 967 294 rows", "");
    }
    rows
}

/// Puts the ends of each pair p into `ends`, numbered `first` + 2p and `first` + 2p + 1, and returns the similarities.
/// Skips pairs with a NULL.
fn read_pairs(call: &Call, ends: &mut ValueSort, first: usize) -> Vec<f64> {
    let query = Query::open(call, 2, "pairs");
    const VALID: &str =
        "Select three columns for pairs: the two keys of a pair and their similarity.";
    let [a, b, similarity] = query.exactly(VALID);
    let key_type = call.argument_type(0);
    let keys = [
        a.of_type(key_type, "first", "key"),
        b.of_type(key_type, "second", "key"),
    ];
    let similarity = similarity.of_type(pg_sys::FLOAT8OID, "third", "similarity");
    let mut similarities = Vec::new();
    query.for_each("reading pairs", &mut |row| {
        if let ([Some(a), Some(b)], Some(similarity)) =
            (keys.map(|key| row.get(key)), row.get(similarity))
        {
            let number = first + 2 * similarities.len();
            ends.put(a, number);
            ends.put(b, number + 1);
            let similarity = f64::from_bits(similarity.value() as u64);
            if similarity.is_nan() {
                invalid(
                    "a similarity is NaN",
                    "Let the query of pairs leave such pairs out.",
                );
            }
            similarities.try_push(similarity).or_raise();
        }
    });
    similarities
}

/// Returns, for each of `places` places of keys, the row whose key has that place, or `NONE`.
///
/// # Errors
/// ERROR `unique_violation` if two rows have the same key.
fn rows_by_place(of_rows: &[u32], places: usize) -> Vec<u32> {
    let mut row_of = filled(NONE, places).or_raise();
    for (row, &place) in (0..).zip(of_rows) {
        if std::mem::replace(&mut row_of[place as usize], row) != NONE {
            raise(
                PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
                "two rows have the same key",
                "Let the query of rows yield every key once.",
            );
        }
    }
    row_of
}

/// Implements `connected_components(key, query, params)`: returns every key of an edge with the key of its component
/// that is smallest in the type's order. An edge with a NULL end connects nothing, but its other end is returned.
///
/// # Errors
/// `datatype_mismatch` for columns of other types, `undefined_function` for a type that has no order.
#[pg_extern(sql = false)]
fn connected_components(call: Call) {
    let key_type = call.argument_type(0);
    let mut ends = ValueSort::begin(key_type);
    let edges = read(&call, key_type, &mut ends);
    let (keys, places) = ends.places(2 * edges);
    let sets = UnionFind::new(keys.len() as u32).or_raise();
    let (edges, _) = places.as_chunks::<2>();
    for &[a, b] in over("connecting keys", edges.iter()) {
        if a != NO_PLACE && b != NO_PLACE {
            sets.union(a, b);
        }
    }
    let mut rows = call.rows();
    for key in over("listing keys", 0..keys.len() as u32) {
        // SAFETY: no other key is read before these two are put.
        rows.put([key, sets.find(key)].map(|key| unsafe { keys.get(key) }));
    }
}

/// Puts the ends of all edges into `ends`, numbered 2e and 2e + 1 for edge e, and returns the number of edges.
fn read(call: &Call, key_type: pg_sys::Oid, ends: &mut ValueSort) -> usize {
    let query = Query::open(call, 1, "query");
    let [a, b] = query.exactly("Select two columns: the keys at the two ends of an edge.");
    let columns = [
        a.of_type(key_type, "first", "key at one end of the edge"),
        b.of_type(key_type, "second", "key at the other end of the edge"),
    ];
    let mut edges = 0;
    query.for_each("reading", &mut |row| {
        for (end, column) in columns.into_iter().enumerate() {
            if let Some(key) = row.get(column) {
                ends.put(key, 2 * edges + end);
            }
        }
        edges += 1;
    });
    edges
}
