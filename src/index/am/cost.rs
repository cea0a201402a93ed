//! What a scan costs.

use pgrx::prelude::*;

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
        if (*path).indexclauses.is_null() {
            *startup_cost = f64::INFINITY;
            *total_cost = f64::INFINITY;
            *selectivity = 0.0;
            *correlation = 0.0;
            *pages = 0.0;
            // Infinite costs do not suffice where disabled plans are counted first.
            #[cfg(feature = "pg18")]
            {
                (*path).path.disabled_nodes = 2;
            }
            return;
        }
        let mut costs = pg_sys::GenericCosts::default();
        pg_sys::genericcostestimate(root, path, loop_count, &mut costs);
        *startup_cost = costs.indexStartupCost;
        *total_cost = costs.indexTotalCost;
        *selectivity = costs.indexSelectivity;
        *correlation = 0.0;
        *pages = costs.numIndexPages;
    }
}
