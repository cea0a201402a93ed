//! The order of a table's rows. The first row of a cluster is its canonical row.

use crate::pg::error::{OrRaise, invalid, raise};
use crate::pg::names;
use crate::pg::relation::ColumnType;
use crate::pg::statement::{Connection, Statement, Tuple};
use crate::pg::value::Layout;
use neardup::memory::collected;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cmp::Ordering;
use std::ffi::CStr;

/// An expression over the columns of a table, in words that do not depend on the search path.
#[derive(Clone)]
pub struct Expression {
    /// Over the columns without an alias.
    pub sql: String,
    /// Over the columns of the table as `b`.
    pub of_base: String,
    /// Over the columns of the row that a trigger fires for.
    pub of_new: String,
    pub type_: ColumnType,
    /// The columns that it reads, by number; numbers up to 0 stand for whole rows and system columns.
    pub columns: Vec<i16>,
}

/// One expression of the order, as PostgreSQL sorts by it.
#[derive(Clone)]
pub struct Term {
    pub expression: Expression,
    sort_operator: pg_sys::Oid,
    is_descending: bool,
    is_nulls_first: bool,
}

/// The order, which is total: an expression or none, then the key.
#[derive(Clone)]
pub struct Order {
    pub terms: Vec<Term>,
}

const VALID_KEEP: &str = "keep is one column of the table, or an immutable expression over its columns, with [ASC | DESC] [NULLS FIRST | NULLS LAST], such as 'published DESC NULLS LAST'.";
const VALID_CONDITION: &str =
    "condition is an immutable expression over the table's columns, such as 'deleted_at IS NULL'.";

impl Expression {
    /// # Safety
    /// The node is an expression over the table alone.
    pub unsafe fn new(node: *mut pg_sys::Node, table: pg_sys::Oid) -> Self {
        // SAFETY: vouched for by the caller; the set is a new one.
        unsafe {
            let deparsed =
                |alias: &CStr, is_prefixed| names::expression(node, table, alias, is_prefixed);
            let (mut members, mut columns) = (std::ptr::null_mut(), Vec::new());
            pg_sys::pull_varattnos(node, 1, &mut members);
            let mut member = pg_sys::bms_next_member(members, -1);
            while member >= 0 {
                columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
                member = pg_sys::bms_next_member(members, member);
            }
            Self {
                sql: deparsed(c"b", false),
                of_base: deparsed(c"b", true),
                of_new: deparsed(c"new", true),
                type_: ColumnType {
                    type_: pg_sys::exprType(node),
                    modifier: pg_sys::exprTypmod(node),
                    collation: pg_sys::exprCollation(node),
                },
                columns,
            }
        }
    }

    /// Returns the condition that a text is over the columns of a table.
    ///
    /// # Errors
    /// ERROR `invalid_object_definition` for an expression that is not immutable, `invalid_parameter_value` for
    /// more than an expression over the columns, and the errors of PostgreSQL's parser.
    pub fn condition(connection: &Connection, table: pg_sys::Oid, condition: &str) -> Self {
        let name = names::relation(table);
        let statement =
            connection.prepare(&format!("SELECT FROM {name} WHERE ({condition}\n)"), &[]);
        // SAFETY: the query is the statement's, which lives as long as the connection.
        unsafe {
            let query = only_query(&statement).filter(|query| query.sortClause.is_null());
            let Some(query) = query else {
                invalid("condition is more than an expression", VALID_CONDITION);
            };
            let condition = (*query.jointree).quals;
            check(condition, table, "condition", VALID_CONDITION)
        }
    }
}

/// Returns an expression that a user names for `parameter`.
///
/// # Safety
/// The node is an expression over the table alone.
unsafe fn check(
    node: *mut pg_sys::Node,
    table: pg_sys::Oid,
    parameter: &str,
    valid: &str,
) -> Expression {
    // SAFETY: vouched for by the caller.
    let (is_mutable, expression) = unsafe {
        let is_mutable = pg_sys::contain_mutable_functions(node);
        (is_mutable, Expression::new(node, table))
    };
    if is_mutable {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            &format!("functions in {parameter} must be marked IMMUTABLE"),
            valid,
        );
    }
    if expression.columns.iter().any(|&column| column <= 0) {
        invalid(
            &format!("{parameter} must name the columns that it reads, and no system columns"),
            valid,
        );
    }
    expression
}

/// Returns the query of a statement if it is no more than a condition on one table and an order.
///
/// # Safety
/// The statement is prepared, and outlives the result.
unsafe fn only_query<'q>(statement: &Statement<'_>) -> Option<&'q pg_sys::Query> {
    // SAFETY: vouched for by the caller.
    let query = unsafe { &*statement.query()? };
    let is_more = query.hasAggs
        || query.hasWindowFuncs
        || query.hasTargetSRFs
        || query.hasSubLinks
        // SAFETY: a list of the query.
        || unsafe { (*query.rtable).length } != 1;
    let others = [
        query.limitCount,
        query.limitOffset,
        query.setOperations,
        query.havingQual,
        query.rowMarks.cast(),
        query.groupClause.cast(),
        query.groupingSets.cast(),
        query.distinctClause.cast(),
        query.windowClause.cast(),
    ];
    (!is_more && others.iter().all(|part| part.is_null())).then_some(query)
}

