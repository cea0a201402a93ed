//! Containment of documents by an index of sets: from `near_contained(part, whole, c)`, or
//! `containment(part, whole) >= c`, follows `shingle_hashes(whole) %> _ball(shingle_hashes(part), c)`, and the like.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "every operation on the planner's nodes is unsafe"
)]

use super::comparison::BoundComparison;
use super::selectivity;
use crate::index::kind::Kind;
use crate::index::terms::Terms;
use crate::pg::catalog::is_named_function;
use crate::pg::nodes;
use pgrx::pg_sys;

/// A condition that a document contains a share of another, however it is written.
#[derive(Clone, Copy)]
pub struct ContainmentCondition {
    /// One of the extension's.
    function: pg_sys::Oid,
    pub values: [*mut pg_sys::Node; 2],
    terms: Terms,
    /// The condition of sets keeps the same rows.
    pub is_exact: bool,
}

impl ContainmentCondition {
    /// Returns the containment that a comparison asks for; None of another measure, and unless its bound is constant.
    pub fn of_comparison(comparison: &BoundComparison) -> Option<Self> {
        let bound = comparison.bound()?;
        let mut terms = comparison.terms;
        terms.bound = bound.node();
        (comparison.kind == Kind::ContainingDocuments).then_some(Self {
            function: comparison.function,
            values: comparison.values,
            terms,
            is_exact: false,
        })
    }

    /// Returns the containment that a call of `near_contained` asks for; None for any other condition.
    ///
    /// # Safety
    /// The node is valid.
    pub unsafe fn of_call(node: *mut pg_sys::Node) -> Option<Self> {
        let call = &*nodes::cast::<pg_sys::FuncExpr>(node, pg_sys::NodeTag::T_FuncExpr)?;
        let (function, args) = (call.funcid, call.args);
        let (name, wrapper) = Kind::ContainingDocuments.predicate();
        if !is_named_function(function, name, wrapper) {
            return None;
        }
        let (part, whole, terms) = Terms::of_call(args, Kind::ContainingDocuments)?;
        Some(Self {
            function,
            values: [part, whole],
            terms,
            is_exact: true,
        })
    }

    /// Returns the condition of sets for the value that is a column of a table, by its place; None unless the table has
    /// an index on the value's shingle hashes.
    ///
    /// # Safety
    /// The planner's structures are valid.
    pub unsafe fn of_sets(
        &self,
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        column: usize,
    ) -> Option<*mut pg_sys::Expr> {
        let mut indexes = selectivity::columns(rel, Kind::Containing).peekable();
        indexes.peek()?;
        let sets = self.terms.sets(root, self.function, self.values)?;
        let (value, center) = (sets[column], sets[1 - column]);
        indexes.find(|of| pg_sys::match_index_to_operand(value, of.at as i32, of.index))?;
        let ball = [center, self.terms.bound];
        let kind = Kind::Containing;
        let (operator, [value, ball]) =
            kind.containment(root, self.function, (column, value), &ball)?;
        Some(nodes::new_condition(operator, value, ball))
    }
}
