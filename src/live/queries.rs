//! The queries of a refresh that searches around changed rows.

use crate::index::kind::Kind;
use crate::live::tracker::{Tracker, TrackerTable};

/// Returns a query for the keys of the changed rows. A NULL means that any row may have changed.
pub fn queue(tracker: &Tracker) -> String {
    let queue = tracker.table(TrackerTable::Queue);
    format!("SELECT DISTINCT q.key::pg_catalog.text FROM {queue} q")
}

/// The columns of [`itself`] and [`members`].
pub mod known {
    pub const KEY: usize = 1;
    /// The key in the clusters table, NULL if the row is not there.
    pub const STORED_KEY: usize = 2;
    /// The key in the tracked table, NULL if the row is not there.
    pub const PRESENT_KEY: usize = 3;
    /// First of the columns cluster, canonical, similarity.
    pub const BEFORE: usize = 4;
    /// True if the row can be near others.
    pub const JOINS: usize = 7;
    /// The value if it is a signature, else NULL.
    pub const SIGNATURE: usize = 8;
    /// First of the columns that hold the row's place in the order.
    pub const PLACE: usize = 9;
}

/// Returns a query for the row with the key `$1`, in the clusters and in the tracked table.
pub fn itself(tracker: &Tracker) -> String {
    let keys = format!("(SELECT {} AS key)", argument(tracker));
    let signature = match tracker.measure.kind {
        Kind::Minhash => tracker.value_of("new"),
        _ => "NULL".to_owned(),
    };
    known(tracker, &keys, &tracker.joins(), &signature)
}

/// Returns a query for the other members of the cluster whose canonical row has the key `$1`. It does not check whether
/// they can be near others: unchanged members can.
pub fn members(tracker: &Tracker) -> String {
    let argument = argument(tracker);
    let keys = format!(
        "(SELECT c.key FROM {} c WHERE {} AND NOT {})",
        tracker.table(TrackerTable::Clusters),
        tracker.equal("c.canonical", &argument),
        tracker.equal("c.key", &argument)
    );
    known(tracker, &keys, "true", "NULL")
}

/// Returns a query for the rows whose keys the FROM item `keys` returns, in the clusters and in the tracked table.
/// `joins` and `signature` are the expressions of the columns JOINS and SIGNATURE.
fn known(tracker: &Tracker, keys: &str, joins: &str, signature: &str) -> String {
    let key = tracker.key_of("new");
    format!(
        "SELECT h.key::pg_catalog.text, m.key::pg_catalog.text, {key}::pg_catalog.text,
             m.cluster, m.canonical::pg_catalog.text, m.similarity, {joins}, {signature}, {place}
         FROM {keys} h LEFT JOIN {clusters} m ON {same_key} LEFT JOIN {base} ON {matches}",
        place = tracker.order.values_sql("place"),
        clusters = tracker.table(TrackerTable::Clusters),
        same_key = tracker.equal("m.key", "h.key"),
        base = tracker.order.with_place(&tracker.base()),
        matches = tracker.equal(&key, "h.key"),
    )
}

/// The columns of [`canonicals`].
pub mod canonicals {
    pub const KEY: usize = 1;
    pub const SIMILARITY: usize = 2;
    /// The canonical row's cluster. The columns of the row's place in the order follow.
    pub const CLUSTER: usize = 3;
}

/// Returns a query for the canonical rows near the row with the key `$1`.
pub fn canonicals(tracker: &Tracker) -> String {
    let (measure, value) = (&tracker.measure, tracker.value_of("new"));
    format!(
        "SELECT ca.key::pg_catalog.text, {similarity}, ca.cluster, {place}
         FROM {base} new JOIN {canonical} ca ON {near}{scope}{excepted} WHERE {is_this}",
        similarity = measure.similarity("ca.kept", &value),
        base = tracker.base(),
        place = tracker.order.values_sql("ca"),
        canonical = tracker.table(TrackerTable::Canonical),
        near = measure.near(&value, "ca.kept"),
        scope = tracker.in_scope(|number, _| format!("ca.scope{number}")),
        excepted = tracker.not_excepted("ca.key", &tracker.key_of("new")),
        is_this = tracker.equal(&tracker.key_of("new"), &argument(tracker)),
    )
}

/// The columns of [`neighbors`].
pub mod neighbors {
    pub const KEY: usize = 1;
    pub const SIMILARITY: usize = 2;
    /// First of the columns cluster, canonical, similarity.
    pub const BEFORE: usize = 3;
    /// First of the columns that hold the row's place in the order. Then come the cluster and place of the row's
    /// canonical row, NULL if the row has no canonical row other than itself.
    pub const PLACE: usize = 6;
}

/// Returns a query for the rows near the row with the key `$1`, each with its canonical row.
pub fn neighbors(tracker: &Tracker) -> String {
    let argument = argument(tracker);
    let (measure, value) = (&tracker.measure, tracker.value_of("new"));
    let (key, base) = (tracker.key_of("new"), tracker.base());
    let is_own = tracker.equal("m.canonical", "m.key");
    format!(
        "SELECT {key}::pg_catalog.text, {similarity},
             m.cluster, m.canonical::pg_catalog.text, m.similarity,
             {place}, ca.cluster, {canonical_place}
         FROM {base} y JOIN {base} new ON {near}{scope}{excepted} AND NOT ({is_itself})
             LEFT JOIN {clusters} m ON {same_key}
             LEFT JOIN {canonical} ca ON {same_canonical}
         WHERE {is_this}",
        similarity = measure.similarity(&value, &tracker.value_of("y")),
        place = tracker.order.new_values_sql(),
        canonical_place = tracker.order.values_sql("ca"),
        near = measure.near(&value, &tracker.value_of("y")),
        scope = tracker.in_scope(|_, column| format!("y.{}", column.sql)),
        excepted = tracker.not_excepted(&key, &tracker.key_of("y")),
        is_itself = tracker.equal(&key, &argument),
        is_this = tracker.equal(&tracker.key_of("y"), &argument),
        clusters = tracker.table(TrackerTable::Clusters),
        same_key = tracker.equal("m.key", &key),
        canonical = tracker.table(TrackerTable::Canonical),
        // A NULL finds no canonical row.
        same_canonical = tracker.equal(
            "ca.key",
            &format!("CASE WHEN NOT ({is_own}) THEN m.canonical END")
        ),
    )
}

/// Returns `$1`, a text, cast to the type of keys.
fn argument(tracker: &Tracker) -> String {
    format!("$1::{}", tracker.key_type())
}
