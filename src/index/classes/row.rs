//! The keys of a row: the keys of its compared value, within the scope defined by the preceding columns.

use super::constraint::KeyClass;
use super::{
    CONTAINED, ComparedClass, DocumentClass, EQUAL, IndexColumn, KeySearch, OF_OTHER_KIND,
    PREDICATE_FUNCTION, ValueParameters,
};
use crate::index::ball::{NewBall, Within};
use crate::index::constraint_key::near_dup_key_near_wrapper;
use crate::index::kind::Kind;
use crate::pg::catalog::is_at;
use crate::pg::encoding::utf8;
use crate::pg::prelude::*;
use neardup::bands::{RowSize, Scope};
use std::ffi::CStr;

/// The scope columns of an index, and the class of its compared column.
pub struct RowKeys {
    scope: Vec<IndexColumn>,
    class: Box<dyn ComparedClass>,
}

impl RowKeys {
    /// # Safety
    /// `index` is an index of this access method that stays open while the value lives.
    ///
    /// # Errors
    /// ERROR `invalid_object_definition` unless the last key column, and no other, is compared, or if the class of that
    /// column rejects its bound. ERROR `data_corrupted` if the options of that class are out of range.
    pub unsafe fn of_index(index: pg_sys::Relation) -> Self {
        let count = (*(*index).rd_index).indnkeyatts;
        let columns = (1..=count).map(|number| IndexColumn::new(index, number));
        let mut scope: Vec<_> = columns.collect();
        let compared = scope.pop_if(|last| last.is_compared());
        let is_scope = scope.iter().all(IndexColumn::is_scope);
        let Some(compared) = compared.filter(|_| is_scope) else {
            reject_columns(index, count);
        };
        scope.iter().for_each(IndexColumn::declare_type);
        let class = class_of(&compared).unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                "the options of a neardup index are out of range, or the function of its class was altered",
                "Undo ALTER FUNCTION, or drop the index and create it again.",
            )
        });
        Self { scope, class }
    }

    /// Appends the keys of a row to `keys`. Returns the parameters of the row's compared value, or None if that is
    /// NULL, and the row's size. A row with NULL in a scope column has no keys, because NULL equals nothing.
    ///
    /// # Safety
    /// `values` and `is_null` hold a row, with one element per column of the index.
    pub unsafe fn keys(
        &self,
        values: &[pg_sys::Datum],
        is_null: &[bool],
        keys: &mut Vec<u32>,
    ) -> (Option<ValueParameters>, RowSize) {
        let start = keys.len();
        let Some(value) = self.compared(values, is_null) else {
            return (None, RowSize::default());
        };
        let (parameters, size) = self.class.keys(value, keys);
        let size = match self.scope_of(values, is_null) {
            Some(scope) => {
                let keys = &mut keys[start..];
                self.within(scope, keys);
                size.unwrap_or(RowSize::new(0, keys.len()))
            }
            None => {
                keys.truncate(start);
                RowSize::default()
            }
        };
        (Some(parameters), size)
    }

    /// Returns the class of the compared column if it is the class of documents, otherwise None.
    pub fn documents(&self) -> Option<DocumentClass> {
        self.class.documents()
    }

    /// Returns the scope of a row, or None if a scope column is NULL.
    ///
    /// # Safety
    /// The same as for [`Self::keys`].
    pub unsafe fn scope_of(&self, values: &[pg_sys::Datum], is_null: &[bool]) -> Option<Scope> {
        self.scope(|place, column| {
            let value = (!is_null[place]).then_some(values[place])?;
            // A value of the column's type.
            column.hash(value, None)
        })
    }

    /// Returns the values of a row, and which of them are NULL, as slices.
    ///
    /// # Safety
    /// The arrays hold a row, with one element per column of the index, and outlive the result.
    pub unsafe fn row<'r>(
        &self,
        values: *const pg_sys::Datum,
        is_null: *const bool,
    ) -> (&'r [pg_sys::Datum], &'r [bool]) {
        let columns = self.scope.len() + 1;
        let values = std::slice::from_raw_parts(values, columns);
        (values, std::slice::from_raw_parts(is_null, columns))
    }

    /// Returns the search for `conditions`, and the parameters of its query, or None if it has no query. Uses the most
    /// selective condition on the compared column, within the scope that `conditions` name. All other conditions are
    /// rechecked.
    ///
    /// # Safety
    /// `conditions` are the keys of a scan of the index.
    pub unsafe fn search(
        &self,
        conditions: &[pg_sys::ScanKeyData],
    ) -> (KeySearch, Option<ValueParameters>) {
        let mut best = (KeySearch::Everything, None);
        for condition in conditions {
            if is_null(condition) {
                return (KeySearch::Nothing, None);
            }
            if condition.sk_attno as usize <= self.scope.len() {
                continue;
            }
            let query = condition.sk_argument;
            let (search, parameters) = self.class.search(condition.sk_strategy, query);
            if search.is_narrower_than(&best.0) {
                best = (search, Some(parameters));
            }
        }
        (self.search_within(best.0, conditions), best.1)
    }

    /// Returns the search for rows of any scope that match a condition on the compared column.
    ///
    /// # Safety
    /// `query` is the right operand of such a condition, whose operator has this `strategy`.
    pub unsafe fn search_for(&self, strategy: u16, query: pg_sys::Datum) -> KeySearch {
        self.class.search(strategy, query).0
    }

    /// Returns a function that decides whether a row's compared value conflicts with the condition of a constraint, or
    /// None if that is left to PostgreSQL.
    ///
    /// # Safety
    /// `conditions` are the keys of a scan of the index by a constraint check, and outlive the result.
    pub unsafe fn decide(
        &self,
        conditions: &[pg_sys::ScanKeyData],
    ) -> Option<Box<dyn Fn(pg_sys::Datum) -> bool>> {
        let mut compared = conditions.iter();
        let compared = compared.find(|of| of.sk_attno as usize > self.scope.len());
        let compared = compared.filter(|of| !is_null(of))?;
        self.class.decide(compared.sk_argument)
    }

    /// Returns the ball of the index's own bound around the query that a scan is ordered by, and the search for the
    /// nearest rows. Returns None if all distances are NULL.
    ///
    /// # Safety
    /// `by` and `conditions` are keys of a scan of the index.
    pub unsafe fn order(
        &self,
        by: &pg_sys::ScanKeyData,
        conditions: &[pg_sys::ScanKeyData],
    ) -> Option<(NewBall, KeySearch)> {
        if is_null(by) {
            return None;
        }
        let ball = self.class.own_bound()?.ball(by.sk_argument);
        let (search, _) = self.class.search_for(CONTAINED, &ball.read())?;
        Some((ball, self.search_within(search, conditions)))
    }

    /// Returns the minimum distance from `center` of rows that share `shared` of the center's keys.
    pub fn least_distance(&self, center: &Within<'_>, shared: usize) -> f64 {
        self.class.least_distance(center, shared)
    }

    /// Returns whether a row is in the scope that `conditions` name.
    ///
    /// # Safety
    /// `conditions` are the keys of a scan of the index; `values` and `is_null` hold a row.
    pub unsafe fn is_within(
        &self,
        conditions: &mut [pg_sys::ScanKeyData],
        values: &[pg_sys::Datum],
        is_null: &[bool],
    ) -> bool {
        conditions
            .iter_mut()
            .filter(|condition| condition.sk_strategy == EQUAL)
            .all(|condition| {
                let place = condition.sk_attno as usize - 1;
                let (function, collation) = (&mut condition.sk_func, condition.sk_collation);
                let (value, wanted) = (values[place], condition.sk_argument);
                // The operator's function takes values of these types.
                !is_null[place]
                    && pg_sys::FunctionCall2Coll(function, collation, value, wanted).value() != 0
            })
    }

    /// Returns the value of the compared column, or None if it is NULL.
    pub fn compared(&self, values: &[pg_sys::Datum], is_null: &[bool]) -> Option<pg_sys::Datum> {
        let last = self.scope.len();
        (!is_null[last]).then_some(values[last])
    }

    /// Describes `parameters` in words.
    pub fn describe(&self, parameters: &ValueParameters) -> String {
        if *parameters == OF_OTHER_KIND {
            return String::from("values of a different kind");
        }
        self.class.describe(parameters)
    }

    /// Returns `search` restricted to the scope that `conditions` name. Unless they name a value for every scope
    /// column, keys do not help, and all rows are searched.
    ///
    /// # Safety
    /// `conditions` are the keys of a scan of the index.
    unsafe fn search_within(
        &self,
        search: KeySearch,
        conditions: &[pg_sys::ScanKeyData],
    ) -> KeySearch {
        let KeySearch::Keys { mut keys, needed } = search else {
            return search;
        };
        let scope = self.scope(|place, column| {
            let of_column = |condition: &&pg_sys::ScanKeyData| {
                let is_named = condition.sk_attno as usize == place + 1;
                is_named && condition.sk_strategy == EQUAL && !is_null(condition)
            };
            let condition = conditions.iter().find(of_column)?;
            let given = Some(condition.sk_subtype).filter(|type_| *type_ != pg_sys::InvalidOid);
            column.hash(condition.sk_argument, given)
        });
        match scope {
            Some(scope) => {
                self.within(scope, &mut keys);
                KeySearch::Keys { keys, needed }
            }
            None => KeySearch::Everything,
        }
    }

    /// Replaces `keys`, the keys of a value, with the value's keys within `scope`.
    pub fn within(&self, scope: Scope, keys: &mut [u32]) {
        if !self.scope.is_empty() {
            keys.iter_mut().for_each(|key| *key = scope.key(*key));
        }
    }

    /// Combines the hashes that `hash` returns for the scope columns. Returns None if one of them is None.
    fn scope(&self, hash: impl Fn(usize, &IndexColumn) -> Option<u64>) -> Option<Scope> {
        let mut scope = Scope::default();
        for (place, column) in self.scope.iter().enumerate() {
            scope = scope.with(hash(place, column)?);
        }
        Some(scope)
    }
}

