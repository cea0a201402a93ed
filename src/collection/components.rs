//! Connected components of any list of edges.

use crate::pg::call::Call;
use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::progress::Progress;
use crate::pg::query::Query;
use crate::pg::value::Keys;
use crate::pg::value_sort::ValueSort;
use neardup::cluster::UnionFind;
use neardup::memory::filled;
use pgrx::prelude::*;

/// No key: the other end of an edge from a key to nothing.
const NONE: u32 = u32::MAX;

/// Implements `connected_components(key, query, params)`: every key of the edges with the smallest key of
/// its component, by the order of the type. An edge with a NULL end only names its other end.
///
/// # Errors
/// `datatype_mismatch` for columns of other types, `undefined_function` for a type without order.
#[pg_extern(sql = false)]
fn connected_components(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let key_type = call.argument_type(0);
    let mut ends = ValueSort::begin(key_type);
    let edges = read(&call, key_type, &mut ends);
    let mut keys = Keys::new(key_type);
    let mut places = filled(NONE, 2 * edges).or_raise();
    let mut progress = Progress::begin("sorting keys", Some(2 * edges));
    ends.for_each(&mut keys, &mut |place, end| {
        progress.step();
        places[end as usize] = place;
    });
    let mut sets = UnionFind::new();
    or_out_of_memory(sets.grow_to(keys.len() as u32));
    let (edges, _) = places.as_chunks::<2>();
    for &[a, b] in edges {
        if a != NONE && b != NONE {
            sets.union(a, b);
        }
    }
    let mut rows = call.rows();
    let mut progress = Progress::begin("listing keys", Some(keys.len()));
    for key in 0..keys.len() as u32 {
        progress.step();
        rows.put([keys.get(key), keys.get(sets.find(key))]);
    }
}

/// Puts the ends of all edges, two numbers an edge, and returns how many edges there are.
fn read(call: &Call, key_type: pg_sys::Oid, ends: &mut ValueSort) -> usize {
    let query = Query::open(call, 1, "query");
    let [a, b] = query.exactly("Valid are two columns: the keys at the two ends of an edge.");
    let columns = [
        a.of_type(key_type, "first", "key at one end of the edge"),
        b.of_type(key_type, "second", "key at the other end of the edge"),
    ];
    let mut progress = query.progress("reading");
    let mut edges = 0;
    query.for_each(&mut |row| {
        progress.step();
        for (end, column) in (0..).zip(columns) {
            if let Some(key) = row.get(column) {
                ends.put(key, 2 * edges + end);
            }
        }
        edges += 1;
    });
    edges as usize
}
