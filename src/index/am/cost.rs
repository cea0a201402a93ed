//! Estimates the cost of a scan.
#![allow(unsafe_op_in_unsafe_fn, reason = "every operation on the planner's nodes is unsafe")]

use super::planned;
use crate::index::bound::Bound;
use crate::index::classes::{CONTAINS, KeySearch, RESEMBLES};
use crate::index::kind::{Kind, USUAL_SHARE};
use crate::index::planned_column::PlannedColumn;
use crate::index::terms::Terms;
use crate::pg::nodes::{self, constant, elements};
use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};
use std::ptr::null_mut;

/// Number of operators that PostgreSQL's own access methods charge for descending to a page, like
/// `DEFAULT_PAGE_CPU_MULTIPLIER` in selfuncs.c.
const OPERATORS_PER_PAGE: f64 = 50.0;

/// How an index answers a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Not at all: there is neither a condition nor an order.
    Nothing,
    /// By the keys of a condition.
    Matches,
    /// By the keys of the value in ORDER BY, then by all other rows if the candidates do not suffice.
    Nearest,
    /// By reading all rows, without keys.
    Everything,
}

impl Reading {
    /// Returns how an index answers `path`. `has_keys` tells whether keys answer a condition on the compared column.
    ///
    /// # Safety
    /// `path` comes from the planner.
    unsafe fn of(path: &pg_sys::IndexPath, has_keys: bool) -> Self {
        let last = (*path.indexinfo).nkeycolumns - 1;
        let clauses = PgList::<pg_sys::IndexClause>::from_pg(path.indexclauses);
        let has = |column| {
            clauses
                .iter_ptr()
                .any(|c| i32::from((*c).indexcol) == column)
        };
        let is_ordered = !path.indexorderbys.is_null();
        match (0..last).all(has) {
            true if has_keys => Self::Matches,
            true if is_ordered => Self::Nearest,
            _ if is_ordered || !clauses.is_empty() => Self::Everything,
            _ => Self::Nothing,
        }
    }
}

/// Implements `amcostestimate`.
#[pg_guard]
#[expect(clippy::too_many_arguments, reason = "PostgreSQL's interface")]
pub unsafe extern "C-unwind" fn estimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loop_count: f64,
    startup_cost: *mut pg_sys::Cost,
    total_cost: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // The planner calls this with a path and places for the results.
    *correlation = 0.0;
    let keyed = Keyed::of(root, &*path);
    let reading = Reading::of(&*path, keyed.is_some());
    if reading == Reading::Nothing {
        *startup_cost = f64::INFINITY;
        *total_cost = f64::INFINITY;
        *selectivity = 0.0;
        *pages = 0.0;
        // Since version 18, PostgreSQL compares the numbers of disabled nodes before costs, so infinite costs do
        // not suffice.
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        {
            (*path).path.disabled_nodes = 2;
        }
        return;
    }
    let info = (*path).indexinfo;
    let rows = (*(*info).rel).tuples;
    let quals = pg_sys::get_quals_from_indexclauses((*path).indexclauses);
    // An index that reads all rows returns them all, in the table's order.
    *selectivity = match reading {
        Reading::Everything => 1.0,
        _ => pg_sys::clauselist_selectivity(
            root,
            pg_sys::add_predicate_to_index_quals(info, quals),
            (*(*info).rel).relid as i32,
            pg_sys::JoinType::JOIN_INNER,
            null_mut(),
        ),
    };
    let share_of_lists = keyed.as_ref().map_or(1.0, |keyed| keyed.share_of_lists);
    let (read, operators) = match reading {
        Reading::Everything => (f64::from((*info).pages), rows),
        _ => lookup(root, info, share_of_lists),
    };
    // Each of several scans rereads the pages evicted by the others.
    *pages = match loop_count > 1.0 {
        true => {
            let size = (*info).pages;
            let all = read * loop_count;
            pg_sys::index_pages_fetched(all, size, f64::from(size), root) / loop_count
        }
        false => read,
    };
    let mut random_page = 0.0;
    pg_sys::get_tablespace_page_costs((*info).reltablespace, &mut random_page, null_mut());
    let other = pg_sys::index_other_operands_eval_cost(root, quals);
    // All candidates are collected before the first is returned.
    *startup_cost = *pages * random_page + operators * pg_sys::cpu_operator_cost + other;
    let found = match reading {
        Reading::Nearest => rows_nearest(root, path).unwrap_or(1.0).max(1.0),
        _ => *selectivity * rows,
    };
    *total_cost = *startup_cost + found * pg_sys::cpu_index_tuple_cost;
    if reading == Reading::Matches
        && let Some(Keyed { sampled, .. }) = keyed
        && sampled > found
    {
        *total_cost += (sampled - found) * comparison_cost(root, info, quals);
    }
    if reading != Reading::Matches && !(*path).indexorderbys.is_null() {
        let tail = tail_cost(info);
        *total_cost += tail;
        // With the rows within the index's own bound of the query, a LIMIT may be reached before the tail is read.
        let (wanted, rel) = ((*root).limit_tuples, &*(*info).rel);
        let kept = rel.rows / (rel.tuples * *selectivity).max(1.0);
        let are_enough = wanted >= 0.0 && wanted <= found * kept.min(1.0);
        if reading == Reading::Everything || !are_enough {
            *startup_cost += tail;
        }
    }
}

/// Estimates for a lookup by keys.
struct Keyed {
    /// The share of a value's lists that a lookup reads. If a match must have a share of the value's elements, this is
    /// the share that it may lack.
    share_of_lists: f64,
    /// The estimated number of documents that are compared only because they are sampled, whatever they share with a
    /// condition's ball.
    sampled: f64,
}

