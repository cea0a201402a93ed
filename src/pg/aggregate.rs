//! The memory in which an aggregate keeps its state between rows.

use crate::pg::error::raise;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Returns the memory context of the aggregate that `call` belongs to.
///
/// # Safety
/// `call` is the current function call.
///
/// # Errors
/// ERROR `feature_not_supported` outside an aggregate; `hint` names the function to call instead.
pub unsafe fn context(call: pg_sys::FunctionCallInfo, hint: &str) -> pg_sys::MemoryContext {
    let mut context = std::ptr::null_mut();
    // SAFETY: vouched for by the caller.
    if unsafe { pg_sys::AggCheckCallContext(call, &raw mut context) } == 0 {
        raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "the function was called outside an aggregate",
            hint,
        );
    }
    context
}
