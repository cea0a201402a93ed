//! The trigger function `near_dup_guard`. Before a row is inserted it takes the lock of a transaction that
//! will pass; afterwards it notes the row, which is checked when the statement passes.

use crate::guard::locks::say_will_pass;
use crate::guard::places::{self, Place};
use crate::guard::row::{Fired, tid};
use crate::guard::table::root_of;
use crate::pg::call::finfo;
use pgrx::pg_sys;

/// Implements `near_dup_guard(column, threshold [, scope=column,...] [, ...])`.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn near_dup_guard(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: vouched for by the caller; a table is open while its triggers run.
    unsafe {
        let (data, fired) = Fired::of_call(fcinfo);
        let root = root(fcinfo, data.tg_relation);
        match fired {
            Fired::Before(tuple) => {
                say_will_pass(root);
                tuple.into()
            }
            Fired::After(slot, old) => {
                places::note(Place {
                    root,
                    table: (*data.tg_relation).rd_id,
                    file: (*(*data.tg_relation).rd_rel).relfilenode,
                    trigger: (*data.tg_trigger).tgoid,
                    tid: tid(slot),
                    old: old.map(|old| tid(old)),
                    subtransaction: pg_sys::GetCurrentSubTransactionId(),
                });
                pg_sys::Datum::null()
            }
        }
    }
}

finfo!(pg_finfo_near_dup_guard);

/// Returns the root of the trigger's table, looked up once for each statement.
///
/// # Safety
/// `fcinfo` is that of the running call, as a trigger of that table.
unsafe fn root(fcinfo: pg_sys::FunctionCallInfo, table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; a statement has a function of its own for each trigger.
    unsafe {
        let kept = &mut (*(*fcinfo).flinfo).fn_extra;
        if kept.is_null() {
            *kept = std::ptr::without_provenance_mut(root_of(table).to_u32() as usize);
        }
        pg_sys::Oid::from(kept.addr() as u32)
    }
}

pgrx::extension_sql_file!(
    "../../sql/guard/trigger.sql",
    name = "guard",
    requires = ["ball"]
);