/// Returns the class of a column that [`IndexColumn::is_compared`]. Returns None if the class is not one of ours or its
/// options are out of range.
fn class_of(column: &IndexColumn) -> Option<Box<dyn ComparedClass>> {
    let (index, number) = (column.index, column.number);
    // SAFETY: the class has the support function, which identifies it.
    let predicate =
        unsafe { (*pg_sys::index_getprocinfo(index, number, PREDICATE_FUNCTION)).fn_addr };
    if is_at(&predicate, near_dup_key_near_wrapper) {
        return Some(Box::new(KeyClass::of(column)?));
    }
    // SAFETY: the options are of the class that has the predicate.
    unsafe { Kind::of_address(&predicate)?.class(column.options()) }
}

fn is_null(condition: &pg_sys::ScanKeyData) -> bool {
    condition.sk_flags & pg_sys::SK_ISNULL as i32 != 0
}

fn reject_columns(index: pg_sys::Relation, count: i16) -> ! {
    // SAFETY: the index is open; its name is NUL-terminated.
    let name = unsafe { CStr::from_ptr((*(*index).rd_rel).relname.data.as_ptr()) };
    let (problem, hint) = if count == 1 {
        (
            "has no column that is compared",
            "Index text, a minhash_signature, a bit string, a bigint[], or near_dup_key(sig, 0.85); for char(n), index the text, as in ((body::text)).",
        )
    } else {
        (
            "must end with the one column that is compared, after columns with equality",
            "Columns of scalar types come first, as in USING neardup (tenant_id, body). Text and bit strings \
             among them need their operator class: USING neardup (tenant scope_ops, body).",
        )
    };
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
        &format!("neardup index \"{}\" {problem}", utf8(name)),
        hint,
    )
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_scope.sql",
    name = "neardup_scope",
    requires = ["neardup_access_method"]
);
