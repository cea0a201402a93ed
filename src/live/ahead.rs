//! Searches of a refresh that are known before it asks for them: around the changed rows, and around the
//! members that have lost their canonical row.

use crate::guard::search::scan_key;
use crate::guard::table::UsableIndex;
use crate::index::am::foreseen::{FEW, Foreseen};
use crate::index::classes::{EQUAL, KeySearch, RowKeys};
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

/// Rows with the searches around them, in the indexes of the table and of the canonical rows.
pub struct Ahead {
    rows: Vec<u32>,
    of_table: Vec<Searched>,
    of_canonicals: Vec<Searched>,
    /// The number of scope columns.
    scope: usize,
}

/// An index with searches of it, one for each row.
struct Searched {
    index: Relation,
    row_keys: RowKeys,
    /// The scope columns in front, by their places among all.
    scope: Vec<usize>,
    /// The strategy of the operator that compares a value with a ball.
    strategy: u16,
    searches: Vec<KeySearch>,
}

/// Rows by the number of candidates near them.
#[derive(Default)]
pub struct Surrounded {
    pub by_none: Vec<u32>,
    pub by_few: Vec<u32>,
    /// Also where the number is not known.
    pub by_many: Vec<u32>,
}

impl Ahead {
    /// Returns room for about `rows` rows; few are not searched for.
    pub fn new(shape: &Shape, rows: i64) -> Self {
        let tracker = &shape.tracker;
        let scope = tracker.scope.len();
        let mut ahead = Self {
            rows: Vec::new(),
            of_table: Vec::new(),
            of_canonicals: Vec::new(),
            scope,
        };
        if rows >= MANY {
            let names: Vec<String> = (1..=scope).map(|number| format!("scope{number}")).collect();
            let (table, measure) = (tracker.relation, &tracker.measure);
            let (canonical, of_kept) = (tracker.tables.canonical, measure.of_kept());
            ahead.of_table = indexes_of(shape, measure, (table, &tracker.column), &tracker.scope);
            ahead.of_canonicals = indexes_of(shape, &of_kept, (canonical, "kept"), &names);
        }
        ahead
    }

    /// Adds a row. From `first` on the tuple has the balls around its value and around the keys that
    /// canonical rows keep of it, and its scope columns.
    pub fn add(&mut self, row: u32, tuple: &Tuple<'_>, first: usize) {
        let columns = first + 2..first + 2 + self.scope;
        let scope = columns.map(|column| tuple.datum(column));
        let scope = scope.collect::<Option<Vec<_>>>();
        self.rows.try_push(row).or_raise();
        let indexes = [&mut self.of_table, &mut self.of_canonicals];
        for (searched, column) in indexes.into_iter().zip(first..) {
            let ball = tuple.datum(column).zip(scope.as_deref());
            searched.iter_mut().for_each(|index| index.add(ball));
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows, with the candidates of all searches around them; a row with many others near it gets
    /// canonical rows alone.
    pub fn find(self, foreseen: &Foreseen, connection: &Connection) -> Surrounded {
        let snapshot = connection.snapshot();
        let snapshot = snapshot.expect("a refresh reads under a snapshot");
        let find = |searched: &Searched, searches: &[KeySearch]| {
            // SAFETY: the index is open, of our access method, and its table locked for the refresh.
            unsafe { foreseen.find(searched.index.as_ptr(), searches, snapshot) }
        };
        let unknown = if self.of_table.is_empty() { FEW + 1 } else { 0 };
        let mut candidates = filled(unknown, self.rows.len()).or_raise();
        for searched in &self.of_table {
            for (all, count) in candidates
                .iter_mut()
                .zip(find(searched, &searched.searches))
            {
                *all = count.map_or(usize::MAX, |count| count.saturating_add(*all));
            }
        }
        for searched in self.of_canonicals.iter() {
            let searches = searched.searches.iter().zip(&candidates);
            let of_many = searches.filter(|(_, count)| **count > FEW);
            let of_many = collected(of_many.map(|(search, _)| search.clone())).or_raise();
            find(searched, &of_many);
        }
        let mut surrounded = Surrounded::default();
        for (row, count) in self.rows.into_iter().zip(candidates) {
            let rows = match count {
                // Itself.
                1 => &mut surrounded.by_none,
                0..=FEW => &mut surrounded.by_few,
                _ => &mut surrounded.by_many,
            };
            rows.try_push(row).or_raise();
        }
        surrounded
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
    let tables = rule(&shape.tracker, measure, column, names).tables(table);
    let (_, strategy) = measure.kind.operator(1);
    let indexes = tables
        .iter()
        .map(|table| Some(Searched::new(table.usable_index()?, strategy)));
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
            scope: usable.scope.clone(),
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
            let in_front = self.scope.iter().zip(1..);
            let mut keys: Vec<_> = in_front
                .map(|(&place, column)| scan_key(column, EQUAL, scope[place]))
                .collect();
            keys.push(scan_key(self.scope.len() as i16 + 1, self.strategy, ball));
            // SAFETY: the values are of the types of the index's columns.
            (search, _) = unsafe { self.row_keys.search(&keys) };
        }
        self.searches.try_push(search).or_raise();
    }
}
