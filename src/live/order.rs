//! The order of a table's rows. The first row of a cluster is its canonical row.

use crate::pg::error::{invalid, raise};
use crate::pg::names;
use crate::pg::statement::{Connection, Statement};
use crate::pg::value::Layout;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ffi::CStr;

/// One expression of the order, as PostgreSQL understands it.
pub struct Term {
    /// Over the columns of the table without an alias.
    sql: String,
    /// Over the columns of the table as `b`.
    pub of_base: String,
    /// Over the columns of the row that a trigger fires for.
    pub of_new: String,
    /// Its type, with its collation.
    pub column: String,
    type_: pg_sys::Oid,
    sort_operator: pg_sys::Oid,
    collation: pg_sys::Oid,
    is_nulls_first: bool,
}

/// The order, which is total.
pub struct Order {
    pub terms: Vec<Term>,
    /// The columns of the table that it reads, by number.
    pub columns: BTreeSet<i16>,
}

const VALID: &str = "keep is a list as in ORDER BY: columns of the table, or immutable expressions over them, such as 'published DESC NULLS LAST, length(body)'.";

impl Order {
    /// Returns a query in the order that a list of ORDER BY names, to which the key is appended.
    ///
    /// # Errors
    /// The errors of PostgreSQL's parser.
    pub fn prepare<'c>(
        connection: &'c Connection,
        relation: pg_sys::Oid,
        keep: Option<&str>,
        key: &str,
    ) -> Statement<'c> {
        let list = match keep {
            Some(keep) => format!("{keep}\n, {key}"),
            None => key.to_owned(),
        };
        let table = names::relation(relation);
        connection.prepare(&format!("SELECT FROM {table} ORDER BY {list}"), &[])
    }

    /// Returns the order of a query over a table.
    ///
    /// # Errors
    /// ERROR `invalid_object_definition` for expressions that are not immutable,
    /// `invalid_parameter_value` for more than a list of expressions.
    pub fn of_query(relation: pg_sys::Oid, statement: &Statement<'_>) -> Self {
        let Some(query) = statement.query() else {
            invalid(
                "keep is more than a list of expressions over the table's columns",
                VALID,
            );
        };
        let mut order = Self {
            terms: Vec::new(),
            columns: BTreeSet::new(),
        };
        // SAFETY: the query is the statement's, which lives as long as the connection.
        unsafe {
            check(&*query);
            for place in 0..(*(*query).sortClause).length {
                let sort = pg_sys::list_nth((*query).sortClause, place);
                order.add(relation, &*query, &*sort.cast::<pg_sys::SortGroupClause>());
            }
        }
        order
    }

    /// # Safety
    /// The clause is the query's.
    unsafe fn add(
        &mut self,
        relation: pg_sys::Oid,
        query: &pg_sys::Query,
        sort: &pg_sys::SortGroupClause,
    ) {
        // SAFETY: vouched for by the caller.
        unsafe {
            let reference = std::ptr::from_ref(sort).cast_mut();
            let expression = pg_sys::get_sortgroupclause_expr(reference, query.targetList);
            if pg_sys::contain_mutable_functions(expression) {
                raise(
                    PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                    "functions in keep must be marked IMMUTABLE",
                    VALID,
                );
            }
            self.add_columns(expression);
            let type_ = pg_sys::exprType(expression);
            let collation = pg_sys::exprCollation(expression);
            let type_name = names::type_of(type_, pg_sys::exprTypmod(expression));
            let deparsed = |alias: &CStr, is_prefixed| {
                names::expression(expression, relation, alias, is_prefixed)
            };
            self.terms.push(Term {
                sql: deparsed(c"b", false),
                of_base: deparsed(c"b", true),
                of_new: deparsed(c"new", true),
                column: format!("{type_name}{}", names::collate(collation)),
                type_,
                sort_operator: sort.sortop,
                collation,
                is_nulls_first: sort.nulls_first,
            });
        }
    }

    /// Notes the columns that an expression reads.
    ///
    /// # Safety
    /// The expression is over one table.
    unsafe fn add_columns(&mut self, expression: *mut pg_sys::Node) {
        let mut members = std::ptr::null_mut();
        // SAFETY: vouched for by the caller; the set is a new one.
        unsafe {
            pg_sys::pull_varattnos(expression, 1, &mut members);
            let mut member = -1;
            loop {
                member = pg_sys::bms_next_member(members, member);
                if member < 0 {
                    return;
                }
                let column = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
                if column <= 0 {
                    invalid(
                        "keep must name the columns that it reads, and no system columns",
                        VALID,
                    );
                }
                self.columns.insert(column as i16);
            }
        }
    }

    /// Returns the list, in words that do not depend on the search path.
    pub fn list(&self) -> String {
        let terms = self.terms.iter().map(|term| term.sorted(&term.sql));
        terms.collect::<Vec<_>>().join(", ")
    }

    /// Returns the list over a table's columns as `b`.
    pub fn list_of_base(&self) -> String {
        let terms = self.terms.iter().map(|term| term.sorted(&term.of_base));
        terms.collect::<Vec<_>>().join(", ")
    }

    /// Returns the values of the order over a table's columns as `b`, as a list.
    pub fn of_base(&self) -> String {
        let terms: Vec<&str> = self
            .terms
            .iter()
            .map(|term| term.of_base.as_str())
            .collect();
        terms.join(", ")
    }

    /// Returns the columns of the table of canonical rows that hold the values, as a list.
    pub fn of_canonical(&self, alias: &str) -> String {
        let columns = (1..=self.terms.len()).map(|number| format!("{alias}.order{number}"));
        columns.collect::<Vec<_>>().join(", ")
    }
}

