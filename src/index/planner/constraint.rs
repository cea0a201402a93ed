//! Constraint keys in plans. `near_dup_key(a, s) % near_dup_key(b, t)` keeps as many rows as
//! `a <@ minhash_ball(b, t)`, and the index of a constraint on `near_dup_key(a, s)` serves
//! `near_dup(a, b, t)` if t is at least s; the same with bit strings and distances.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "every operation on the planner's nodes is unsafe"
)]
#![allow(clippy::disallowed_methods, reason = "an entry an index of the table")]

use super::comparison::BoundComparison;
use crate::index::am;
use crate::index::constraint_key::ConstraintKey;
use crate::index::key_call::KeyCall;
use crate::index::kind::{Bound, Kind};
use crate::index::planned_column::PlannedColumn;
use crate::index::terms::Terms;
use crate::pg::catalog::{is_named_function, operator_beside};
use crate::pg::nodes::{self, constant, elements};
use pgrx::{PgList, pg_sys};

/// A condition that two values are within a constant bound of each other, however it is written.
pub struct NearCondition {
    kind: Kind,
    pub values: [*mut pg_sys::Node; 2],
    terms: Terms,
    bound: Bound,
}

impl NearCondition {
    /// Returns the nearness that a comparison asks for; None unless its bound is constant.
    pub fn of_comparison(comparison: &BoundComparison) -> Option<Self> {
        Some(Self {
            kind: comparison.kind,
            values: comparison.values,
            terms: comparison.terms,
            bound: comparison.bound()?,
        })
    }

    /// Returns the nearness that a call of `near_dup` or `hamming_within` asks for; None for any other
    /// condition.
    ///
    /// # Safety
    /// The node is valid.
    pub unsafe fn of_call(node: *mut pg_sys::Node) -> Option<Self> {
        let (function, args) = nodes::call(node)?;
        let (kind, _) = Kind::WITH_KEYS.into_iter().find(|(kind, _)| {
            let (name, wrapper) = kind.predicate();
            is_named_function(function, name, wrapper)
        })?;
        let (a, b, terms) = Terms::of_call(args, kind)?;
        Some(Self {
            kind,
            values: [a, b],
            terms,
            bound: terms.bound()?,
        })
    }

    /// Returns the conditions `key % key` that follow for the indexes of a table with constraint keys
    /// of one of the values, by its place.
    ///
    /// # Safety
    /// The planner's structures are valid.
    pub unsafe fn conditions(
        &self,
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        column: usize,
    ) -> Vec<*mut pg_sys::Expr> {
        PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist)
            .iter_ptr()
            .filter_map(|index| self.condition(root, index, column))
            .collect()
    }

    unsafe fn condition(
        &self,
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
        let stated = key.terms.bound()?;
        let (value, center) = (self.values[column], self.values[1 - column]);
        let is_served = key.kind == self.kind
            && self.bound.is_within(&stated)
            && pg_sys::equal(key.value.cast(), value.cast());
        if !is_served {
            return None;
        }
        let type_ = pg_sys::exprType(expression);
        let operator = operator_beside(key.function, c"%", [type_, type_])?;
        if !pg_sys::op_in_opfamily(operator, last.family()) {
            return None;
        }
        let mut terms = self.terms;
        terms.bound = self.bound.node();
        let query = key.of_other(root, center, terms)?;
        Some(nodes::new_condition(operator, expression, query))
    }
}

/// Returns whether a table has an index of ours on an expression, as an index of constraint keys is.
///
/// # Safety
/// The planner's structures are valid.
pub unsafe fn has_keys(rel: *mut pg_sys::RelOptInfo) -> bool {
    PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist)
        .iter_ptr()
        .any(|index| am::is_ours(index) && !(*index).indexprs.is_null())
}

/// Rewrites `key % key` as `value <@ ball`, which keeps as many rows: returns the function and its
/// operands. None unless an operand is a call that makes a key.
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
            let objects = key.kind.objects(key.function);
            let ball = nodes::new_constant(objects.ball_type, ball);
            (objects.operator, [key.value, ball])
        }
        _ => return None,
    };
    Some((pg_sys::get_opcode(operator), nodes::list(operands)))
}
