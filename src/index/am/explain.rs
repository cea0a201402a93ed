//! EXPLAIN ANALYZE of a scan by distance: the rows that were read beyond the index's own bound.
//! PostgreSQL has a hook for it from version 18 on.

use super::scan;
use pgrx::pg_sys;
use std::ffi::c_char;

static mut PREVIOUS: pg_sys::explain_per_node_hook_type = None;

/// Installs the hook; called once when a session loads the library.
pub fn install() {
    // SAFETY: a backend has one thread.
    unsafe {
        PREVIOUS = pg_sys::explain_per_node_hook;
        pg_sys::explain_per_node_hook = Some(explain);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn explain(
    node: *mut pg_sys::PlanState,
    ancestors: *mut pg_sys::List,
    relationship: *const c_char,
    plan_name: *const c_char,
    state: *mut pg_sys::ExplainState,
) {
    // SAFETY: PostgreSQL calls this with a node of the plan and the state of EXPLAIN; the tag tells
    // the type of a node.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(node, ancestors, relationship, plan_name, state);
        }
        if !(*state).analyze || (*node).type_ != pg_sys::NodeTag::T_IndexScanState {
            return;
        }
        let scan = (*node.cast::<pg_sys::IndexScanState>()).iss_ScanDesc;
        if let Some(rows) = scan::rows_beyond(scan) {
            let label = c"Rows Read Beyond Bound".as_ptr();
            pg_sys::ExplainPropertyInteger(label, std::ptr::null(), rows as i64, state);
        }
    }
}
