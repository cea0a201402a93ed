//! Constraint keys in plans. `near_dup_key(a, s) % near_dup_key(b, t)` is estimated to keep as many rows as `a <@
//! _ball(b, t)`. The index of a constraint on `near_dup_key(a, s)` serves `near_dup(a, b, t)` if t is at least s. The
//! same goes for documents, and for bit strings if the distance is at most that of the constraint.

use super::condition::NearCondition;
use crate::index::constraint_key::ConstraintKey;
use crate::index::key_call::KeyCall;
use crate::index::planned_column::PlannedColumn;
use crate::pg::catalog::operator_beside;
use crate::pg::nodes::{self, constant, elements};
use pgrx::{PgList, pg_sys};

/// Returns the conditions `key % key` that follow from `near`, if its bound is constant, for the indexes of `rel` with
/// constraint keys of the value at position `column`.
///
/// # Safety
/// The planner's structures are valid.
pub unsafe fn of_keys(
    near: &NearCondition,
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    column: usize,
) -> Vec<*mut pg_sys::Expr> {
    PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist)
        .iter_ptr()
        .filter_map(|index| of_key(near, root, index, column))
        .collect()
}

unsafe fn of_key(
    near: &NearCondition,
    root: *mut pg_sys::PlannerInfo,
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
) -> Option<*mut pg_sys::Expr> {
    let last = PlannedColumn::of(index);
    if *(*index).indexkeys.add(last.at) != 0 {
        return None;
    }
    let expressions = PgList::<pg_sys::Node>::from_pg((*index).indexprs);
    let expression = expressions.iter_ptr().last()?;
    let key = KeyCall::of(expression)?;
    let (stated, bound) = (key.terms.bound()?, near.bound()?);
    let (value, center) = (near.values[column], near.values[1 - column]);
    let is_served = key.kind == near.kind
        && bound.is_within(&stated)
        && pg_sys::equal(key.value.cast(), value.cast());
    if !is_served {
        return None;
    }
    let type_ = pg_sys::exprType(expression);
    let operator = operator_beside(key.function, c"%", [type_, type_])?;
    if !pg_sys::op_in_opfamily(operator, last.family()) {
        return None;
    }
    let mut terms = near.terms;
    terms.bound = bound.node();
    let query = key.of_other(root, center, terms)?;
    Some(nodes::new_condition(operator, expression, query))
}

/// Rewrites `key % key` as `value <@ ball`, which is estimated to keep as many rows. Returns the operator's function
/// and operands. Returns None unless one operand is a call that makes a key, and the other one a call or a constant of
/// the same kind.
///
/// # Safety
/// The planner's structures are valid.
pub unsafe fn as_containment(
    root: *mut pg_sys::PlannerInfo,
    args: *mut pg_sys::List,
) -> Option<(pg_sys::Oid, *mut pg_sys::List)> {
    let [left, right] = elements(args)?;
    let (key, other) = match KeyCall::of(left) {
        Some(key) => (key, right),
        None => (KeyCall::of(right)?, left),
    };
    let (operator, operands) = match (KeyCall::of(other), constant(other)) {
        (Some(query), _) if query.kind == key.kind => {
            let value = (0, key.value);
            let terms = query.terms;
            terms.containment(root, key.function, value, query.value)?
        }
        (None, Some(datum)) => {
            let ball = ConstraintKey::from_raw(datum).ball();
            key.kind.bound_of_ball(ball)?;
            let types = key.kind.types(pg_sys::get_func_namespace(key.function));
            let operator = operator_beside(key.function, key.kind.operator(0).0, types)?;
            let ball = nodes::new_constant(types[1], ball);
            (operator, [key.value, ball])
        }
        _ => return None,
    };
    Some((pg_sys::get_opcode(operator), nodes::list(operands)))
}
