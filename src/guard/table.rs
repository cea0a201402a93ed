//! The tables that a guard searches, and their indexes.

use crate::guard::columns::GuardColumns;
use crate::guard::options::GuardOptions;
use crate::guard::window::{self, Span};
use crate::index::classes::EQUAL;
use crate::index::kind::{Bound, COLUMN_TYPES, Kind, Objects};
use crate::pg::encoding::utf8;
use crate::pg::error::{not_ready, raise, wrong_type};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation, key_columns};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::Cell;
use std::ffi::CString;

/// The options of a guard and what follows from them for the tables under one root.
pub struct Rule {
    pub options: GuardOptions,
    pub kind: Kind,
    pub bound: Bound,
    pub objects: Objects,
}

/// An open table to search: the guarded table, or a partition under the same root.
pub struct SearchedTable {
    pub table: Relation,
    /// The partitioned tables that it belongs to, the root first.
    ancestors: Vec<pg_sys::Oid>,
    /// The time span of its rows.
    pub span: Span,
    pub columns: GuardColumns,
    /// None if the table has no usable index.
    pub index: Option<UsableIndex>,
    /// The number of the first table that is searched for the same keys.
    pub like: usize,
    /// The first row number of the current round.
    pub from: Cell<u64>,
    /// The number of the next row when the current round began.
    pub next: Cell<u64>,
}

/// An open partitioned table, with its partitions when they were listed.
pub struct PartitionedTable {
    table: Relation,
    partitions: Vec<pg_sys::Oid>,
}

impl PartitionedTable {
    /// Returns whether the table has different partitions now, by committed transactions.
    pub fn has_changed(&self) -> bool {
        self.table.partitions() != self.partitions
    }
}

/// An open index that finds all rows within the bound.
pub struct UsableIndex {
    pub index: Relation,
    /// The scope columns before the value, by their places among those of the guard.
    pub scope: Vec<usize>,
}

impl Rule {
    /// # Errors
    /// `datatype_mismatch` for a column that cannot be compared, and the errors of [`GuardColumns::of`] and
    /// [`GuardOptions::bound`]. `function` is any function of the extension.
    pub fn new(table: &Relation, options: GuardOptions, function: pg_sys::Oid) -> Self {
        let columns = GuardColumns::of(table, &options);
        let value = ColumnType::of(table.oid(), columns.value).type_;
        // SAFETY: looks the function up in the catalog.
        let schema = unsafe { pg_sys::get_func_namespace(function) };
        let Some(kind) = Kind::of_type(value, schema) else {
            let column = names::identifier(&utf8(&options.column));
            let value_type = names::type_(value);
            wrong_type(
                &format!("column {column} of type {value_type} cannot be compared"),
                COLUMN_TYPES,
            );
        };
        Self {
            kind,
            bound: options.bound(kind),
            objects: kind.objects(function),
            options,
        }
    }

    /// Returns the tables under `root` that can contain rows of `span`, and the partitioned tables above them.
    ///
    /// # Errors
    /// `wrong_object_type` for a foreign table, and the errors of [`GuardColumns::of`].
    pub fn tables(
        &self,
        root: pg_sys::Oid,
        span: Span,
    ) -> (Vec<SearchedTable>, Vec<PartitionedTable>) {
        let mut found = (Vec::new(), Vec::new());
        self.add_tables(root, &[], (Span::ALWAYS, span), &mut found);
        found
    }

    /// Adds the tables under `table`, whose rows are in `span`, that can contain rows in the `wanted` span.
    fn add_tables(
        &self,
        table: pg_sys::Oid,
        ancestors: &[pg_sys::Oid],
        (span, wanted): (Span, Span),
        found: &mut (Vec<SearchedTable>, Vec<PartitionedTable>),
    ) {
        let relation = Relation::open_table(table);
        match relation.kind() {
            pg_sys::RELKIND_PARTITIONED_TABLE => {
                let ancestors = [ancestors, &[table]].concat();
                let window = GuardColumns::window(&relation, &self.options);
                let partitions = window::partitions(&relation, window, span);
                found.1.push(PartitionedTable {
                    table: relation,
                    partitions: partitions.iter().map(|(partition, _)| *partition).collect(),
                });
                for (partition, span) in partitions {
                    if span.meets(wanted) {
                        self.add_tables(partition, &ancestors, (span, wanted), found);
                    }
                }
            }
            pg_sys::RELKIND_RELATION => {
                let columns = GuardColumns::of(&relation, &self.options);
                found.0.push(SearchedTable {
                    ancestors: ancestors.to_vec(),
                    span,
                    index: self.usable_index(&relation, &columns),
                    columns,
                    table: relation,
                    like: found.0.len(),
                    from: Cell::new(0),
                    next: Cell::new(0),
                });
            }
            pg_sys::RELKIND_FOREIGN_TABLE => foreign(table, ancestors),
            _ => {}
        }
    }

    /// Returns the index that finds all rows within the bound. If there are several, returns the first with the most
    /// scope columns before the value.
    fn usable_index(&self, table: &Relation, columns: &GuardColumns) -> Option<UsableIndex> {
        let usable = table.indexes().into_iter().filter_map(|oid| {
            let keys = key_columns(oid);
            let (&value, in_front) = keys.split_last()?;
            if value != columns.value {
                return None;
            }
            let index = Relation::open_index(oid);
            let (state, place) = (index.description(), in_front.len());
            let is_usable =
                state.indisvalid && state.indisready && self.is_served(&index, table, place);
            let scope = is_usable.then(|| scope_in_front(&index, in_front, columns))??;
            Some(UsableIndex { index, scope })
        });
        usable.reduce(|best, other| match other.scope.len() > best.scope.len() {
            true => other,
            false => best,
        })
    }

