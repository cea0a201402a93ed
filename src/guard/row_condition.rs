//! The condition that rows must satisfy to be compared, for example `deleted_at IS NULL`.

use crate::pg::error::{invalid, raise};
use crate::pg::relation::{Relation, root_of};
use crate::pg::statement::{Connection, Statement};
use crate::pg::{names, nodes};
use pgrx::{PgList, PgSqlErrorCode, pg_sys};
use std::ptr::null_mut;

const VALID: &str = "condition is an immutable boolean expression over columns of the table, as in condition => 'deleted_at IS NULL'.";

/// A boolean expression over the columns of a table. Columns are numbered as in the root of its partitions.
#[derive(Clone, Copy)]
pub struct RowCondition(*mut pg_sys::Node);

impl PartialEq for RowCondition {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: compares two trees.
        unsafe { pg_sys::equal(self.0.cast(), other.0.cast()) }
    }
}

impl RowCondition {
    /// Returns the condition for `expression`, or None if `expression` is not boolean.
    ///
    /// # Safety
    /// `expression` is over `table` alone, as variable 1.
    pub unsafe fn new(expression: *mut pg_sys::Node, table: &Relation) -> Option<Self> {
        let is_boolean = pg_sys::exprType(expression) == pg_sys::BOOLOID;
        let root = Relation::open_table(root_of(table.oid()));
        is_boolean.then(|| Self(renumbered(expression, table, &root)))
    }

    /// Parses `condition`, and returns it as SQL over the row `NEW` that does not depend on search_path.
    ///
    /// # Errors
    /// The errors of [`parsed_condition`].
    pub fn over_new(table: &Relation, condition: &str) -> String {
        let connection = Connection::open();
        let expression = parsed_condition(&connection, table.oid(), condition);
        // SAFETY: the expression is only over the table.
        let text = unsafe { names::expression(expression, table.oid(), c"new", true) };
        connection.close();
        text
    }

    /// Returns the condition over `table`, which is under the root, as a list of conjuncts, like the predicate of an
    /// index.
    pub fn conjuncts(&self, table: &Relation) -> *mut pg_sys::List {
        // SAFETY: the expression is a valid one over the table.
        unsafe {
            let simple = pg_sys::eval_const_expressions(null_mut(), self.over(table));
            pg_sys::make_ands_implicit(pg_sys::canonicalize_qual(simple.cast(), false))
        }
    }

    /// Returns the condition, prepared for the rows of `table`, which is under the root.
    pub fn prepare(&self, table: &Relation) -> PreparedCondition {
        // SAFETY: the expression is a valid one over the table.
        unsafe {
            let planned = pg_sys::expression_planner(self.over(table).cast());
            PreparedCondition {
                state: pg_sys::ExecInitQual(pg_sys::make_ands_implicit(planned), null_mut()),
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

/// Converts `expression` over one table to an expression over another table with the same column names.
///
/// # Safety
/// `expression` is over `from` alone, as variable 1.
unsafe fn renumbered(
    expression: *mut pg_sys::Node,
    from: &Relation,
    to: &Relation,
) -> *mut pg_sys::Node {
    if from.oid() == to.oid() {
        return expression;
    }
    let mut has_row = false;
    let [from, to] = [from, to].map(|table| (*table.as_ptr()).rd_att);
    #[cfg(feature = "pg15")]
    let map = pg_sys::build_attrmap_by_name(to, from);
    #[cfg(not(feature = "pg15"))]
    let map = pg_sys::build_attrmap_by_name(to, from, false);
    pg_sys::map_variable_attnos(expression, 1, 0, map, pg_sys::InvalidOid, &mut has_row)
}

/// Parses `condition`, which is over the columns of `table`, and returns its expression. The result lives as long as
/// the connection.
///
/// # Errors
/// The errors of [`parsed`].
pub fn parsed_condition(
    connection: &Connection,
    table: pg_sys::Oid,
    condition: &str,
) -> *mut pg_sys::Node {
    let name = names::relation(table);
    // The line break ends a comment in the condition.
    let sql = format!("SELECT FROM ONLY {name} WHERE ({condition}\n)");
    parsed(&connection.prepare(&sql, &[]), table, "condition", VALID).0
}

/// Returns the only expression of `statement`, which reads `table`: its WHERE condition, or its ORDER BY item with the
/// sort clause.
///
/// # Errors
/// ERROR `invalid_parameter_value` if the value of `parameter` made it any other statement, or if the expression reads
/// no columns, or system columns; `invalid_object_definition` if it is not immutable; the errors of
/// [`names::check_stored`] and of PostgreSQL's parser.
pub fn parsed<'q>(
    statement: &Statement<'q>,
    table: pg_sys::Oid,
    parameter: &str,
    valid: &str,
) -> (*mut pg_sys::Node, Option<&'q pg_sys::SortGroupClause>) {
    // SAFETY: the query is the statement's, which lives as long as its connection.
    unsafe {
        let query = statement.query().map(|query| &*query);
        let expression = query.filter(|query| is_plain(query)).and_then(|query| {
            let clauses = PgList::<pg_sys::SortGroupClause>::from_pg(query.sortClause);
            let (condition, clause) = ((*query.jointree).quals, clauses.get_ptr(0));
            let ordered = |clause| pg_sys::get_sortgroupclause_expr(clause, query.targetList);
            let node = clause.map_or(condition, ordered);
            let is_one = clauses.len() + usize::from(!condition.is_null()) == 1;
            is_one.then_some((node, clause.map(|clause| &*clause)))
        });
        let Some(expression) = expression else {
            invalid(
                &format!("{parameter} is more than one expression over the table's columns"),
                valid,
            );
        };
        if pg_sys::contain_mutable_functions(expression.0) {
            raise(
                PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                &format!("functions in {parameter} must be marked IMMUTABLE"),
                valid,
            );
        }
        let columns = nodes::columns(expression.0);
        if columns.first().is_none_or(|&first| first <= 0) {
            invalid(
                &format!("{parameter} must name the columns that it reads, and no system columns"),
                valid,
            );
        }
        for column in columns {
            names::check_stored(table, column);
        }
        expression
    }
}

/// Returns whether `query` consists only of a table, a condition and an order.
fn is_plain(query: &pg_sys::Query) -> bool {
    let others = [
        query.limitCount,
        query.limitOffset,
        query.setOperations,
        query.havingQual,
        query.rowMarks.cast(),
        query.groupClause.cast(),
        query.groupingSets.cast(),
        query.distinctClause.cast(),
    ];
    let computes =
        query.hasAggs || query.hasSubLinks || query.hasWindowFuncs || query.hasTargetSRFs;
    // SAFETY: a list of the query, which has a table.
    let is_one = unsafe { (*query.rtable).length == 1 };
    is_one && !computes && others.iter().all(|part| part.is_null())
}

/// A condition prepared for the rows of a table. Lives in the memory context in which it was prepared.
pub struct PreparedCondition {
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
}

impl PreparedCondition {
    /// Returns whether the row in `slot` satisfies the condition.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn holds(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        (*self.context).ecxt_scantuple = slot;
        let holds = pg_sys::ExecQual(self.state, self.context);
        pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
        holds
    }
}
