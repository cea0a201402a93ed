//! The order of a table's rows. The first row of a cluster is its canonical row.

use crate::pg::error::{OrRaise, invalid, raise};
use crate::pg::names;
use crate::pg::relation::ColumnType;
use crate::pg::statement::{Connection, Statement, Tuple};
use crate::pg::value::Layout;
use neardup::memory::collected;
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
    pub type_: ColumnType,
    sort_operator: pg_sys::Oid,
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
        // SAFETY: the query is the statement's, which lives as long as the connection.
        let query = statement
            .query()
            .filter(|query| unsafe { is_list(&**query) });
        let Some(query) = query else {
            invalid(
                "keep is more than a list of expressions over the table's columns",
                VALID,
            );
        };
        let mut order = Self {
            terms: Vec::new(),
            columns: BTreeSet::new(),
        };
        // SAFETY: as above.
        unsafe {
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
            let deparsed = |alias: &CStr, is_prefixed| {
                names::expression(expression, relation, alias, is_prefixed)
            };
            self.terms.push(Term {
                sql: deparsed(c"b", false),
                of_base: deparsed(c"b", true),
                of_new: deparsed(c"new", true),
                type_: ColumnType {
                    type_: pg_sys::exprType(expression),
                    modifier: pg_sys::exprTypmod(expression),
                    collation: pg_sys::exprCollation(expression),
                },
                sort_operator: sort.sortop,
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
            let mut member = pg_sys::bms_next_member(members, -1);
            while member >= 0 {
                let column = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
                if column <= 0 {
                    invalid(
                        "keep must name the columns that it reads, and no system columns",
                        VALID,
                    );
                }
                self.columns.insert(column as i16);
                member = pg_sys::bms_next_member(members, member);
            }
        }
    }

    /// Returns a text for each expression as a list.
    fn listed(&self, text: impl Fn(&Term) -> String) -> String {
        self.terms.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// Returns the list, in words that do not depend on the search path.
    pub fn list(&self) -> String {
        self.listed(|term| term.sql.clone() + &term.direction())
    }

    /// Returns the list over a table's columns as `b`.
    pub fn list_of_base(&self) -> String {
        self.listed(|term| term.of_base.clone() + &term.direction())
    }

    /// Returns the values of the order over a table's columns as `b`, as a list.
    pub fn of_base(&self) -> String {
        self.listed(|term| term.of_base.clone())
    }

    /// Returns the columns of the table of canonical rows that hold the values, as a list.
    pub fn of_canonical(&self, alias: &str) -> String {
        let columns = (1..=self.terms.len()).map(|number| format!("{alias}.order{number}"));
        columns.collect::<Vec<_>>().join(", ")
    }
}

impl Term {
    /// Returns the direction that follows the expression in the list.
    pub fn direction(&self) -> String {
        let wanted = (pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR) as i32;
        // SAFETY: cache entries are never freed.
        let defaults = unsafe { &*pg_sys::lookup_type_cache(self.type_.type_, wanted) };
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

/// Returns whether a query is no more than one table in an order.
fn is_list(query: &pg_sys::Query) -> bool {
    !query.hasAggs
        && !query.hasWindowFuncs
        && !query.hasTargetSRFs
        && !query.hasSubLinks
        && query.limitCount.is_null()
        && query.limitOffset.is_null()
        && query.rowMarks.is_null()
        && query.setOperations.is_null()
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
                support.ssup_collation = term.type_.collation;
                support.ssup_nulls_first = term.is_nulls_first;
                pg_sys::PrepareSortSupportFromOrderingOp(term.sort_operator, &mut *support);
            }
            SortedColumn {
                support,
                layout: Layout::of(term.type_.type_),
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

    /// Returns a copy of the place whose values a tuple has from column `first` on, in the current memory context.
    ///
    /// # Safety
    /// The values are of the order's types.
    pub unsafe fn place(&self, tuple: &Tuple<'_>, first: usize) -> OrderPlace {
        let values = self.columns.iter().zip(first..).map(|(column, number)| {
            // SAFETY: vouched for by the caller.
            Some(unsafe { column.layout.copy(tuple.datum(number)?) })
        });
        collected(values).or_raise()
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
            (a, b) if self.support.ssup_nulls_first => return b.is_none().cmp(&a.is_none()),
            (a, b) => return a.is_none().cmp(&b.is_none()),
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
