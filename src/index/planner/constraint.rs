//! Constraint keys in plans. `near_dup_key(a, s) % near_dup_key(b, t)` is estimated to keep as many rows as `a <@
//! _ball(b, t)`. The index of a constraint on `near_dup_key(a, s)` serves `near_dup(a, b, t)` if t is at least s. The
//! same goes for documents, and for bit strings if the distance is at most that of the constraint.

use super::condition::NearCondition;
use crate::index::constraint_key::{ConstraintKey, MAKE};
use crate::index::key_call::KeyCall;
use crate::index::kind::{BALL, BallOperator};
use crate::index::planned_column::PlannedColumn;
use crate::pg::catalog::operator_beside;
use crate::pg::nodes::{self, constant, elements};
use pgrx::{PgList, pg_sys};

/// Returns the condition `key % key` that follows from `near`, for an `index` on constraint keys of the value at
/// position `column`. Returns None unless the bound of `near` is constant and within the bound of these keys.
///
/// # Safety
/// The planner's structures are valid.
pub unsafe fn of_key(
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
    let collation = pg_sys::DEFAULT_COLLATION_OID;
    let no_label = pg_sys::makeNullConst(pg_sys::TEXTOID, -1, collation).cast();
    let args: Vec<_> = terms.after(center).chain([no_label]).collect();
    let query = key.kind.call(root, key.function, MAKE, &args)?;
    Some(nodes::new_condition(operator, expression, query))
}

/// Rewrites `key % key` as `value <@ ball`, which is estimated to keep as many rows. Returns the operator's kind,
/// strategy and operands. Returns None unless one operand is a call that makes a key, and the other one a call or a
/// constant of the same kind.
///
/// # Safety
/// The planner's structures are valid.
pub unsafe fn as_ball_operator(
    root: *mut pg_sys::PlannerInfo,
    args: *mut pg_sys::List,
) -> Option<(BallOperator, [*mut pg_sys::Node; 2])> {
    let [left, right] = elements(args)?;
    let (key, other) = match KeyCall::of(left) {
        Some(key) => (key, right),
        None => (KeyCall::of(right)?, left),
    };
    let kind = key.kind;
    let ball = match (KeyCall::of(other), constant(other)) {
        (Some(query), _) if query.kind == kind => {
            let ball: Vec<_> = query.terms.after(query.value).collect();
            kind.call(root, key.function, BALL, &ball)?
        }
        // Another operator's constant is no key.
        (None, Some(datum))
            if pg_sys::exprType(other) == pg_sys::get_func_rettype(key.function) =>
        {
            let ball = ConstraintKey::from_raw(datum).ball();
            kind.bound_of_ball(ball)?;
            let [_, ball_type] = kind.types(pg_sys::get_func_namespace(key.function));
            nodes::new_constant(ball_type, ball)
        }
        _ => return None,
    };
    let (_, strategy) = kind.operator(0);
    Some((BallOperator { kind, strategy }, [key.value, ball]))
}