    /// Returns whether an index with the value at `place` finds all rows within the bound.
    fn is_served(&self, index: &Relation, table: &Relation, place: usize) -> bool {
        let index = index.as_ptr();
        // SAFETY: the index is open, and has a family and options for each column.
        unsafe {
            let family = *(*index).rd_opfamily.add(place);
            let predicate = pg_sys::RelationGetIndexPredicate(index);
            let condition = self.options.condition.as_ref();
            let has_all = predicate.is_null()
                || condition.is_some_and(|condition| {
                    pg_sys::predicate_implied_by(predicate, condition.conjuncts(table), false)
                });
            let is_ours = self.kind.has_family(family, self.objects.value_type);
            let options = || *pg_sys::RelationGetIndexAttOptions(index, false).add(place);
            has_all && is_ours && self.bound.is_served(options(), None)
        }
    }
}

/// Returns the scope columns before the value in an index, or None if there are other columns.
fn scope_in_front(
    index: &Relation,
    in_front: &[i16],
    columns: &GuardColumns,
) -> Option<Vec<usize>> {
    let scope = in_front.iter().enumerate().map(|(place, &number)| {
        columns.scope.iter().position(|column| {
            // SAFETY: the index is open, and has that column.
            column.number == number && unsafe { column.is_compared_by(index.as_ptr(), place) }
        })
    });
    scope.collect()
}

impl UsableIndex {
    /// Returns the scan keys of a search for the values in a ball, restricted to the values of scope columns that are
    /// not NULL.
    pub fn scan_keys(
        &self,
        scope: &dyn Fn(usize) -> Option<pg_sys::Datum>,
        strategy: u16,
        ball: pg_sys::Datum,
    ) -> Vec<pg_sys::ScanKeyData> {
        // The access method needs no comparison function.
        let scan_key = |column, strategy, argument| pg_sys::ScanKeyData {
            sk_attno: column,
            sk_strategy: strategy,
            sk_argument: argument,
            ..Default::default()
        };
        let in_front = self.scope.iter().zip(1..);
        let in_front =
            in_front.filter_map(|(&place, column)| Some(scan_key(column, EQUAL, scope(place)?)));
        let ball = scan_key(self.scope.len() as i16 + 1, strategy, ball);
        in_front.chain([ball]).collect()
    }
}

impl SearchedTable {
    /// Returns whether row-level security of the table, or of a partitioned table above it, hides rows from the role.
    pub fn hides_rows(&self) -> bool {
        let enabled = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
        self.ancestors.iter().chain([&self.oid()]).any(|&table| {
            // SAFETY: the table exists; no ERROR where `row_security` is off.
            unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) == enabled }
        })
    }

    pub fn oid(&self) -> pg_sys::Oid {
        self.table.oid()
    }

    /// Returns the index. `check_index` has found one.
    pub fn open_index(&self) -> &UsableIndex {
        self.index.as_ref().expect("the index has been checked")
    }

    /// Checks that the table has a usable index with the first `scope` scope columns in front.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` with a hint that serves all partitions.
    pub fn check_index(&self, rule: &Rule, caller: &str, scope: usize) {
        let index = self.index.as_ref();
        if index.is_some_and(|index| index.scope.len() >= scope) {
            return;
        }
        let Rule { options, bound, .. } = rule;
        let name = |column: &CString| names::identifier(&utf8(column));
        let mut columns: Vec<_> = options.scope[..scope].iter().map(name).collect();
        let scope_class = rule.objects.scope_class();
        let scope = columns.iter().map(|name| format!("{name} {scope_class}, "));
        let scope = scope.collect::<String>();
        let (value, class) = (name(&options.column), bound.operator_class(&rule.objects));
        let table = names::relation(self.oid());
        let root = names::relation(*self.ancestors.first().unwrap_or(&self.oid()));
        columns.push(value.clone());
        not_ready(
            &format!(
                "{caller} needs an index of ({}) on table {table} that serves threshold {}",
                columns.join(", "),
                options.bound
            ),
            &format!("CREATE INDEX ON {root} USING neardup ({scope}{value} {class});"),
        )
    }
}

/// Returns the root of the partitions that a table belongs to, or the table if it is not a partition.
pub fn root_of(table: pg_sys::Oid) -> pg_sys::Oid {
    let root = pg_sys::Oid::from(pg_sys::F_PG_PARTITION_ROOT);
    // SAFETY: looks into the catalog; the function takes one regclass.
    unsafe {
        if !pg_sys::get_rel_relispartition(table) {
            return table;
        }
        let root = pg_sys::OidFunctionCall1Coll(root, pg_sys::InvalidOid, table.into());
        pg_sys::Oid::from(root.value() as u32)
    }
}

/// Raises the error for a foreign partition, where there is no index and transactions in progress are not visible.
fn foreign(table: pg_sys::Oid, ancestors: &[pg_sys::Oid]) -> ! {
    let parent = ancestors.last().map(|&parent| names::relation(parent));
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        &format!(
            "near_dup_guard cannot search foreign table {}",
            names::relation(table)
        ),
        &match parent {
            Some(parent) => format!(
                "ALTER TABLE {parent} DETACH PARTITION {}; or guard tables without foreign partitions.",
                names::relation(table)
            ),
            None => "Put the guard on a table of the foreign server.".to_owned(),
        },
    )
}
