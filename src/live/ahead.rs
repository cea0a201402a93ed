//! Searches of a refresh that are known before it asks for them: around the changed rows, and around the
//! members that have lost their canonical row.

use crate::guard::table::UsableIndex;
use crate::guard::window::Span;
use crate::index::am::foreseen::{FEW, Foreseen};
use crate::index::classes::{KeySearch, RowKeys};
use crate::live::measure::Measure;
use crate::live::shape::Shape;
use crate::live::tracker::rule;
use crate::pg::error::OrRaise;
use crate::pg::relation::Relation;
use crate::pg::statement::{Connection, Tuple};
use neardup::memory::{Grow, collected, filled};
use pgrx::pg_sys;

/// Rows from which on searching together is worth its preparation.
const MANY: i64 = 100;

/// Rows with the searches around them.
pub struct Ahead {
    rows: Vec<u32>,
    /// In the indexes of the table, and of the canonical rows.
    searched: [Vec<Searched>; 2],
    /// The number of scope columns.
    scope: usize,
}

/// An index with searches of it, one for each row.
struct Searched {
    index: Relation,
    usable: UsableIndex,
    row_keys: RowKeys,
    /// The strategy of the operator that compares a value with a ball.
    strategy: u16,
    searches: Vec<KeySearch>,
}

/// Candidates of a row that has no other one near it: itself.
pub const ALONE: usize = 1;

impl Ahead {
    /// Returns room for about `rows` rows; few are not searched for.
    pub fn new(shape: &Shape, rows: i64) -> Self {
        let tracker = &shape.tracker;
        let scope = tracker.scope.len();
        let searched = || {
            let names: Vec<String> = (1..=scope).map(|number| format!("scope{number}")).collect();
            let (table, measure) = (tracker.relation, &tracker.measure);
            let (canonical, of_kept) = (tracker.tables.canonical, measure.of_kept());
            [
                indexes_of(shape, measure, (table, &tracker.column), &tracker.scope),
                indexes_of(shape, &of_kept, (canonical, "kept"), &names),
            ]
        };
        Self {
            rows: Vec::new(),
            searched: (rows >= MANY).then(searched).unwrap_or_default(),
            scope,
        }
    }

    /// Adds a row. From `first` on the tuple has the balls around its value and around the keys that
    /// canonical rows keep of it, and its scope columns.
    pub fn add(&mut self, row: u32, tuple: &Tuple<'_>, first: usize) {
        let columns = first + 2..first + 2 + self.scope;
        let scope = columns.map(|column| tuple.datum(column));
        let scope = scope.collect::<Option<Vec<_>>>();
        self.rows.try_push(row).or_raise();
        for (searched, column) in self.searched.iter_mut().zip(first..) {
            let ball = tuple.datum(column).zip(scope.as_deref());
            searched.iter_mut().for_each(|index| index.add(ball));
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows, each with the number of candidates near it, more than [`FEW`] where that is not known.
    /// Finds the candidates of all searches around them; a row with many others near it gets canonical rows alone.
    pub fn find(self, foreseen: &Foreseen, connection: &Connection) -> Vec<(u32, usize)> {
        let snapshot = connection.snapshot();
        let snapshot = snapshot.expect("a refresh reads under a snapshot");
        let find = |searched: &Searched, searches: &[KeySearch]| {
            // SAFETY: the index is open, of our access method, and its table locked for the refresh.
            unsafe { foreseen.find(searched.index.as_ptr(), searches, snapshot) }
        };
        let [of_table, of_canonicals] = &self.searched;
        let unknown = if of_table.is_empty() { FEW + 1 } else { 0 };
        let mut candidates = filled(unknown, self.rows.len()).or_raise();
        for searched in of_table {
            let counts = find(searched, &searched.searches);
            for (all, count) in candidates.iter_mut().zip(counts) {
                *all = count.map_or(usize::MAX, |count| count.saturating_add(*all));
            }
        }
        for searched in of_canonicals {
            let searches = searched.searches.iter().zip(&candidates);
            let of_many = searches.filter(|(_, count)| **count > FEW);
            let of_many = collected(of_many.map(|(search, _)| search.clone())).or_raise();
            find(searched, &of_many);
        }
        collected(self.rows.into_iter().zip(candidates)).or_raise()
    }
}

/// Returns the indexes of a table and its partitions that find the values near another; none unless each
/// has one that finds them under every snapshot.
fn indexes_of(
    shape: &Shape,
    measure: &Measure,
    (table, column): (pg_sys::Oid, &str),
    scope: &[String],
) -> Vec<Searched> {
    let names = scope.iter().map(String::as_str);
    let tables = rule(&shape.tracker, measure, column, names).tables(table, Span::ALWAYS);
    let (_, strategy) = measure.kind.operator(1);
    let indexes = tables
        .iter()
        .map(|table| Some(Searched::new(table.index.as_ref()?, strategy)));
    let indexes: Option<Vec<_>> = indexes.collect();
    indexes
        .filter(|indexes| indexes.iter().all(Searched::is_whole))
        .unwrap_or_default()
}

impl Searched {
    fn new(usable: &UsableIndex, strategy: u16) -> Self {
        let index = Relation::open_index(usable.oid);
        Self {
            // SAFETY: the index is of our access method, and stays open.
            row_keys: unsafe { RowKeys::of_index(index.as_ptr()) },
            index,
            usable: usable.clone(),
            strategy,
            searches: Vec::new(),
        }
    }

    /// Returns whether the index has the versions of rows that old snapshots see.
    fn is_whole(&self) -> bool {
        !self.index.description().indcheckxmin
    }

    /// Adds the search for the values in a row's ball, within its scope columns.
    fn add(&mut self, ball: Option<(pg_sys::Datum, &[pg_sys::Datum])>) {
        let mut search = KeySearch::Nothing;
        if let Some((ball, scope)) = ball {
            let scope = |place: usize| scope.get(place).copied();
            let keys = self.usable.scan_keys(&scope, self.strategy, ball);
            // SAFETY: the values are of the types of the index's columns.
            (search, _) = unsafe { self.row_keys.search(&keys) };
        }
        self.searches.try_push(search).or_raise();
    }
}
