//! Planner support of `near_dup`, `hamming_within` and `near_contained`: how many rows they keep, and the
//! index condition, `column <@ ball(center, bound)` and the like, that says the same.

use super::contained_documents::condition_of_sets;
use crate::index::kind::{BALL, Kind};
use crate::index::planned_column::PlannedColumn;
use crate::index::terms::Terms;
use crate::pg::catalog;
use crate::pg::nodes::{self, constant, pointer};
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};

/// Answers a planner's request, or declines it with a null pointer: also one about a function that is
/// not ours, to which a superuser attached our support.
///
/// A measure, such as `minhash_sim`, has it for no answer: its call loads the library, and with it the
/// hook, before the paths of a session's first query are made.
#[pg_extern(immutable, parallel_safe, strict, name = "_near_dup_support")]
pub fn near_dup_support(request: Internal) -> Internal {
    let node = pointer::<pg_sys::Node>(request);
    // SAFETY: the planner passes a request node, whose tag tells its type.
    let answer = unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_SupportRequestIndexCondition => {
                let request = &mut *node.cast::<pg_sys::SupportRequestIndexCondition>();
                let kind = Kind::of_predicate(request.funcid);
                let condition = kind.and_then(|kind| index_condition(request, kind));
                condition.map(pg_sys::Datum::from)
            }
            pg_sys::NodeTag::T_SupportRequestSelectivity => {
                let request = &mut *node.cast::<pg_sys::SupportRequestSelectivity>();
                let kind = Kind::of_predicate(request.funcid);
                let known = kind.and_then(|kind| selectivity(request, kind));
                known.map(|()| pg_sys::Datum::from(node))
            }
            pg_sys::NodeTag::T_SupportRequestSimplify => {
                condition_of_sets(&*node.cast()).map(pg_sys::Datum::from)
            }
            _ => None,
        }
    };
    Internal::from(Some(answer.unwrap_or(pg_sys::Datum::from(0usize))))
}

/// Returns the list of the one condition that replaces a call whose argument `indexarg` is a column
/// of an index of ours, if that index can serve it. The operator keeps exactly the rows that
/// the function keeps.
///
/// # Safety
/// The request is the planner's.
unsafe fn index_condition(
    request: &mut pg_sys::SupportRequestIndexCondition,
    kind: Kind,
) -> Option<*mut pg_sys::List> {
    // SAFETY: the planner's nodes are valid while it plans.
    unsafe {
        let (a, b, terms) = arguments(request.node, kind)?;
        let (column, center) = match request.indexarg {
            0 => (a, b),
            1 => (b, a),
            _ => return None,
        };
        let (root, index) = (request.root, request.index);
        let compared = PlannedColumn::of(index);
        let usable = compared.at == request.indexcol as usize
            && compared.is_of(kind)
            && pg_sys::is_pseudo_constant_for_index(root, center, index)
            && pg_sys::is_pseudo_constant_for_index(root, terms.bound, index)
            && terms.are_served(compared.options(), constant(center));
        if !usable {
            return None;
        }
        let ball = ball_expression(request.funcid, root, center, &terms, kind)?;
        let ball_type = pg_sys::exprType(ball);
        let (_, strategy) = kind.operator(request.indexarg as usize);
        let strategy = strategy as i16;
        let value_type = catalog::first_argument_type(request.funcid)?;
        let operator =
            pg_sys::get_opfamily_member(request.opfamily, value_type, ball_type, strategy);
        if operator == pg_sys::InvalidOid {
            return None;
        }
        request.lossy = false;
        let clause = nodes::new_condition(operator, column, ball);
        Some(nodes::list([clause.cast()]))
    }
}

/// Returns the two values that a call compares, and its terms.
unsafe fn arguments(
    node: *mut pg_sys::Node,
    kind: Kind,
) -> Option<(*mut pg_sys::Node, *mut pg_sys::Node, Terms)> {
    // SAFETY: the planner's nodes are valid while it plans, and the tag tells the type.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        Terms::of_call((*node.cast::<pg_sys::FuncExpr>()).args, kind)
    }
}

