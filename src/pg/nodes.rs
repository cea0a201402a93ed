//! Takes the planner's expressions apart, and builds new ones.
//!
//! A node is a pointer that PostgreSQL keeps valid, and its tag tells its type. The `# Safety` sections list further
//! requirements.

use crate::pg::value::Layout;
use pgrx::{Internal, PgList, pg_sys};

/// Returns the address that an argument of type internal holds, or NULL.
pub fn pointer<T>(internal: Internal) -> *mut T {
    internal
        .unwrap()
        .map_or(std::ptr::null_mut(), |datum| datum.cast_mut_ptr())
}

/// Returns `node` as a pointer to `T`, or None if its tag is not `tag`.
///
/// # Safety
/// The node is valid, and `tag` is the tag of `T`.
pub unsafe fn cast<T>(node: *mut pg_sys::Node, tag: pg_sys::NodeTag) -> Option<*mut T> {
    ((*node).type_ == tag).then(|| node.cast())
}

/// Returns the value of a constant, or None for NULL and other nodes.
///
/// # Safety
/// The node is valid.
pub unsafe fn constant(node: *mut pg_sys::Node) -> Option<pg_sys::Datum> {
    let constant = cast::<pg_sys::Const>(node, pg_sys::NodeTag::T_Const)?;
    (!(*constant).constisnull).then_some((*constant).constvalue)
}

/// Returns whether a node is the constant NULL.
///
/// # Safety
/// The node is valid.
pub unsafe fn is_null(node: *mut pg_sys::Node) -> bool {
    let constant = cast::<pg_sys::Const>(node, pg_sys::NodeTag::T_Const);
    constant.is_some_and(|constant| (*constant).constisnull)
}

/// Returns the elements of a list of expressions, or None if it does not have exactly `N`.
///
/// # Safety
/// The list holds expressions, or is NULL.
pub unsafe fn elements<const N: usize>(list: *mut pg_sys::List) -> Option<[*mut pg_sys::Node; N]> {
    all_elements(list).try_into().ok()
}

/// Returns the elements of a list of expressions.
///
/// # Safety
/// The list holds expressions, or is NULL.
#[allow(clippy::disallowed_methods, reason = "arguments of a call")]
pub unsafe fn all_elements(list: *mut pg_sys::List) -> Vec<*mut pg_sys::Node> {
    PgList::from_pg(list).iter_ptr().collect()
}

/// Builds a list of expressions.
///
/// # Safety
/// The nodes are valid.
pub unsafe fn list(nodes: impl IntoIterator<Item = *mut pg_sys::Node>) -> *mut pg_sys::List {
    nodes.into_iter().fold(std::ptr::null_mut(), |list, node| {
        pg_sys::lappend(list, node.cast())
    })
}

/// Returns the numbers of the columns that `expression` reads, in ascending order. Numbers below 1 stand for system
/// columns and whole rows.
///
/// # Safety
/// The expression refers to one table only, as range table entry 1.
#[allow(clippy::disallowed_methods, reason = "at most the columns of a table")]
pub unsafe fn columns(expression: *mut pg_sys::Node) -> Vec<i16> {
    let (mut members, mut columns) = (std::ptr::null_mut(), Vec::new());
    pg_sys::pull_varattnos(expression, 1, &mut members);
    let mut member = pg_sys::bms_next_member(members, -1);
    while member >= 0 {
        columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
        member = pg_sys::bms_next_member(members, member);
    }
    columns
}

/// Returns the function and the arguments of a function call or an operator, or None for other nodes.
///
/// # Safety
/// The node is valid.
pub unsafe fn call(node: *mut pg_sys::Node) -> Option<(pg_sys::Oid, *mut pg_sys::List)> {
    match (*node).type_ {
        pg_sys::NodeTag::T_FuncExpr => {
            let call = &*node.cast::<pg_sys::FuncExpr>();
            Some((call.funcid, call.args))
        }
        pg_sys::NodeTag::T_OpExpr => {
            let operator = &*node.cast::<pg_sys::OpExpr>();
            Some((operator.opfuncid, operator.args))
        }
        _ => None,
    }
}

/// Builds a call to `function` under the collation of its first argument, or its result if the function is immutable
/// and its arguments are constants.
///
/// # Safety
/// The function takes the nodes as arguments, at least one.
pub unsafe fn new_call(
    root: *mut pg_sys::PlannerInfo,
    function: pg_sys::Oid,
    args: &[*mut pg_sys::Node],
) -> *mut pg_sys::Node {
    let call = pg_sys::makeFuncExpr(
        function,
        pg_sys::get_func_rettype(function),
        list(args.iter().copied()),
        pg_sys::InvalidOid,
        pg_sys::exprCollation(args[0]),
        pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
    );
    pg_sys::eval_const_expressions(root, call.cast())
}

/// Builds a constant of type `type_`.
///
/// # Safety
/// The datum is of this type, and outlives the node.
pub unsafe fn new_constant(type_: pg_sys::Oid, datum: pg_sys::Datum) -> *mut pg_sys::Node {
    let (Layout { by_value, length }, none) = (Layout::of(type_), pg_sys::InvalidOid);
    pg_sys::makeConst(type_, -1, none, length.into(), datum, false, by_value).cast()
}

/// Builds the condition `left operator right`.
///
/// # Safety
/// The operator takes the nodes as operands, and returns a boolean.
pub unsafe fn new_condition(
    operator: pg_sys::Oid,
    left: *mut pg_sys::Node,
    right: *mut pg_sys::Node,
) -> *mut pg_sys::Expr {
    let (boolean, none) = (pg_sys::BOOLOID, pg_sys::InvalidOid);
    // The planner compares this collation with the collation of a text index column.
    let collation = pg_sys::exprCollation(left);
    let condition = pg_sys::make_opclause(
        operator,
        boolean,
        false,
        left.cast(),
        right.cast(),
        none,
        collation,
    );
    pg_sys::set_opfuncid(condition.cast());
    condition
}
