//! The call of a trigger function.

use crate::live::tracker::{Tracker, TriggerFunctions};
use crate::pg::error::raise;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Returns PostgreSQL's description of the event that a trigger fires for.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` for a function that is not called as a trigger.
///
/// # Safety
/// `fcinfo` is that of the running call.
pub unsafe fn data<'c>(fcinfo: pg_sys::FunctionCallInfo) -> &'c pg_sys::TriggerData {
    // SAFETY: vouched for by the caller; a trigger's context is its data.
    unsafe {
        match (*fcinfo).context.cast::<pg_sys::TriggerData>().as_ref() {
            Some(data) if data.type_ == pg_sys::NodeTag::T_TriggerData => data,
            _ => not_so(),
        }
    }
}

/// Returns the tracker whose trigger is called; None of one that has ended, because its trigger for
/// updates was dropped with a column.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` for a function that is not called as a tracker's trigger.
///
/// # Safety
/// `fcinfo` is that of the running call.
pub unsafe fn tracker(fcinfo: pg_sys::FunctionCallInfo) -> Option<Tracker> {
    // SAFETY: vouched for by the caller; the trigger is the table's.
    unsafe {
        check(fcinfo);
        let functions = TriggerFunctions::beside((*(*fcinfo).flinfo).fn_oid);
        let data = data(fcinfo);
        Tracker::of_trigger(&functions, data.tg_relation, &*data.tg_trigger)
    }
}

/// Checks that a trigger of a tracker is called; as cheap as that can be.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` otherwise.
///
/// # Safety
/// `fcinfo` is that of the running call.
pub unsafe fn check(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: vouched for by the caller.
    unsafe {
        let trigger = data(fcinfo).tg_trigger;
        if (*trigger).tgqual.is_null() || (*trigger).tgnargs == 0 {
            not_so();
        }
    }
}

fn not_so() -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "a function of near_dup_track was not called by its trigger",
        "near_dup_track makes its triggers itself.",
    )
}
