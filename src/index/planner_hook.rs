//! `minhash_sim(column, x) > c`, and the like, through an index.
//!
//! Like PostgreSQL itself in orclauses.c, the planner hook derives a weaker condition that an index
//! serves: `near_dup(column, x, c)`. It is there only while index paths are made, so that no other
//! plan evaluates it, and the original condition stays as a filter, so that every answer is right.
#![allow(clippy::disallowed_methods, reason = "an entry an index of the table")]

use crate::index::am;
use crate::minhash::similarity::minhash_distance_wrapper;
use crate::minhash::similarity::minhash_sim_wrapper;
use crate::pg::catalog;
use pgrx::prelude::*;
use pgrx::{FromDatum, Internal, IntoDatum, PgList, pg_sys};

/// Error of `1 - (1 - c)`. Similarities are at least 1e-3 apart.
const ROUNDING: f64 = 1e-9;

static mut PREVIOUS: pg_sys::set_rel_pathlist_hook_type = None;

/// Called once when a session loads the library.
pub fn install() {
    // SAFETY: a backend has one thread.
    unsafe {
        PREVIOUS = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(add_index_paths);
    }
}

/// Planner support of `minhash_sim` and `minhash_distance`: it answers nothing, but its call loads
/// the library, and with it the hook, before the paths of a session's first query are made.
#[pg_extern(immutable, parallel_safe, strict)]
pub fn minhash_sim_support(_request: Internal) -> Internal {
    Internal::from(Some(pg_sys::Datum::from(0usize)))
}

#[pg_guard]
unsafe extern "C-unwind" fn add_index_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    number: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's structures are valid while it plans.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, rel, number, entry);
        }
        if !has_index_paths(rel, entry) {
            return;
        }
        let filters = derived(root, (*rel).baserestrictinfo);
        let joins = derived(root, (*rel).joininfo);
        if !filters.is_null() || !joins.is_null() {
            create_index_paths_with(root, rel, filters, joins);
        }
    }
}

/// Returns whether PostgreSQL makes index paths for a relation, and it has a GIN index.
unsafe fn has_index_paths(rel: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) -> bool {
    // SAFETY: vouched for by the caller.
    unsafe {
        let plain = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
            && !(*entry).inh
            && (*entry).tablesample.is_null();
        plain
            && !(*rel).pathlist.is_null()
            && PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist)
                .iter_ptr()
                .any(|index| (*index).relam == pg_sys::GIN_AM_OID || am::is_ours(index))
    }
}

/// Returns the conditions that follow from those of a list.
unsafe fn derived(
    root: *mut pg_sys::PlannerInfo,
    conditions: *mut pg_sys::List,
) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    // SAFETY: vouched for by the caller; a list of conditions.
    unsafe {
        for condition in PgList::<pg_sys::RestrictInfo>::from_pg(conditions).iter_ptr() {
            if let Some(clause) = near_dup_clause((*condition).clause) {
                list = pg_sys::lappend(list, restriction(root, condition, clause).cast());
            }
        }
    }
    list
}

/// Makes index paths with further conditions at hand; what no index takes is forgotten.
unsafe fn create_index_paths_with(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    filters: *mut pg_sys::List,
    joins: *mut pg_sys::List,
) {
    // SAFETY: vouched for by the caller.
    unsafe {
        let indexes = PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist);
        let own_filters: Vec<_> = indexes
            .iter_ptr()
            .map(|index| (*index).indrestrictinfo)
            .collect();
        let own_joins = (*rel).joininfo;
        for index in indexes.iter_ptr() {
            (*index).indrestrictinfo = pg_sys::list_concat_copy((*index).indrestrictinfo, filters);
        }
        (*rel).joininfo = pg_sys::list_concat_copy(own_joins, joins);
        pg_sys::create_index_paths(root, rel);
        for (index, filters) in indexes.iter_ptr().zip(own_filters) {
            (*index).indrestrictinfo = filters;
        }
        (*rel).joininfo = own_joins;
    }
}

/// Returns a condition like another, with another clause.
unsafe fn restriction(
    root: *mut pg_sys::PlannerInfo,
    like: *mut pg_sys::RestrictInfo,
    clause: *mut pg_sys::Expr,
) -> *mut pg_sys::RestrictInfo {
    // SAFETY: vouched for by the caller.
    unsafe {
        let like = &*like;
        #[cfg(feature = "pg15")]
        return pg_sys::make_restrictinfo(
            root,
            clause,
            like.is_pushed_down,
            like.outerjoin_delayed,
            false,
            like.security_level,
            like.required_relids,
            like.outer_relids,
            like.nullable_relids,
        );
        #[cfg(not(feature = "pg15"))]
        pg_sys::make_restrictinfo(
            root,
            clause,
            like.is_pushed_down,
            like.has_clone,
            like.is_clone,
            false,
            like.security_level,
            like.required_relids,
            like.incompatible_relids,
            like.outer_relids,
        )
    }
}

