//! Recomputes all clusters.

use crate::collection::exceptions::Exceptions;
use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::index::kind::Kind;
use crate::live::measure::Measure;
use crate::live::rows::{After, TrackedParameters, TrackedRows, duplicate_key};
use crate::live::tracker::{Tracker, TrackerTable};
use crate::pg::prelude::*;
use crate::pg::statement::Tuple;
use neardup::cluster::live::NearCanonical;
use std::mem::replace;
use std::rc::Rc;

/// The columns of [`query`].
mod column {
    pub const PRESENT_KEY: usize = 1;
    pub const STORED_KEY: usize = 2;
    /// First of the columns cluster, canonical, similarity.
    pub const BEFORE: usize = 3;
    pub const VALUE: usize = 6;
    /// The number of the scope, NULL if a scope column is NULL.
    pub const SCOPE: usize = 7;
}

/// Returns all rows with their outcomes, and their numbers in the order in which [`query`] returns them.
///
/// # Errors
/// ERROR `invalid_parameter_value` if signatures have different parameters, `unique_violation` if two rows have the
/// same key, `not_null_violation` if a key is NULL.
pub fn run(connection: &Connection, tracker: &Tracker) -> (TrackedRows, Vec<u32>) {
    let mut rebuild = Rebuild {
        measure: tracker.measure,
        value_type: tracker.value.type_.type_,
        rows: TrackedRows::default(),
        order: Vec::new(),
        parameters: TrackedParameters::default(),
        exceptions: None,
        scope: None,
        collection: None,
    };
    rebuild.exceptions = exceptions(connection, tracker, &mut rebuild.rows);
    connection
        .prepare(&query(tracker), &[])
        .read("reading", &mut |tuple| rebuild.add(tuple));
    rebuild.place_scope();
    (rebuild.rows, rebuild.order)
}

/// Returns a query for all rows of the tracked table and of the clusters, sorted by scope and then by the tracker's
/// order.
fn query(tracker: &Tracker) -> String {
    let columns = tracker.scope.iter();
    let columns = columns.map(|column| format!("new.{}", column.sql));
    let scope = match &columns.collect::<Vec<_>>()[..] {
        [] => "1::pg_catalog.int8".to_owned(),
        columns => format!(
            "CASE WHEN num_nulls({list}) = 0 THEN pg_catalog.dense_rank() OVER (ORDER BY {list}) END",
            list = columns.join(", ")
        ),
    };
    let key = tracker.key_of("new");
    format!(
        "SELECT {key}::pg_catalog.text, m.key::pg_catalog.text, m.cluster, m.canonical::pg_catalog.text,
             m.similarity, {value}, {scope}
         FROM {base} FULL JOIN {clusters} m ON {matches}
         ORDER BY {scope_column}, {order}",
        value = tracker.value_of("new"),
        base = tracker.order.with_place(&tracker.base()),
        clusters = tracker.table(TrackerTable::Clusters),
        matches = tracker.equal(&key, "m.key"),
        scope_column = column::SCOPE,
        order = tracker.order.place_order_by_sql(),
    )
}

/// Returns the exceptions as pairs of row numbers, or None if the tracker has no exceptions table.
fn exceptions(
    connection: &Connection,
    tracker: &Tracker,
    rows: &mut TrackedRows,
) -> Option<Rc<Exceptions>> {
    let table = names::relation(tracker.tables.exceptions?);
    let [x, y] = ["x", "y"].map(|alias| tracker.key_of(alias));
    let sql = format!(
        "SELECT {x}::pg_catalog.text, {y}::pg_catalog.text
         FROM {table} e JOIN {base} x ON {is_a} JOIN {base} y ON {is_b}",
        base = tracker.base(),
        is_a = tracker.equal(&x, "e.a"),
        is_b = tracker.equal(&y, "e.b"),
    );
    let pairs = connection.prepare(&sql, &[]);
    Some(Rc::new(Exceptions::read(pg_sys::INT8OID, |put| {
        pairs.read("reading exceptions", &mut |tuple| {
            if let [Some(x), Some(y)] = [1, 2].map(|column| tuple.text(column)) {
                put([x, y].map(|key| pg_sys::Datum::from(rows.number(&key))));
            }
        });
    })))
}

struct Rebuild {
    measure: Measure,
    value_type: pg_sys::Oid,
    rows: TrackedRows,
    /// The rows in the order in which they are read.
    order: Vec<u32>,
    parameters: TrackedParameters,
    exceptions: Option<Rc<Exceptions>>,
    /// The scope that is being read. `collection` holds the rows of it that have been read.
    scope: Option<i64>,
    collection: Option<Collection>,
}

impl Rebuild {
    fn add(&mut self, tuple: &Tuple<'_>) {
        let present = tuple.text(column::PRESENT_KEY);
        let stored = tuple.text(column::STORED_KEY);
        let Some(key) = present.as_ref().or(stored.as_ref()) else {
            raise(
                PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION,
                "the key of a row of the tracked table is NULL",
                "The key of a tracker must not be NULL: give the row a key.",
            )
        };
        let number = self.rows.number(key);
        if self.rows.get(number).after != After::Same {
            duplicate_key(key);
        }
        self.rows.set_before(number, tuple, column::BEFORE);
        if let Some(former) = stored.as_ref().filter(|stored| *stored != key) {
            self.rows.rename(number, former);
            // The text that is no longer used must not come again, as the key of a row that equals this one.
            let former = self.rows.number(former);
            if replace(&mut self.rows.get_mut(former).after, After::Gone) != After::Same {
                duplicate_key(key);
            }
        }
        self.order.try_push(number).or_raise();
        if present.is_none() {
            self.rows.get_mut(number).after = After::Gone;
            return;
        }
        // The row stands alone unless `place_scope` places it in a cluster.
        self.rows.get_mut(number).after = After::There(None);
        let value = tuple.value(column::VALUE, self.value_type);
        if self.measure.kind == Kind::Minhash {
            self.parameters.check(value).or_raise();
        }
        let Some(scope) = tuple.get(column::SCOPE) else {
            return;
        };
        if self.scope != Some(scope) {
            self.place_scope();
            self.scope = Some(scope);
        }
        let bound = self.measure.bound;
        let collection = self
            .collection
            .get_or_insert_with(|| Collection::of_bound(pg_sys::INT8OID, bound));
        // SAFETY: the key is a bigint, and the value is of the bound's kind.
        unsafe { collection.push(i64::from(number).into_datum(), value) };
    }

    /// Computes the clusters of the scope that has been read.
    fn place_scope(&mut self) {
        let Some(mut collection) = self.collection.take() else {
            return;
        };
        collection.end();
        collection.except(self.exceptions.clone());
        let Some(mut matches) = Matches::of(collection) else {
            return;
        };
        matches.for_each_in_star(&mut |keys, similarity| {
            // The keys are the bigints that `add` pushes.
            if let [Some(row), Some(canonical)] = keys.map(|key| Some(key?.value())) {
                self.rows.get_mut(row as u32).after = After::There(Some(NearCanonical {
                    canonical: canonical as u32,
                    similarity,
                }));
            }
        });
    }
}
