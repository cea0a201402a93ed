//! The queries of a refresh that goes out from changed rows.

use crate::index::kind::Kind;
use crate::live::shape::Shape;
use crate::pg::names;
use pgrx::pg_sys;

/// Returns the keys of the changed rows, in an order in which one lies near the next.
pub fn changed(shape: &Shape) -> String {
    let queue = names::relation(shape.tracker.tables.queue);
    format!("(SELECT DISTINCT q.key FROM {queue} q ORDER BY q.key)")
}

/// Returns a query for the keys of all rows of a leaf.
pub fn all_of_leaf(shape: &Shape, leaf: pg_sys::Oid) -> String {
    format!(
        "SELECT {} FROM {} b",
        shape.key.of("b"),
        names::relation(leaf)
    )
}

/// Returns a query for the keys of rows of the clusters that are not in the table any more.
pub fn gone(shape: &Shape) -> String {
    format!(
        "SELECT m.key FROM {} m WHERE NOT EXISTS (SELECT FROM {} b WHERE {})",
        shape.clusters(),
        shape.base(),
        shape.key.matches("b", "m.key")
    )
}

/// Returns the keys of the members of canonical rows, whose keys are the argument.
pub fn members_of(shape: &Shape) -> String {
    let (clusters, key) = (shape.clusters(), &shape.key);
    let canonical = key_of_argument(shape);
    format!(
        "(SELECT c.key FROM {ARGUMENT} JOIN {clusters} c ON {} AND NOT {})",
        key.equal("c.canonical", &canonical),
        key.equal("c.key", &canonical)
    )
}

/// The columns of [`known`].
pub mod known {
    pub const KEY: usize = 1;
    /// The key in the clusters, and in the table; NULL in the table for a row that is gone.
    pub const STORED_KEY: usize = 2;
    pub const PRESENT_KEY: usize = 3;
    /// Cluster, canonical, similarity.
    pub const BEFORE: usize = 4;
    /// True if the row can be near others.
    pub const JOINS: usize = 7;
    /// NULL unless it is a signature.
    pub const SIGNATURE: usize = 8;
    /// The balls of the value and of the form of it that canonical rows keep, the scope columns, and the
    /// row's place in the order.
    pub const BALLS: usize = 9;
}

/// Returns a query for the rows with some keys, as they were and as they are.
pub fn known(shape: &Shape, keys: &str) -> String {
    let (measure, value) = (&shape.tracker.measure, shape.value_of("b"));
    format!(
        "SELECT h.key::pg_catalog.text, m.key::pg_catalog.text, {key_of_base},
             m.cluster, m.canonical::pg_catalog.text, m.similarity,
             {joins}, {signature}, {ball}, {ball_of_kept}{scope}, {place}
         FROM {keys} h LEFT JOIN {clusters} m ON {same_key}
             LEFT JOIN {base} b ON {matches}",
        key_of_base = shape.key.text_of("b"),
        joins = shape.joins(),
        signature = match measure.kind {
            Kind::Minhash => &*value,
            _ => "NULL",
        },
        ball = measure.ball(&value),
        ball_of_kept = measure.of_kept().ball(&measure.kept(&value)),
        scope = shape.scope_of("b"),
        place = shape.order.of_base(),
        clusters = shape.clusters(),
        same_key = shape.key.equal("m.key", "h.key"),
        base = shape.base(),
        matches = shape.key.matches("b", "h.key"),
    )
}

/// The columns of [`canonicals`].
pub mod canonicals {
    /// The number of the row's key in the argument, from 1 on.
    pub const NUMBER: usize = 1;
    pub const KEY: usize = 2;
    pub const SIMILARITY: usize = 3;
    pub const CLUSTER: usize = 4;
    /// The canonical row's place in the order.
    pub const PLACE: usize = 5;
}