impl Term {
    fn sorted(&self, expression: &str) -> String {
        format!("{expression}{}", self.direction())
    }

    /// Returns the direction that follows the expression in the list.
    pub fn direction(&self) -> String {
        let wanted = (pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR) as i32;
        // SAFETY: cache entries are never freed.
        let defaults = unsafe { &*pg_sys::lookup_type_cache(self.type_, wanted) };
        let is_descending = self.sort_operator == defaults.gt_opr;
        let direction = match self.sort_operator {
            operator if operator == defaults.lt_opr => String::new(),
            _ if is_descending => " DESC".to_owned(),
            operator => format!(" USING {}", names::operator(operator)),
        };
        let nulls = match self.is_nulls_first {
            is_first if is_first == is_descending => "",
            true => " NULLS FIRST",
            false => " NULLS LAST",
        };
        format!("{direction}{nulls}")
    }
}

/// # Errors
/// ERROR for a query that is more than one table in an order.
fn check(query: &pg_sys::Query) {
    let is_list = !query.hasAggs
        && !query.hasWindowFuncs
        && !query.hasTargetSRFs
        && !query.hasSubLinks
        && query.limitCount.is_null()
        && query.limitOffset.is_null()
        && query.rowMarks.is_null()
        && query.setOperations.is_null();
    if !is_list {
        invalid(
            "keep is more than a list of expressions over the table's columns",
            VALID,
        );
    }
}

/// Compares places in an order, as PostgreSQL's sort does.
pub struct OrderComparison {
    columns: Vec<SortedColumn>,
}

struct SortedColumn {
    support: Box<pg_sys::SortSupportData>,
    layout: Layout,
}

/// The values of a row in the order, NULLs as None.
pub type OrderPlace = Vec<Option<pg_sys::Datum>>;

impl OrderComparison {
    pub fn new(order: &Order) -> Self {
        let column = |term: &Term| {
            let mut support = Box::new(pg_sys::SortSupportData::default());
            // SAFETY: the operator is one of a sort; what it allocates lives as long as the current
            // memory context.
            unsafe {
                support.ssup_cxt = pg_sys::CurrentMemoryContext;
                support.ssup_collation = term.collation;
                support.ssup_nulls_first = term.is_nulls_first;
                pg_sys::PrepareSortSupportFromOrderingOp(term.sort_operator, &mut *support);
            }
            SortedColumn {
                support,
                layout: Layout::of(term.type_),
            }
        };
        Self {
            columns: order.terms.iter().map(column).collect(),
        }
    }

    /// Returns the number of values of a place.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns a copy of a value, in the current memory context.
    ///
    /// # Safety
    /// The value is one of that column.
    pub unsafe fn copy(&self, column: usize, value: pg_sys::Datum) -> pg_sys::Datum {
        // SAFETY: vouched for by the caller.
        unsafe { self.columns[column].layout.copy(value) }
    }

    /// Compares two places.
    ///
    /// # Safety
    /// Their values are of the order's types.
    pub unsafe fn compare(&self, a: &OrderPlace, b: &OrderPlace) -> Ordering {
        for (column, (a, b)) in self.columns.iter().zip(a.iter().zip(b)) {
            // SAFETY: vouched for by the caller.
            let ordering = unsafe { column.compare(*a, *b) };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }
}

impl SortedColumn {
    /// # Safety
    /// Both values are of the column's type.
    unsafe fn compare(&self, a: Option<pg_sys::Datum>, b: Option<pg_sys::Datum>) -> Ordering {
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (None, None) => return Ordering::Equal,
            (None, Some(_)) if self.support.ssup_nulls_first => return Ordering::Less,
            (Some(_), None) if !self.support.ssup_nulls_first => return Ordering::Less,
            _ => return Ordering::Greater,
        };
        let comparator = self.support.comparator.expect("the support is prepared");
        let support = std::ptr::from_ref(&*self.support).cast_mut();
        // SAFETY: vouched for by the caller; a cancel or an ERROR of the comparison passes on.
        let ordering =
            unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| comparator(a, b, support)) }.cmp(&0);
        match self.support.ssup_reverse {
            true => ordering.reverse(),
            false => ordering,
        }
    }
}
