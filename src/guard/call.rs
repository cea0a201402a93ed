//! The C function behind the trigger `near_dup_guard`.

use crate::guard::refusal::{self, Refusal};
use crate::guard::trigger::guarded;
use crate::pg::call::finfo;
use pgrx::pg_sys;

/// The trigger function.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn near_dup_guard(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    let mut refusal = Refusal::NONE;
    // SAFETY: passed on to the caller; this frame holds nothing that needs to be dropped when
    // the ERROR jumps over it.
    unsafe {
        let row = guarded(fcinfo, &mut refusal);
        refusal::raise(&refusal);
        row
    }
}

finfo!(pg_finfo_near_dup_guard);
