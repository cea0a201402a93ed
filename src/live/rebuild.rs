//! A refresh that computes all clusters anew.

use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::live::parameters::Parameters;
use crate::live::rows::{After, Rows};
use crate::live::shape::Shape;
use crate::pg::catalog::type_named;
use crate::pg::error::OrRaise;
use crate::pg::statement::{Connection, Snapshot, Tuple};
use neardup::memory::Grow;
use pgrx::{IntoDatum, pg_sys};

/// The columns of the query.
mod column {
    pub const PRESENT_KEY: usize = 1;
    pub const STORED_KEY: usize = 2;
    /// Cluster, canonical, similarity.
    pub const BEFORE: usize = 3;
    pub const JOINS: usize = 6;
    pub const SIGNATURE: usize = 7;
    pub const SCOPE: usize = 8;
}

/// Returns all rows with what becomes of each, and their numbers in the order of the table, rows that
/// are gone last.
///
/// # Errors
/// ERROR `invalid_parameter_value` where signatures were made with different parameters.
pub fn run(connection: &Connection, shape: &Shape, snapshot: &Snapshot) -> (Rows, Vec<u32>) {
    let mut rebuild = Rebuild {
        threshold: shape.tracker.threshold,
        signature_type: type_named(shape.tracker.schema, c"minhash_signature"),
        rows: Rows::default(),
        order: Vec::new(),
        parameters: Parameters::default(),
        scope: None,
        collection: None,
    };
    connection
        .prepare(&query(shape), &[])
        .read(snapshot, "reading", &mut |tuple| rebuild.add(tuple));
    rebuild.place_scope();
    (rebuild.rows, rebuild.order)
}

/// Returns a query for all rows in order, scope by scope, beside the clusters of before.
fn query(shape: &Shape) -> String {
    let scope: Vec<String> = shape
        .scope
        .iter()
        .map(|column| format!("b.{}", column.name))
        .collect();
    let scope = match &scope[..] {
        [] => "1::pg_catalog.int8".to_owned(),
        columns => format!(
            "pg_catalog.dense_rank() OVER (ORDER BY {})",
            columns.join(", ")
        ),
    };
    format!(
        "SELECT {key}, m.key::pg_catalog.text, m.cluster, m.canonical::pg_catalog.text,
             m.similarity, {joins}, b.{signature}, {scope}
         FROM {base} b FULL JOIN {clusters} m ON {matches}
         ORDER BY {scope_column}, {order}",
        key = shape.key.text_of("b"),
        joins = shape.joins(),
        signature = shape.signature(),
        base = shape.base(),
        clusters = shape.clusters(),
        matches = shape.key.matches("b", "m.key"),
        scope_column = column::SCOPE,
        order = shape.order.list_of_base(),
    )
}

struct Rebuild {
    threshold: f64,
    signature_type: pg_sys::Oid,
    rows: Rows,
    /// The rows in the order of the table.
    order: Vec<u32>,
    parameters: Parameters,
    /// The scope that is being read, with its rows.
    scope: Option<i64>,
    collection: Option<Collection>,
}

impl Rebuild {
    fn add(&mut self, tuple: &Tuple<'_>) {
        let (present, stored) = (
            tuple.text(column::PRESENT_KEY),
            tuple.text(column::STORED_KEY),
        );
        let Some(key) = present.as_ref().or(stored.as_ref()) else {
            return;
        };
        let number = self.rows.number(key);
        if let Some(stored) = stored.as_ref().filter(|stored| *stored != key) {
            self.rows.add_alias(stored, number);
        }
        self.rows.set_before(number, tuple, column::BEFORE);
        self.rows.set_stored_key(number, stored.as_deref());
        self.order.try_push(number).or_raise();
        if present.is_none() {
            self.rows.get_mut(number).after = After::Gone;
            return;
        }
        let signature = tuple.datum(column::SIGNATURE);
        self.parameters.check(signature);
        if tuple.get(column::JOINS) == Some(true) {
            return self.add_to_scope(number, tuple.get(column::SCOPE), signature);
        }
        self.rows.get_mut(number).after = After::In {
            canonical: number,
            similarity: None,
        };
    }

    fn add_to_scope(&mut self, number: u32, scope: Option<i64>, signature: Option<pg_sys::Datum>) {
        if self.scope != scope {
            self.place_scope();
            self.scope = scope;
        }
        let new = || Collection::of_types(pg_sys::INT8OID, self.signature_type, self.threshold);
        let collection = self.collection.get_or_insert_with(new);
        collection.push(i64::from(number).into_datum(), signature, None);
    }

    /// Places the rows of the scope that has been read.
    fn place_scope(&mut self) {
        let Some(collection) = self.collection.take() else {
            return;
        };
        let Some(mut matches) = Matches::of(collection) else {
            return;
        };
        matches.for_each_in_star(&mut |keys, similarity| {
            // The keys are the bigints of `add_to_scope`.
            if let [Some(row), Some(canonical)] = keys.map(|key| Some(key?.value())) {
                self.rows.get_mut(row as u32).after = After::In {
                    canonical: canonical as u32,
                    similarity: Some(similarity),
                };
            }
        });
    }
}
