//! Clusters of similar rows.

use crate::collection::items::Items;
use crate::collection::pairs::Prepared;
use crate::collection::reading::Collection;
use crate::collection::search::Search;
use crate::options;
use crate::pg::call::Call;
use crate::pg::error::{or_out_of_memory, raise};
use crate::pg::progress::Progress;
use crate::pg::srf::Rows;
use crate::pg::text::Text;
use neardup::cluster::UnionFind;
use neardup::cluster::{Canonicals, connect_group};
use pgrx::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Star,
    Connected,
}

/// `near_dup_clusters(key, query, threshold, method)`.
///
/// # Errors
/// As `near_dup_pairs`, and `invalid_parameter_value` for an unknown method.
#[pg_extern(sql = false)]
fn near_dup_clusters(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 2);
    let method = method(call.argument(3, "method"));
    let mut collection = Collection::new(&call);
    collection.read(call.argument(1, "query"));
    let mut rows = call.rows();
    for row in 0..collection.without.len() as u32 {
        let key = collection.without.get(row);
        rows.put([key, key, None]);
    }
    let Some(header) = collection.header else {
        return;
    };
    let prepared = Prepared::new(&mut collection, &header, threshold);
    match method {
        Method::Star => put_stars(&mut collection, prepared, threshold, &mut rows),
        Method::Connected => put_connected(&mut collection, prepared, threshold, &mut rows),
    }
}

fn method(datum: pg_sys::Datum) -> Method {
    // SAFETY: the argument is declared as text.
    let name = unsafe { Text::from_raw(datum) }.name().into_owned();
    match name.as_str() {
        "star" => Method::Star,
        "connected" => Method::Connected,
        _ => raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            &format!("unknown method {}", neardup::quoted(&name)),
            "Valid methods are 'star' and 'connected'.",
        ),
    }
}

/// Walks the rows in query order.
fn put_stars(collection: &mut Collection, prepared: Prepared, threshold: f64, rows: &mut Rows) {
    let Prepared {
        items,
        search,
        mut similarity,
    } = prepared;
    let mut canonicals = or_out_of_memory(Canonicals::new(&search.tokens));
    let mut progress = Progress::begin("clustering", Some(collection.rows() as usize));
    let kept_of = kept_of_items(&items, &search);
    for row in 0..collection.rows() {
        progress.step();
        let item = items.of_row(row);
        let mut measure = |a, b| {
            let row = |kept| items.first_row(search.item(kept));
            search
                .passes(a, b)
                .then(|| similarity.at_least(collection, row(a), row(b), threshold))?
        };
        let joined = kept_of[item as usize].and_then(|kept| {
            or_out_of_memory(canonicals.place(&search.tokens, kept.get() - 1, &mut measure))
        });
        let (canonical, similarity) = match joined {
            Some((kept, similarity)) => (items.first_row(search.item(kept)), similarity),
            None => (items.first_row(item), 1.0),
        };
        put(collection, row, canonical, similarity, rows);
    }
}

/// One more than the kept number of each item that was kept.
fn kept_of_items(items: &Items, search: &Search) -> Vec<Option<std::num::NonZeroU32>> {
    let mut kept_of = Vec::new();
    or_out_of_memory(kept_of.try_reserve_exact(items.len() as usize));
    kept_of.resize(items.len() as usize, None);
    for kept in 0..search.tokens.rows() {
        kept_of[search.item(kept) as usize] = std::num::NonZeroU32::new(kept + 1);
    }
    kept_of
}

/// Each component's first row is its canonical one.
fn put_connected(collection: &mut Collection, prepared: Prepared, threshold: f64, rows: &mut Rows) {
    let Prepared {
        items,
        search,
        mut similarity,
    } = prepared;
    let mut sets = UnionFind::new();
    or_out_of_memory(sets.grow_to(search.tokens.rows()));
    let row_of = |kept| items.first_row(search.item(kept));
    search.for_each_group(&mut |key, group| {
        connect_group(&search.tokens, group, key, &mut sets, &mut |a, b| {
            let (first, second) = (row_of(a), row_of(b));
            search.passes(a, b)
                && similarity
                    .at_least(collection, first, second, threshold)
                    .is_some()
        });
    });
    let kept_of = kept_of_items(&items, &search);
    for item in 0..items.len() {
        let first = items.first_row(item);
        let canonical = match kept_of[item as usize] {
            Some(kept) => row_of(sets.find(kept.get() - 1)),
            None => first,
        };
        let measured = match canonical == first {
            true => 1.0,
            false => similarity
                .at_least(collection, canonical, first, 0.0)
                .unwrap_or(0.0),
        };
        for row in items.rows(item) {
            put(collection, row, canonical, measured, rows);
        }
    }
}

fn put(collection: &Collection, row: u32, canonical: u32, similarity: f64, rows: &mut Rows) {
    let key = |row| collection.keys.get(row);
    rows.put([key(row), key(canonical), similarity.into_datum()]);
}