/// Returns a query for the rows that were canonical and are near the rows whose keys are its argument. If canonical
/// rows keep less than their values, the values come from the table.
pub fn canonicals(shape: &Shape) -> String {
    let (measure, value) = (&shape.tracker.measure, shape.value_of("b"));
    let of_kept = measure.of_kept();
    let (values, similarity) = match of_kept.kind == measure.kind {
        true => (String::new(), measure.similarity("ca.kept", &value)),
        false => {
            let (base, matches) = (shape.base(), shape.key.matches("c", "ca.key"));
            let similarity = measure.similarity(&shape.value_of("c"), &value);
            // Not looked for by its value: OFFSET keeps the condition where it is.
            let compared = format!("SELECT {similarity} AS similarity OFFSET 0");
            let threshold = measure.threshold();
            let joined = format!(
                " JOIN {base} c ON {matches} JOIN LATERAL ({compared}) s ON s.similarity >= {threshold}"
            );
            (joined, "s.similarity".to_owned())
        }
    };
    format!(
        "SELECT u.number, ca.key::pg_catalog.text, {similarity}, ca.cluster, {place}
         FROM {ARGUMENT} JOIN {base} b ON {matches} JOIN {canonical} ca ON {near}{scope}{values}",
        place = shape.order.of_canonical("ca"),
        base = shape.base(),
        matches = shape.key.matches("b", &key_of_argument(shape)),
        canonical = shape.canonical(),
        near = of_kept.near(&measure.kept(&value), "ca.kept"),
        scope = shape.canonical_in_scope(),
    )
}

/// The columns of [`neighbors`].
pub mod neighbors {
    /// The number of the row's key in the argument, from 1 on.
    pub const NUMBER: usize = 1;
    pub const KEY: usize = 2;
    pub const SIMILARITY: usize = 3;
    /// Cluster, canonical, similarity.
    pub const BEFORE: usize = 4;
    /// NULL for a row without a canonical one other than itself.
    pub const CANONICAL_CLUSTER: usize = 7;
    /// The row's place in the order, then its canonical row's.
    pub const PLACES: usize = 8;
}

/// Returns a query for the rows near the rows whose keys are the argument, each with its canonical row.
pub fn neighbors(shape: &Shape) -> String {
    let argument = key_of_argument(shape);
    let (measure, value) = (&shape.tracker.measure, shape.value_of("b"));
    let is_own = shape.key.equal("m.canonical", "m.key");
    format!(
        "SELECT u.number, ({key})::pg_catalog.text, {similarity},
             m.cluster, m.canonical::pg_catalog.text, m.similarity,
             ca.cluster, {place}, {canonical_place}
         FROM {ARGUMENT} JOIN {base} y ON {is_this}
             JOIN {base} b ON {near}{scope} AND NOT ({is_itself})
             LEFT JOIN {clusters} m ON {same_key}
             LEFT JOIN {canonical} ca ON {same_canonical}",
        key = shape.key.of("b"),
        similarity = measure.similarity(&value, &shape.value_of("y")),
        place = shape.order.of_base(),
        canonical_place = shape.order.of_canonical("ca"),
        base = shape.base(),
        is_this = shape.key.matches("y", &argument),
        near = measure.near(&value, &shape.value_of("y")),
        scope = shape.same_scope("b", "y"),
        is_itself = shape.key.matches("b", &argument),
        clusters = shape.clusters(),
        same_key = shape.key.equal("m.key", &shape.key.of("b")),
        canonical = shape.canonical(),
        // Without a key nothing is looked up.
        same_canonical = shape.key.equal(
            "ca.key",
            &format!("CASE WHEN NOT ({is_own}) THEN m.canonical END")
        ),
    )
}

/// The argument of a query, an array of keys as texts.
const ARGUMENT: &str = "pg_catalog.unnest($1) WITH ORDINALITY u (key, number)";

/// Returns a key of the argument.
fn key_of_argument(shape: &Shape) -> String {
    format!("u.key::{}", shape.key.type_)
}