impl Order {
    /// Returns the order by what `keep` names and then by the key.
    ///
    /// # Errors
    /// As for [`Expression::condition`].
    pub fn named(
        connection: &Connection,
        table: pg_sys::Oid,
        keep: Option<&str>,
        key: &Expression,
    ) -> Self {
        let term = keep.map(|keep| {
            let name = names::relation(table);
            let statement =
                connection.prepare(&format!("SELECT FROM {name} ORDER BY {keep}\n"), &[]);
            // SAFETY: the query is the statement's, which lives as long as the connection.
            unsafe {
                let query = only_query(&statement).filter(|query| (*query.sortClause).length == 1);
                let Some(query) = query else {
                    invalid(
                        "keep is more than one expression over the table's columns",
                        VALID_KEEP,
                    );
                };
                let sort = pg_sys::list_nth(query.sortClause, 0).cast::<pg_sys::SortGroupClause>();
                let node = pg_sys::get_sortgroupclause_expr(sort, query.targetList);
                let expression = check(node, table, "keep", VALID_KEEP);
                Term::sorted_by(expression, (*sort).sortop, (*sort).nulls_first)
            }
        });
        Self::new(term, key)
    }

    /// Returns the order by a term, if there is one, and then by the key.
    pub fn new(term: Option<Term>, key: &Expression) -> Self {
        let is_total = term
            .as_ref()
            .is_some_and(|term| term.expression.sql == key.sql);
        let mut terms = Vec::from_iter(term);
        if !is_total {
            terms.extend(Term::directed(key.clone(), ""));
        }
        Self { terms }
    }

    /// Returns a text for each term as a list.
    fn listed(&self, text: impl Fn(&Term) -> String) -> String {
        self.terms.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// Returns the list of ORDER BY.
    pub fn list(&self) -> String {
        self.listed(|term| term.expression.sql.clone() + term.direction())
    }

    /// Returns the list of ORDER BY over a table's columns as `b`.
    pub fn list_of_base(&self) -> String {
        self.listed(|term| term.expression.of_base.clone() + term.direction())
    }

    /// Returns the values of the order over a table's columns as `b`, as a list.
    pub fn of_base(&self) -> String {
        self.listed(|term| term.expression.of_base.clone())
    }

    /// Returns the columns of the table of canonical rows that hold the values, as a list.
    pub fn of_canonical(&self, alias: &str) -> String {
        let columns = (1..=self.terms.len()).map(|number| format!("{alias}.order{number}"));
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// The directions of a term, by whether it is descending and whether NULLs come first.
const DIRECTIONS: [(&str, bool, bool); 4] = [
    ("", false, false),
    (" NULLS FIRST", false, true),
    (" DESC", true, true),
    (" DESC NULLS LAST", true, false),
];

impl Term {
    /// # Errors
    /// ERROR `invalid_parameter_value` for an operator other than `<` and `>` of the type.
    fn sorted_by(expression: Expression, operator: pg_sys::Oid, is_nulls_first: bool) -> Self {
        let wanted = (pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR) as i32;
        // SAFETY: cache entries are never freed.
        let defaults = unsafe { &*pg_sys::lookup_type_cache(expression.type_.type_, wanted) };
        if operator != defaults.lt_opr && operator != defaults.gt_opr {
            invalid("keep orders by an operator of its own", VALID_KEEP);
        }
        Self {
            sort_operator: operator,
            is_descending: operator == defaults.gt_opr,
            is_nulls_first,
            expression,
        }
    }

    /// Returns the term of a direction; None if there is no such direction, or the type has no order.
    pub fn directed(expression: Expression, direction: &str) -> Option<Self> {
        let found = DIRECTIONS.iter().find(|(text, ..)| *text == direction);
        let &(_, is_descending, is_nulls_first) = found?;
        let wanted = (pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR) as i32;
        // SAFETY: cache entries are never freed.
        let defaults = unsafe { &*pg_sys::lookup_type_cache(expression.type_.type_, wanted) };
        let sort_operator = match is_descending {
            true => defaults.gt_opr,
            false => defaults.lt_opr,
        };
        (sort_operator != pg_sys::InvalidOid).then_some(Self {
            sort_operator,
            is_descending,
            is_nulls_first,
            expression,
        })
    }

    /// Returns the direction that follows the expression in the list.
    pub fn direction(&self) -> &'static str {
        let own = (self.is_descending, self.is_nulls_first);
        let found = DIRECTIONS
            .iter()
            .find(|(_, descending, first)| (*descending, *first) == own);
        found.map_or("", |(text, ..)| text)
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
                support.ssup_collation = term.expression.type_.collation;
                support.ssup_nulls_first = term.is_nulls_first;
                pg_sys::PrepareSortSupportFromOrderingOp(term.sort_operator, &mut *support);
            }
            SortedColumn {
                support,
                layout: Layout::of(term.expression.type_.type_),
            }
        };
        Self {
            columns: order.terms.iter().map(column).collect(),
        }
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
