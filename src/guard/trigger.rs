//! The trigger function `near_dup_guard`. Before a row is inserted it takes the lock of a transaction that
//! will pass; afterwards it notes the row, which is checked when the statement passes.

use crate::guard::locks::say_will_pass;
use crate::guard::notes_table::NotesTable;
use crate::guard::options::GuardOptions;
use crate::guard::places;
use crate::guard::row::{Fired, Place, Tid, tid};
use crate::guard::table::root_of;
use crate::pg::call::finfo;
use crate::pg::relation::Relation;
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
                let old = old.map(|old| tid(old));
                places::note(place(data, root, Some(tid(slot)), old));
                pg_sys::Datum::null()
            }
            Fired::Deleted(slot) => {
                places::note(place(data, root, None, Some(tid(slot))));
                pg_sys::Datum::null()
            }
            Fired::Truncated => {
                let table = Relation::open_table((*data.tg_relation).rd_id);
                let options = GuardOptions::of_trigger(&*data.tg_trigger, table.oid());
                if let Some(notes) = options.notes {
                    let notes = NotesTable::open(notes.table);
                    notes.check(&table);
                    notes.empty();
                }
                pg_sys::Datum::null()
            }
        }
    }
}

finfo!(pg_finfo_near_dup_guard);

/// Returns the place of a row that the running transaction has written, in its versions from now on and
/// before.
///
/// # Safety
/// The data belong to the running call.
unsafe fn place(
    data: &pg_sys::TriggerData,
    root: pg_sys::Oid,
    new: Option<Tid>,
    old: Option<Tid>,
) -> Place {
    // SAFETY: vouched for by the caller.
    unsafe {
        Place {
            root,
            table: (*data.tg_relation).rd_id,
            file: (*(*data.tg_relation).rd_rel).relfilenode,
            trigger: (*data.tg_trigger).tgoid,
            new,
            old,
            subtransaction: pg_sys::GetCurrentSubTransactionId(),
        }
    }
}

/// Returns the root of the trigger's table, looked up once for each statement.
///
/// # Safety
/// `fcinfo` is that of the running call, as a trigger of that table.
unsafe fn root(fcinfo: pg_sys::FunctionCallInfo, table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; a statement has a function of its own for each trigger.
    unsafe {
        let kept = &mut (*(*fcinfo).flinfo).fn_extra;
        if kept.is_null() {
            *kept = std::ptr::without_provenance_mut(root_of((*table).rd_id).to_u32() as usize);
        }
        pg_sys::Oid::from(kept.addr() as u32)
    }
}

pgrx::extension_sql_file!("../../sql/guard/trigger.sql", name = "guard");