impl Keyed {
    /// Estimates a lookup by keys for the conditions of `path`. Returns None if keys answer none of them. Assumes that
    /// keys answer a condition whose terms are not known yet, and every condition on a hypothetical index.
    ///
    /// # Safety
    /// The planner holds a lock on the index. The conditions are operators with the column on the left.
    unsafe fn of(root: *mut pg_sys::PlannerInfo, path: &pg_sys::IndexPath) -> Option<Self> {
        let info = path.indexinfo;
        let compared = PlannedColumn::of(info);
        let (family, kind) = (compared.family(), compared.kind());
        let mut has_keys = false;
        let mut keyed = Self {
            share_of_lists: 1.0,
            sampled: f64::INFINITY,
        };
        for clause in PgList::<pg_sys::IndexClause>::from_pg(path.indexclauses).iter_ptr() {
            if (*clause).indexcol as usize != compared.at {
                continue;
            }
            let quals = PgList::<pg_sys::RestrictInfo>::from_pg((*clause).indexquals);
            for qual in quals.iter_ptr() {
                let condition = (*qual).clause.cast::<pg_sys::OpExpr>();
                let strategy = pg_sys::get_op_opfamily_strategy((*condition).opno, family) as u16;
                let operand = pg_sys::get_rightop(condition.cast());
                let mut sampled = 0.0;
                has_keys |= match constant(operand) {
                    _ if (*info).hypothetical => true,
                    Some(query) => {
                        let search = planned::search(root, info, strategy, query);
                        let counted = planned::counted(root, info, &search);
                        sampled = counted.map_or(0.0, |counted| counted.sampled);
                        *search != KeySearch::Everything
                    }
                    None => kind
                        .and_then(|kind| Terms::of_ball(operand, kind))
                        .is_none_or(|(_, terms)| terms.are_served(compared.options(), None)),
                };
                keyed.sampled = keyed.sampled.min(sampled);
                let Some(kind) = kind.filter(|_| matches!(strategy, CONTAINS | RESEMBLES)) else {
                    continue;
                };
                let bound = Terms::bound_of_ball(operand, kind);
                let least = match bound {
                    Some(Bound::Resemblance(least, _) | Bound::Share(least)) => least,
                    None if kind == Kind::Documents => USUAL_SHARE,
                    _ => 0.0,
                };
                keyed.share_of_lists = keyed.share_of_lists.min(1.0 - least);
            }
        }
        has_keys.then_some(keyed)
    }
}

/// Returns the cost of fetching a row of the table and evaluating `quals` for it.
///
/// # Safety
/// `quals` are the planner's conditions on the index.
unsafe fn comparison_cost(
    root: *mut pg_sys::PlannerInfo,
    info: *mut pg_sys::IndexOptInfo,
    quals: *mut pg_sys::List,
) -> f64 {
    let mut cost = pg_sys::QualCost::default();
    pg_sys::cost_qual_eval(&mut cost, quals, root);
    let rel = &*(*info).rel;
    let pages = f64::from(rel.pages) / rel.tuples.max(1.0);
    cost.per_tuple + pg_sys::cpu_tuple_cost + pages.min(1.0) * pg_sys::random_page_cost
}

/// Returns the number of pages that a lookup reads, and the number of operators that it computes. `share_of_lists` is
/// the share of a value's lists that it reads.
///
/// # Safety
/// The planner holds a lock on the index.
unsafe fn lookup(
    root: *mut pg_sys::PlannerInfo,
    info: *mut pg_sys::IndexOptInfo,
    share_of_lists: f64,
) -> (f64, f64) {
    let Some(meta) = planned::meta(root, info) else {
        let pages = f64::from((*info).pages).min(1.0);
        return (pages, pages * OPERATORS_PER_PAGE);
    };
    let leaves = meta.segments().iter().map(|segment| {
        let keys = segment.postings as f64 / segment.rows.max(1) as f64;
        (keys * share_of_lists + 1.0).min(f64::from(segment.leaves))
    });
    let pages: f64 = leaves.sum();
    (pages, pages * OPERATORS_PER_PAGE + meta.rows_in_log())
}

/// Estimates the number of rows within the index's own bound of the value in ORDER BY, as the operator `<@` does.
/// Returns None if the index has no bound of its own, or the ORDER BY has another form.
///
/// # Safety
/// `path` comes from the planner, and is ordered by `column distance center`.
unsafe fn rows_nearest(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
) -> Option<f64> {
    let info = (*path).indexinfo;
    let rel = &*(*info).rel;
    let compared = PlannedColumn::of(info);
    let kind = compared.kind()?;
    let (function, operands) = nodes::call(pg_sys::list_nth((*path).indexorderbys, 0).cast())?;
    let [column, center] = elements(operands)?;
    let bound = kind.own_bound(compared.options())?.node();
    let near = &*kind.in_ball(root, function, (0, column), &[center, bound])?;
    let (relation, no_collation) = (rel.relid as i32, pg_sys::InvalidOid);
    let share = pg_sys::restriction_selectivity(root, near.opno, near.args, no_collation, relation);
    Some(share * rel.tuples)
}

/// Returns the cost of reading every row of the index's table and sorting the rows by distance.
///
/// # Safety
/// `index` is the planner's description of an index.
unsafe fn tail_cost(index: *const pg_sys::IndexOptInfo) -> f64 {
    /// The cost of comparing two values, in operators.
    const DISTANCE: f64 = 10.0;
    let rel = &*(*index).rel;
    let rows = rel.tuples.max(1.0);
    let operators = DISTANCE + 2.0 * rows.log2();
    f64::from(rel.pages) * pg_sys::seq_page_cost
        + rows * (pg_sys::cpu_tuple_cost + operators * pg_sys::cpu_operator_cost)
}