/// Returns `ball(center, bound)`, folded if both are constant. None for a bound out of range, about
/// which the function complains when it is called.
unsafe fn ball_expression(
    function: pg_sys::Oid,
    root: *mut pg_sys::PlannerInfo,
    center: *mut pg_sys::Node,
    terms: &Terms,
    kind: Kind,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the nodes are the planner's, and the function exists.
    unsafe {
        if constant(terms.bound).is_some() && terms.bound().is_none() {
            return None;
        }
        let types = kind.ball_arguments(catalog::first_argument_type(function)?);
        let constructor = catalog::function_beside(function, BALL, &types)?;
        Some(nodes::new_call(root, constructor, terms.after(center)))
    }
}

/// Sets the share of rows, or of pairs of rows, that a call keeps.
///
/// # Safety
/// The request is the planner's.
unsafe fn selectivity(request: &mut pg_sys::SupportRequestSelectivity, kind: Kind) -> Option<()> {
    // SAFETY: the planner's nodes are valid while it plans.
    unsafe {
        let args = Terms::of_call(request.args, kind)?;
        request.selectivity = if request.is_join {
            pair_selectivity(request, args, kind)?
        } else {
            row_selectivity(request, args, kind)?
        };
        Some(())
    }
}

/// Returns the share of rows that the condition between the column and a ball keeps.
unsafe fn row_selectivity(
    request: &pg_sys::SupportRequestSelectivity,
    (a, b, terms): (*mut pg_sys::Node, *mut pg_sys::Node, Terms),
    kind: Kind,
) -> Option<f64> {
    // SAFETY: the nodes are the planner's.
    unsafe {
        let varies = |node| {
            let tables = pg_sys::pull_varnos(request.root, node);
            match request.varRelid {
                0 => !tables.is_null(),
                relation => pg_sys::bms_is_member(relation, tables),
            }
        };
        let (argument, column, center) = if varies(a) { (0, a, b) } else { (1, b, a) };
        let operands = (column, center, terms);
        let (operator, args) = containment(request, argument, operands, kind)?;
        Some(pg_sys::restriction_selectivity(
            request.root,
            operator,
            args,
            request.inputcollid,
            request.varRelid,
        ))
    }
}

/// Returns the share of pairs that the join of a with the balls of b keeps.
unsafe fn pair_selectivity(
    request: &pg_sys::SupportRequestSelectivity,
    operands: (*mut pg_sys::Node, *mut pg_sys::Node, Terms),
    kind: Kind,
) -> Option<f64> {
    // SAFETY: the nodes are the planner's.
    unsafe {
        let (operator, args) = containment(request, 0, operands, kind)?;
        Some(pg_sys::join_selectivity(
            request.root,
            operator,
            args,
            request.inputcollid,
            request.jointype,
            request.sjinfo,
        ))
    }
}

/// Returns the operator between a value, argument `argument` of the call, and a ball, and its
/// operands.
unsafe fn containment(
    request: &pg_sys::SupportRequestSelectivity,
    argument: usize,
    (value, center, terms): (*mut pg_sys::Node, *mut pg_sys::Node, Terms),
    kind: Kind,
) -> Option<(pg_sys::Oid, *mut pg_sys::List)> {
    // SAFETY: the nodes are the planner's.
    unsafe {
        let value_type = catalog::first_argument_type(request.funcid)?;
        let ball = ball_expression(request.funcid, request.root, center, &terms, kind)?;
        let types = [value_type, pg_sys::exprType(ball)];
        let operator = catalog::operator_beside(request.funcid, kind.operator(argument).0, types)?;
        Some((operator, nodes::list([value, ball])))
    }
}

pgrx::extension_sql!(
    "COMMENT ON FUNCTION _near_dup_support(internal) IS
         'planner support for predicates and measures';",
    name = "near_dup_support_comment",
    requires = [near_dup_support]
);
