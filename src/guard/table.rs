//! The tables that a guard searches, and their indexes.

use crate::guard::columns::GuardColumns;
use crate::guard::options::GuardOptions;
use crate::guard::window::{self, Span};
use crate::index::bound::Bound;
use crate::index::kind::{COLUMN_TYPES, Kind, scope_class};
use crate::pg::encoding::utf8;
use crate::pg::prelude::*;
use crate::pg::relation::{ColumnType, key_columns};
use std::cell::Cell;
use std::ffi::CString;

/// A guard's options, and the kind and bound derived from them for the tables under one root.
pub struct Rule {
    pub options: GuardOptions,
    pub kind: Kind,
    pub bound: Bound,
    /// The schema of the extension.
    pub schema: pg_sys::Oid,
}

/// An open table to search: the guarded table, or a partition under the same root.
pub struct SearchedTable {
    pub table: Relation,
    /// The partitioned tables that it belongs to, the root first.
    ancestors: Vec<pg_sys::Oid>,
    /// A time span that contains the times of the table's rows.
    pub span: Span,
    pub columns: GuardColumns,
    /// An index that finds all rows within the bound.
    pub index: Relation,
    /// The scope columns before the value in the index, as places in the guard's list.
    pub scope: Vec<usize>,
    /// The first row number of the current round.
    pub from: Cell<u64>,
    /// The number of the next row when the current round began.
    pub next: Cell<u64>,
}

/// The tables to search, and the partitioned tables above them with their partitions.
type Tables = (Vec<SearchedTable>, Vec<(Relation, Vec<pg_sys::Oid>)>);

impl Rule {
    /// Returns the rule for a guard of `table`. `function` is any function of the extension.
    ///
    /// # Errors
    /// `datatype_mismatch` for a column that cannot be compared, and the errors of [`GuardColumns::of`] and
    /// [`GuardOptions::bound`].
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
            schema,
            options,
        }
    }

    /// Returns the tables under `root` that can contain rows of `span`, and the partitioned tables above them. Each
    /// table that can contain such rows has a usable index that begins with at least `scope` scope columns.
    ///
    /// # Errors
    /// `wrong_object_type` for a foreign table, `object_not_in_prerequisite_state` for a table without such an index,
    /// with a HINT that serves all partitions, and the errors of [`GuardColumns::of`]. Messages name `caller`.
    pub fn tables(&self, root: pg_sys::Oid, span: Span, caller: &str, scope: usize) -> Tables {
        let mut found = (Vec::new(), Vec::new());
        let mut waiting = vec![(root, Span::ALWAYS, Vec::new())];
        while let Some((oid, of_table, ancestors)) = waiting.pop() {
            if !of_table.meets(span) {
                continue;
            }
            let table = Relation::open_table(oid);
            match table.kind() {
                pg_sys::RELKIND_PARTITIONED_TABLE => {
                    let window = GuardColumns::window(&table, &self.options);
                    let partitions = window::partitions(&table, window, of_table);
                    let ancestors = [&ancestors[..], &[oid]].concat();
                    let below = partitions.iter().rev();
                    waiting.extend(below.map(|&(oid, span)| (oid, span, ancestors.clone())));
                    let partitions = partitions.iter().map(|(partition, _)| *partition);
                    found.1.push((table, partitions.collect()));
                }
                pg_sys::RELKIND_RELATION => {
                    let columns = GuardColumns::of(&table, &self.options);
                    let index = self.usable_index(&table, &columns);
                    let Some((index, scope)) = index.filter(|index| index.1.len() >= scope) else {
                        let root = ancestors.first().copied().unwrap_or(oid);
                        self.no_index(oid, root, caller, scope);
                    };
                    found.0.push(SearchedTable {
                        table,
                        ancestors,
                        span: of_table,
                        columns,
                        index,
                        scope,
                        from: Cell::new(0),
                        next: Cell::new(0),
                    });
                }
                pg_sys::RELKIND_FOREIGN_TABLE => foreign(oid, ancestors.last()),
                _ => {}
            }
        }
        found
    }

    /// Returns the index that finds all rows within the bound, with the places of the scope columns before its value,
    /// or None if there is none. Of several, returns the first one with the most scope columns.
    fn usable_index(
        &self,
        table: &Relation,
        columns: &GuardColumns,
    ) -> Option<(Relation, Vec<usize>)> {
        let usable = table.indexes().into_iter().rev().filter_map(|oid| {
            let keys = key_columns(oid);
            let (_, in_front) = keys.split_last().filter(|keys| *keys.0 == columns.value)?;
            let index = Relation::open_index(oid);
            let (state, place) = (index.description(), in_front.len());
            let is_usable =
                state.indisvalid && state.indisready && self.is_served(&index, table, place);
            // Other columns before the value are not allowed.
            let scope = in_front.iter().enumerate().map(|(place, &number)| {
                columns.scope.iter().position(|column| {
                    // SAFETY: the index is open, and has that column.
                    column.number == number
                        && unsafe { column.is_compared_by(index.as_ptr(), place) }
                })
            });
            let scope = is_usable.then(|| scope.collect::<Option<Vec<_>>>())??;
            Some((index, scope))
        });
        // Of equals, this returns the last.
        usable.max_by_key(|(_, scope)| scope.len())
    }

    /// Returns whether `index`, with the value at `place`, finds all rows within the bound.
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
            let [value_type, _] = self.kind.types(self.schema);
            let is_ours = self.kind.has_family(family, value_type);
            let options = || *pg_sys::RelationGetIndexAttOptions(index, false).add(place);
            has_all && is_ours && self.bound.is_served(options(), None)
        }
    }

    /// Raises the error for `table` without a usable index.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state`.
    fn no_index(&self, table: pg_sys::Oid, root: pg_sys::Oid, caller: &str, scope: usize) -> ! {
        let name = |column: &CString| names::identifier(&utf8(column));
        let mut columns: Vec<_> = self.options.scope[..scope].iter().map(name).collect();
        let scope_class = scope_class(self.schema);
        let scope = columns.iter().map(|name| format!("{name} {scope_class}, "));
        let scope = scope.collect::<String>();
        let value = name(&self.options.column);
        let class = self.bound.operator_class(self.schema);
        let [table, root] = [table, root].map(names::relation);
        columns.push(value.clone());
        not_ready(
            &format!(
                "{caller} needs an index on ({}) of table {table} that supports threshold {}",
                columns.join(", "),
                self.options.bound
            ),
            &format!("CREATE INDEX ON {root} USING neardup ({scope}{value} {class});"),
        )
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
}

/// Raises the error for the foreign `table`, which has no index, and whose transactions in progress are not visible.
pub fn foreign(table: pg_sys::Oid, parent: Option<&pg_sys::Oid>) -> ! {
    let table = names::relation(table);
    let hint = parent.map(|&parent| {
        let parent = names::relation(parent);
        format!("ALTER TABLE {parent} DETACH PARTITION {table}; or guard tables without foreign partitions.")
    });
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        &format!("near_dup_guard cannot search foreign table {table}"),
        hint.as_deref()
            .unwrap_or("Put the guard on a table of the foreign server."),
    )
}
