//! Searches of a refresh that are known before it asks for them: those around the changed rows.

use crate::guard::search::scan_key;
use crate::guard::table::UsableIndex;
use crate::index::am::foreseen::Foreseen;
use crate::index::classes::{CONTAINED, EQUAL, RowKeys, Search};
use crate::live::indexes::rule;
use crate::live::shape::Shape;
use crate::pg::error::OrRaise;
use crate::pg::relation::Relation;
use crate::pg::statement::Tuple;
use neardup::memory::Grow;
use pgrx::pg_sys;

/// Rows from which on searching together is worth its preparation.
pub const MANY: i64 = 100;

/// Searches around rows, in the indexes of the table and of the canonical rows.
pub struct Ahead {
    indexes: Vec<Searched>,
    /// The number of scope columns.
    scope: usize,
}

/// An index with searches of it.
struct Searched {
    index: Relation,
    row_keys: RowKeys,
    /// The scope columns in front, by their places among all.
    scope: Vec<usize>,
    searches: Vec<Search>,
}

impl Ahead {
    /// Returns room for the searches around so many rows; none for few.
    pub fn new(shape: &Shape, rows: i64) -> Self {
        let tracker = &shape.tracker;
        let scope = tracker.scope.len();
        let mut indexes = Vec::new();
        if rows >= MANY {
            let names: Vec<String> = (1..=scope).map(|number| format!("scope{number}")).collect();
            indexes = indexes_of(shape, tracker.tables.canonical, "sig", &names);
            let (table, column) = (tracker.relation, &tracker.signature);
            indexes.extend(indexes_of(shape, table, column, &tracker.scope));
        }
        Self { indexes, scope }
    }

    /// Adds the searches for what is near a row, in its scope. From `first` on the tuple has the ball
    /// around the row's signature, and its scope columns.
    pub fn add(&mut self, tuple: &Tuple<'_>, first: usize) {
        let columns = first + 1..first + 1 + self.scope;
        let scope = columns.map(|column| tuple.datum(column));
        let (ball, scope) = (tuple.datum(first), scope.collect::<Option<Vec<_>>>());
        let (Some(ball), Some(scope)) = (ball, scope) else {
            return;
        };
        for searched in &mut self.indexes {
            let in_front = searched.scope.iter().zip(1..);
            let mut keys: Vec<_> = in_front
                .map(|(&place, column)| scan_key(column, EQUAL, scope[place]))
                .collect();
            keys.push(scan_key(searched.scope.len() as i16 + 1, CONTAINED, ball));
            // SAFETY: the values are of the types of the index's columns.
            let (search, _) = unsafe { searched.row_keys.search(&keys) };
            searched.searches.try_push(search).or_raise();
        }
    }

    /// Finds the candidates of all searches.
    pub fn find(self, foreseen: &mut Foreseen) {
        for searched in self.indexes {
            // SAFETY: the index is open, and of our access method.
            unsafe { foreseen.find(searched.index.as_ptr(), &searched.searches) };
        }
    }
}

/// Returns the indexes of a table and its partitions that find what is near.
fn indexes_of(shape: &Shape, table: pg_sys::Oid, column: &str, scope: &[String]) -> Vec<Searched> {
    let relation = Relation::open_table(table);
    let names = scope.iter().map(String::as_str);
    let tables = rule(&shape.tracker, &relation, column, names).tables(table);
    let usable = tables.iter().filter_map(|table| table.usable_index());
    usable.map(Searched::new).collect()
}

impl Searched {
    fn new(usable: &UsableIndex) -> Self {
        let index = Relation::open_index(usable.oid);
        Self {
            // SAFETY: the index is of our access method, and stays open.
            row_keys: unsafe { RowKeys::of_index(index.as_ptr()) },
            index,
            scope: usable.scope.clone(),
            searches: Vec::new(),
        }
    }
}
