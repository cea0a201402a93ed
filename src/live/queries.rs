//! The queries of a refresh that goes out from changed rows.

use crate::live::shape::Shape;
use crate::pg::names;

/// Returns the keys of the changed rows.
pub fn changed(shape: &Shape) -> String {
    let queue = names::relation(shape.tracker.tables.queue);
    format!("(SELECT DISTINCT q.key FROM {queue} q)")
}

/// Returns the keys of the members of canonical rows, whose keys are the argument.
pub fn members_of(shape: &Shape) -> String {
    let (clusters, key) = (shape.clusters(), &shape.key);
    let canonical = format!("u.key::{}", key.type_);
    format!(
        "(SELECT c.key FROM pg_catalog.unnest($1) u (key) JOIN {clusters} c ON {} AND NOT {})",
        key.equal("c.canonical", &canonical),
        key.equal("c.key", &canonical)
    )
}

/// The columns of [`noted`].
pub mod noted {
    pub const KEY: usize = 1;
    /// The key in the clusters, and in the table.
    pub const STORED_KEY: usize = 2;
    pub const PRESENT_KEY: usize = 3;
    /// Cluster, canonical, similarity.
    pub const BEFORE: usize = 4;
    pub const SIGNATURE: usize = 7;
    /// Everything near the signature, and the scope columns.
    pub const BALL: usize = 8;
}

/// Returns a query about changed rows.
pub fn noted(shape: &Shape) -> String {
    format!(
        "SELECT h.key::pg_catalog.text, m.key::pg_catalog.text, {key_of_base},
             m.cluster, m.canonical::pg_catalog.text, m.similarity, b.{signature}, {ball}{scope}
         FROM {changed} h LEFT JOIN {clusters} m ON {same_key}
             LEFT JOIN {base} b ON {matches}",
        key_of_base = shape.key.text_of("b"),
        signature = shape.signature(),
        ball = shape.ball(&format!("b.{}", shape.signature())),
        scope = shape.scope_of("b"),
        changed = changed(shape),
        clusters = shape.clusters(),
        same_key = shape.key.equal("m.key", "h.key"),
        base = shape.base(),
        matches = shape.key.matches("b", "h.key"),
    )
}

/// Returns a query for the balls around rows with keys, each with the scope columns.
pub fn balls(shape: &Shape, keys: &str) -> String {
    format!(
        "SELECT {}{} FROM {keys} h JOIN {} b ON {}",
        shape.ball(&format!("b.{}", shape.signature())),
        shape.scope_of("b"),
        shape.base(),
        shape.key.matches("b", "h.key"),
    )
}

/// The columns of [`affected`].
pub mod affected {
    pub const KEY: usize = 1;
    /// Cluster, canonical, similarity.
    pub const BEFORE: usize = 2;
    /// NULL for a row that is gone.
    pub const PRESENT_KEY: usize = 5;
    /// True if the row can be near others.
    pub const JOINS: usize = 6;
    /// Of a row near it that was canonical; NULL where there is none.
    pub const CANONICAL: usize = 7;
    pub const SIMILARITY: usize = 8;
    pub const CANONICAL_CLUSTER: usize = 9;
    /// The row's place in the order, then the canonical row's.
    pub const PLACES: usize = 10;
}

/// Returns a query for rows with keys: what each was, what it is, and with each row that was canonical
/// and is near.
pub fn affected(shape: &Shape, keys: &str) -> String {
    let (base, clusters, canonical) = (shape.base(), shape.clusters(), shape.canonical());
    let signature = format!("b.{}", shape.signature());
    format!(
        "SELECT h.key::pg_catalog.text, m.cluster, m.canonical::pg_catalog.text, m.similarity,
             {key_of_base}, {joins},
             ca.key::pg_catalog.text, {similarity}, ca.cluster, {place}, {canonical_place}
         FROM {keys} h LEFT JOIN {clusters} m ON {same_key}
             LEFT JOIN {base} b ON {matches}
             LEFT JOIN {canonical} ca ON {near}{scope}",
        key_of_base = shape.key.text_of("b"),
        joins = shape.joins(),
        similarity = shape.similarity("ca.sig", &signature),
        place = shape.order.of_base(),
        canonical_place = shape.order.of_canonical("ca"),
        same_key = shape.key.equal("m.key", "h.key"),
        matches = shape.key.matches("b", "h.key"),
        near = shape.near("ca.sig", &signature),
        scope = shape.canonical_in_scope(),
    )
}

/// The columns of [`neighbors`].
pub mod neighbors {
    pub const KEY: usize = 1;
    pub const SIMILARITY: usize = 2;
    /// Cluster, canonical, similarity.
    pub const BEFORE: usize = 3;
    /// NULL for a row without a canonical one.
    pub const CANONICAL_CLUSTER: usize = 6;
    /// The row's place in the order, then its canonical row's.
    pub const PLACES: usize = 7;
}

/// Returns a query for the rows near one, whose key is the argument, each with its canonical row.
pub fn neighbors(shape: &Shape) -> String {
    let (base, clusters, canonical) = (shape.base(), shape.clusters(), shape.canonical());
    let argument = format!("$1::{}", shape.key.type_);
    let signature = |alias: &str| format!("{alias}.{}", shape.signature());
    format!(
        "SELECT ({key})::pg_catalog.text, {similarity},
             m.cluster, m.canonical::pg_catalog.text, m.similarity,
             ca.cluster, {place}, {canonical_place}
         FROM {base} y JOIN {base} b ON {near}{scope}
             LEFT JOIN {clusters} m ON {same_key}
             LEFT JOIN {canonical} ca ON {same_canonical}
         WHERE {is_this} AND NOT ({is_itself})",
        key = shape.key.of("b"),
        similarity = shape.similarity(&signature("b"), &signature("y")),
        place = shape.order.of_base(),
        canonical_place = shape.order.of_canonical("ca"),
        near = shape.near(&signature("b"), &signature("y")),
        scope = shape.same_scope("b", "y"),
        same_key = shape.key.equal("m.key", &shape.key.of("b")),
        same_canonical = shape.key.equal("ca.key", "m.canonical"),
        is_this = shape.key.matches("y", &argument),
        is_itself = shape.key.matches("b", &argument),
    )
}
