//! What a scan costs.

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

/// Rows that are expected to be within the index's own bound of a query.
const MATCHES: f64 = 1.0;

/// What a path gives an index to go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nothing.
    Nothing,
    /// The keys of a condition.
    Matches,
    /// The keys of what is ordered by; all other rows if these do not suffice.
    Nearest,
    /// Less than keys: all rows are read.
    Everything,
}

impl Reading {
    /// # Safety
    /// The path is the planner's.
    unsafe fn of(path: &pg_sys::IndexPath) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            let last = (*path.indexinfo).nkeycolumns - 1;
            let clauses = PgList::<pg_sys::IndexClause>::from_pg(path.indexclauses);
            let has = |column| {
                clauses
                    .iter_ptr()
                    .any(|c| i32::from((*c).indexcol) == column)
            };
            let is_ordered = !path.indexorderbys.is_null();
            match (0..last).all(has) {
                true if has(last) => Self::Matches,
                true if is_ordered => Self::Nearest,
                _ if is_ordered || !clauses.is_empty() => Self::Everything,
                _ => Self::Nothing,
            }
        }
    }
}

/// The index's `amcostestimate`.
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
    // SAFETY: the planner calls this with a path and places for the results.
    unsafe {
        *correlation = 0.0;
        let reading = Reading::of(&*path);
        if reading == Reading::Nothing {
            *startup_cost = f64::INFINITY;
            *total_cost = f64::INFINITY;
            *selectivity = 0.0;
            *pages = 0.0;
            // Infinite costs do not suffice where disabled plans are counted first.
            #[cfg(feature = "pg18")]
            {
                (*path).path.disabled_nodes = 2;
            }
            return;
        }
        let mut costs = pg_sys::GenericCosts::default();
        if reading == Reading::Nearest {
            costs.numIndexTuples = MATCHES;
        }
        pg_sys::genericcostestimate(root, path, loop_count, &mut costs);
        *startup_cost = costs.indexStartupCost;
        *total_cost = costs.indexTotalCost;
        *selectivity = costs.indexSelectivity;
        *pages = costs.numIndexPages;
        if reading == Reading::Everything {
            // The table's rows are read as they come, and none is left out.
            *selectivity = 1.0;
        }
        if reading != Reading::Matches && !(*path).indexorderbys.is_null() {
            let tail = tail_cost((*path).indexinfo);
            *total_cost += tail;
            if reading == Reading::Everything
                || !are_enough(root, &*(*path).indexinfo, costs.indexSelectivity)
            {
                *startup_cost += tail;
            }
        }
    }
}

/// Returns what it costs to read every row of a table and to sort them by distance.
///
/// # Safety
/// The index is one that the planner describes.
unsafe fn tail_cost(index: *const pg_sys::IndexOptInfo) -> f64 {
    /// Operators that a comparison of two values costs.
    const DISTANCE: f64 = 10.0;
    // SAFETY: vouched for by the caller; reads settings of the backend.
    unsafe {
        let rel = &*(*index).rel;
        let rows = rel.tuples.max(1.0);
        let operators = DISTANCE + 2.0 * rows.log2();
        f64::from(rel.pages) * pg_sys::seq_page_cost
            + rows * (pg_sys::cpu_tuple_cost + operators * pg_sys::cpu_operator_cost)
    }
}

/// Returns whether the rows within the index's own bound of a query are as many as are wanted, of
/// those in a scope that keeps that share of the table.
///
/// # Safety
/// The index is one that the planner describes.
unsafe fn are_enough(
    root: *const pg_sys::PlannerInfo,
    index: &pg_sys::IndexOptInfo,
    scope: f64,
) -> bool {
    // SAFETY: vouched for by the caller.
    let (wanted, rel) = unsafe { ((*root).limit_tuples, &*index.rel) };
    let kept = rel.rows / (rel.tuples * scope).max(1.0);
    wanted >= 0.0 && wanted <= MATCHES * kept.min(1.0)
}