/// `near_dup(a, b, t)` for a comparison of `minhash_sim(a, b)` or `minhash_distance(a, b)` with a
/// constant from which it follows.
unsafe fn near_dup_clause(clause: *mut pg_sys::Expr) -> Option<*mut pg_sys::Expr> {
    // SAFETY: the tag tells the type of a node.
    unsafe {
        let (measure, bound) = comparison(clause.cast())?;
        let (function, args) = call(measure.node)?;
        let threshold = if measure.above && is(function, c"minhash_sim", minhash_sim_wrapper) {
            bound
        } else if !measure.above && is(function, c"minhash_distance", minhash_distance_wrapper) {
            1.0 - bound - ROUNDING
        } else {
            return None;
        };
        if !crate::options::is_threshold(threshold) {
            return None;
        }
        let type_ = catalog::first_argument_type(function)?;
        let types = [type_, type_, pg_sys::FLOAT8OID];
        let near_dup = catalog::function_beside(function, c"near_dup", &types)?;
        let args = pg_sys::lappend(pg_sys::list_copy(args), float8(threshold).cast());
        Some(
            pg_sys::makeFuncExpr(
                near_dup,
                pg_sys::BOOLOID,
                args,
                pg_sys::InvalidOid,
                pg_sys::InvalidOid,
                pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
            )
            .cast(),
        )
    }
}

/// One side of a comparison, and whether it is to be above the other.
struct Measure {
    node: *mut pg_sys::Node,
    above: bool,
}

/// Returns a comparison of two float8, one of them constant.
unsafe fn comparison(node: *mut pg_sys::Node) -> Option<(Measure, f64)> {
    // SAFETY: the tag tells the type of a node.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_OpExpr {
            return None;
        }
        let operator = &*node.cast::<pg_sys::OpExpr>();
        let left_above = match u32::from(operator.opfuncid) {
            pg_sys::F_FLOAT8GT | pg_sys::F_FLOAT8GE => true,
            pg_sys::F_FLOAT8LT | pg_sys::F_FLOAT8LE => false,
            _ => return None,
        };
        let left = pg_sys::list_nth(operator.args, 0).cast::<pg_sys::Node>();
        let right = pg_sys::list_nth(operator.args, 1).cast::<pg_sys::Node>();
        let measure = |node, above| Measure { node, above };
        if let Some(bound) = constant(right) {
            return Some((measure(left, left_above), bound));
        }
        Some((measure(right, !left_above), constant(left)?))
    }
}

unsafe fn constant(node: *mut pg_sys::Node) -> Option<f64> {
    // SAFETY: the tag tells the type of a node; the constant is a float8.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_Const {
            return None;
        }
        let constant = &*node.cast::<pg_sys::Const>();
        f64::from_datum(constant.constvalue, constant.constisnull)
    }
}

fn float8(value: f64) -> *mut pg_sys::Const {
    let datum = value.into_datum().expect("a number is not NULL");
    // SAFETY: makes a node; 8 bytes by value.
    unsafe {
        pg_sys::makeConst(
            pg_sys::FLOAT8OID,
            -1,
            pg_sys::InvalidOid,
            8,
            datum,
            false,
            true,
        )
    }
}

/// Function and arguments of a call, or of an operator.
unsafe fn call(node: *mut pg_sys::Node) -> Option<(pg_sys::Oid, *mut pg_sys::List)> {
    // SAFETY: the tag tells the type of a node.
    unsafe {
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
}

/// Returns whether a function has that name and is that one of this library. The name is looked at
/// first, since looking up the address loads a function's library.
unsafe fn is(
    function: pg_sys::Oid,
    name: &std::ffi::CStr,
    wrapper: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
) -> bool {
    // SAFETY: the function exists.
    unsafe {
        let found = pg_sys::get_func_name(function);
        !found.is_null()
            && std::ffi::CStr::from_ptr(found) == name
            && catalog::is_function(function, wrapper)
    }
}

pgrx::extension_sql!(
    r#"
COMMENT ON FUNCTION minhash_sim_support(internal) IS
    'planner support for minhash_sim and minhash_distance';
"#,
    name = "planner_hook",
    requires = [minhash_sim_support]
);
