//! Trigger conditions that name tables or keep expressions over a row. PostgreSQL follows renames of these tables and
//! columns, refuses to drop them, and dumps them.
#![allow(clippy::disallowed_methods, reason = "one entry per expression of a condition")]

use crate::pg::names;
use crate::pg::nodes;
use pgrx::{PgList, pg_sys};
use std::ffi::c_char;

/// Returns a condition that always holds and names `tables`.
pub fn naming(tables: &[pg_sys::Oid]) -> String {
    let named = tables.iter().map(|&table| {
        let name = names::literal(&names::relation(table));
        format!("{name}::pg_catalog.regclass")
    });
    format!("ROW({}) IS NOT NULL", named.collect::<Vec<_>>().join(", "))
}

/// Returns the tables that the first conjunct of a condition names, as written by [`naming`], or an empty list if the
/// conjunct has a different form.
///
/// # Safety
/// The condition belongs to a trigger, or is NULL.
pub unsafe fn named(condition: *const c_char) -> Vec<pg_sys::Oid> {
    let conjuncts = conjuncts(condition);
    let row = conjuncts.first().and_then(|&first| tested_row(first));
    let Some(row) = row else { return Vec::new() };
    let tables = nodes::all_elements((*row).args).into_iter();
    let tables = tables.map_while(|element| nodes::constant(element));
    tables
        .map(|table| pg_sys::Oid::from(table.value() as u32))
        .collect()
}

/// Returns a condition that always holds and contains `expressions` over `NEW` or `OLD`.
pub fn keeping(expressions: &[String]) -> String {
    format!("(ROW({}) IS NULL OR true)", expressions.join(", "))
}

/// Returns the expressions in a condition that [`keeping`] wrote, as expressions over range table entry 1. Returns None
/// if there is no such condition.
///
/// # Safety
/// The condition belongs to a trigger, or is NULL.
pub unsafe fn kept(condition: *const c_char) -> Option<Vec<*mut pg_sys::Node>> {
    let conjuncts = conjuncts(condition);
    let row = conjuncts.into_iter().find_map(|conjunct| {
        let or = nodes::cast::<pg_sys::BoolExpr>(conjunct, pg_sys::NodeTag::T_BoolExpr)?;
        let [row, _] = nodes::elements::<2>((*or).args)?;
        ((*or).boolop == pg_sys::BoolExprType::OR_EXPR)
            .then(|| tested_row(row))
            .flatten()
    })?;
    let (new, only) = (pg_sys::PRS2_NEW_VARNO as i32, 1);
    pg_sys::ChangeVarNodes(row.cast(), new, only, 0);
    Some(PgList::from_pg((*row).args).iter_ptr().collect())
}

/// Splits a trigger's condition at its top-level ANDs.
///
/// # Safety
/// The condition belongs to a trigger, or is NULL.
pub unsafe fn conjuncts(condition: *const c_char) -> Vec<*mut pg_sys::Node> {
    if condition.is_null() {
        return Vec::new();
    }
    let condition = pg_sys::stringToNode(condition).cast::<pg_sys::Expr>();
    let conjuncts = pg_sys::make_ands_implicit(condition);
    PgList::from_pg(conjuncts).iter_ptr().collect()
}

/// Returns the row that a node tests for NULL, or None for other nodes.
///
/// # Safety
/// The node is valid.
pub unsafe fn tested_row(node: *mut pg_sys::Node) -> Option<*mut pg_sys::RowExpr> {
    let test = nodes::cast::<pg_sys::NullTest>(node, pg_sys::NodeTag::T_NullTest)?;
    nodes::cast((*test).arg.cast(), pg_sys::NodeTag::T_RowExpr)
}

/// Returns the column's number if `node` is a plain column, or None for other expressions.
///
/// # Safety
/// The node is valid.
pub unsafe fn column(node: *mut pg_sys::Node) -> Option<i16> {
    let var = nodes::cast::<pg_sys::Var>(node, pg_sys::NodeTag::T_Var)?;
    Some((*var).varattno)
}
