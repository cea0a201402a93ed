//! Planner support for `near_dup`, `hamming_within` and `near_contained`: how many rows they keep, and the equivalent
//! index condition, such as `column <@ ball(center, bound)`.

use crate::index::kind::Kind;
use crate::index::planned_column::PlannedColumn;
use crate::index::terms::Terms;
use crate::pg::nodes::{self, constant, pointer};
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};

/// Answers a request of the planner, or declines it with a null pointer. Also declines requests about other functions
/// to which a superuser has attached this support function.
///
/// A measure, such as `minhash_sim`, also has this support function, but gets no answer. Calling it loads the library,
/// and with it the hook, before the paths of a session's first query are made.
#[pg_extern(immutable, parallel_safe, strict, name = "_near_dup_support")]
pub fn near_dup_support(request: Internal) -> Internal {
    let node = pointer::<pg_sys::Node>(request);
    // SAFETY: the planner passes a request node, whose tag tells its type.
    let answer = unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_SupportRequestIndexCondition => {
                index_condition(&mut *node.cast()).map(pg_sys::Datum::from)
            }
            pg_sys::NodeTag::T_SupportRequestSelectivity => {
                selectivity(&mut *node.cast()).map(|()| pg_sys::Datum::from(node))
            }
            _ => None,
        }
    };
    Internal::from(Some(answer.unwrap_or(pg_sys::Datum::from(0usize))))
}

/// Returns a list of the one condition that replaces a call whose argument `indexarg` is a column of one of our
/// indexes, if that index can serve it. The operator keeps exactly the rows that the function keeps. If the index has
/// no keys for a bound that is not known yet, it scans all its rows, which still gives the right answers. Returns None
/// for a call to a function that is not one of ours.
///
/// # Safety
/// `request` comes from the planner.
unsafe fn index_condition(
    request: &mut pg_sys::SupportRequestIndexCondition,
) -> Option<*mut pg_sys::List> {
    // The planner's nodes are valid while it plans; constants are of the argument types.
    let kind = Kind::of_predicate(request.funcid)?;
    let call = nodes::cast::<pg_sys::FuncExpr>(request.node, pg_sys::NodeTag::T_FuncExpr)?;
    let (a, b, terms) = Terms::of_call((*call).args, kind)?;
    let column = request.indexarg as usize;
    let (value, center) = *[(a, b), (b, a)].get(column)?;
    let (root, index) = (request.root, request.index);
    let compared = PlannedColumn::of(index);
    let is_usable = compared.at == request.indexcol as usize
        && compared.is_of(kind)
        && pg_sys::is_pseudo_constant_for_index(root, center, index)
        && pg_sys::is_pseudo_constant_for_index(root, terms.bound, index)
        && terms.are_served(compared.options(), constant(center));
    if !is_usable {
        return None;
    }
    let near = terms.in_ball(root, request.funcid, (column, value), center)?;
    request.lossy = false;
    pg_sys::op_in_opfamily((*near).opno, request.opfamily).then(|| nodes::list([near.cast()]))
}

/// Sets the share of rows that the condition between a column and a ball keeps or, for a join, the share of pairs of a
/// first value and the ball of a second value. Returns None for a bound out of range, which the function rejects when
/// it is called.
///
/// # Safety
/// `request` comes from the planner.
unsafe fn selectivity(request: &mut pg_sys::SupportRequestSelectivity) -> Option<()> {
    // The planner's nodes are valid while it plans.
    let kind = Kind::of_predicate(request.funcid)?;
    let (a, b, terms) = Terms::of_call(request.args, kind)?;
    if constant(terms.bound).is_some() {
        terms.bound()?;
    }
    let varies = |node| {
        let tables = pg_sys::pull_varnos(request.root, node);
        match request.varRelid {
            0 => !tables.is_null(),
            relation => pg_sys::bms_is_member(relation, tables),
        }
    };
    let (column, value, center) = match request.is_join || varies(a) {
        true => (0, a, b),
        false => (1, b, a),
    };
    let root = request.root;
    let near = &*terms.in_ball(root, request.funcid, (column, value), center)?;
    let (operator, operands, collation) = (near.opno, near.args, request.inputcollid);
    request.selectivity = match request.is_join {
        true => {
            let (kind, join) = (request.jointype, request.sjinfo);
            pg_sys::join_selectivity(root, operator, operands, collation, kind, join)
        }
        false => {
            let relation = request.varRelid;
            pg_sys::restriction_selectivity(root, operator, operands, collation, relation)
        }
    };
    Some(())
}

pgrx::extension_sql!(
    "COMMENT ON FUNCTION _near_dup_support(internal) IS
         'planner support for predicates and measures';",
    name = "near_dup_support_comment",
    requires = [near_dup_support]
);
