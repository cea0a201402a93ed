//! The condition under which rows count, as `deleted_at IS NULL`.

use crate::guard::table::root_of;
use crate::pg::error::{invalid, raise};
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::statement::Connection;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ptr::null_mut;

const VALID: &str = "condition is an immutable boolean expression over columns of the table, as in condition => 'deleted_at IS NULL'.";

/// A boolean expression over the columns of a table, by the numbers that its root of partitions has for them.
#[derive(Clone, Copy)]
pub struct RowCondition(*mut pg_sys::Node);

impl PartialEq for RowCondition {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: compares two trees.
        unsafe { pg_sys::equal(self.0.cast(), other.0.cast()) }
    }
}

impl RowCondition {
    /// Returns the condition that an expression over a table is; None if it is not boolean.
    ///
    /// # Safety
    /// The expression is over that table alone, as variable 1.
    pub unsafe fn new(expression: *mut pg_sys::Node, table: &Relation) -> Option<Self> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let is_boolean = pg_sys::exprType(expression) == pg_sys::BOOLOID;
            let root = Relation::open_table(root_of(table.oid()));
            is_boolean.then(|| Self(renumbered(expression, table, &root)))
        }
    }

    /// Returns the condition of an SQL text as an expression over the row `NEW`, in words that do not depend on the
    /// search path.
    ///
    /// # Errors
    /// The errors of PostgreSQL's parser, `invalid_parameter_value` for more than a condition,
    /// `invalid_object_definition` for one that is not immutable.
    pub fn over_new(table: &Relation, condition: &str) -> String {
        let connection = Connection::open();
        let name = names::relation(table.oid());
        let statement = connection.prepare(
            &format!("SELECT FROM ONLY {name} WHERE ({condition}\n)"),
            &[],
        );
        // SAFETY: the query is the statement's, which lives as long as the connection.
        let text = unsafe {
            let query = statement.query().filter(|&query| is_filter(&*query));
            let expression = query.map(|query| (*(*query).jointree).quals);
            let Some(expression) = expression.filter(|&node| reads_columns(node)) else {
                invalid(
                    "condition is more than a condition over the table's columns",
                    VALID,
                );
            };
            if pg_sys::contain_mutable_functions(expression) {
                raise(
                    PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                    "functions in condition must be marked IMMUTABLE",
                    VALID,
                );
            }
            names::expression(expression, table.oid(), c"new", true)
        };
        connection.close();
        text
    }

    /// Returns the condition over a table under the root, as the predicate of an index has it: a list of all that must
    /// hold.
    pub fn conjuncts(&self, table: &Relation) -> *mut pg_sys::List {
        // SAFETY: the expression is a valid one over the table.
        unsafe {
            let simple = pg_sys::eval_const_expressions(null_mut(), self.over(table));
            pg_sys::make_ands_implicit(pg_sys::canonicalize_qual(simple.cast(), false))
        }
    }

    /// Returns the condition made ready for the rows of a table under the root.
    pub fn prepare(&self, table: &Relation) -> PreparedCondition {
        // SAFETY: the expression is a valid one over the table.
        unsafe {
            let planned = pg_sys::expression_planner(self.over(table).cast());
            PreparedCondition {
                state: pg_sys::ExecInitExpr(planned, null_mut()),
                context: pg_sys::CreateStandaloneExprContext(),
            }
        }
    }

    fn over(&self, table: &Relation) -> *mut pg_sys::Node {
        let root = Relation::open_table(root_of(table.oid()));
        // SAFETY: the expression is over the root.
        unsafe { renumbered(self.0, &root, table) }
    }
}

/// Returns an expression over one table as one over another with columns of the same names.
///
/// # Safety
/// The expression is over the first table alone, as variable 1.
unsafe fn renumbered(
    expression: *mut pg_sys::Node,
    from: &Relation,
    to: &Relation,
) -> *mut pg_sys::Node {
    if from.oid() == to.oid() {
        return expression;
    }
    let mut has_row = false;
    // SAFETY: vouched for by the caller; the tables are open.
    unsafe {
        let [from, to] = [from, to].map(|table| (*table.as_ptr()).rd_att);
        #[cfg(feature = "pg15")]
        let map = pg_sys::build_attrmap_by_name(to, from);
        #[cfg(not(feature = "pg15"))]
        let map = pg_sys::build_attrmap_by_name(to, from, false);
        pg_sys::map_variable_attnos(expression, 1, 0, map, pg_sys::InvalidOid, &mut has_row)
    }
}

/// Returns whether a query is no more than one table with a condition.
fn is_filter(query: &pg_sys::Query) -> bool {
    // SAFETY: the lists are the query's.
    let length = |list: *mut pg_sys::List| unsafe { list.as_ref() }.map_or(0, |list| list.length);
    length(query.rtable) == 1
        && !query.hasSubLinks
        && !query.hasAggs
        && query.setOperations.is_null()
        && query.sortClause.is_null()
        && query.groupClause.is_null()
        && query.havingQual.is_null()
        && query.limitCount.is_null()
        && query.limitOffset.is_null()
        && query.rowMarks.is_null()
}

/// Returns whether an expression reads columns, but no system columns and no whole row.
///
/// # Safety
/// The expression is over one table, or NULL.
unsafe fn reads_columns(expression: *mut pg_sys::Node) -> bool {
    let mut members = null_mut();
    // SAFETY: vouched for by the caller; the set is a new one.
    unsafe {
        pg_sys::pull_varattnos(expression, 1, &mut members);
        let first = pg_sys::bms_next_member(members, -1);
        first + pg_sys::FirstLowInvalidHeapAttributeNumber > 0
    }
}

/// A condition ready for the rows of a table, as long as the memory context in which it was made.
pub struct PreparedCondition {
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
}

impl PreparedCondition {
    /// Returns whether a row satisfies the condition.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn holds(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        let mut is_null = false;
        // SAFETY: vouched for by the caller.
        unsafe {
            (*self.context).ecxt_scantuple = slot;
            let memory = (*self.context).ecxt_per_tuple_memory;
            let before = pg_sys::MemoryContextSwitchTo(memory);
            let value = pg_sys::ExecEvalExpr(self.state, self.context, &mut is_null);
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(memory);
            !is_null && value.value() != 0
        }
    }
}
