//! `near_dup_unprotect`: drops the triggers of guards.

use crate::guard::exceptions::removes_notes;
use crate::guard::options::GuardOptions;
use crate::guard::triggers::is_main;
use crate::pg::call::Call;
use crate::pg::catalog::function_beside;
use crate::pg::condition;
use crate::pg::encoding::utf8;
use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::statement::Connection;
use neardup::quoted;
use pgrx::prelude::*;
use std::ffi::CStr;

/// A trigger of a guard.
struct GuardTrigger {
    name: String,
    is_main: bool,
    notes: Option<pg_sys::Oid>,
    /// The tables that it names.
    named: Vec<pg_sys::Oid>,
    /// True if it is on a table of exceptions and removes notes.
    removes_notes: bool,
}

/// Implements `near_dup_unprotect(relation, trigger_name)`: drops the triggers of one or all guards of a table.
///
/// # Errors
/// ERROR `undefined_object` if there is no such guard, and the errors of DROP TRIGGER.
#[pg_extern(sql = false)]
fn near_dup_unprotect(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    let (relation, name, function) = unsafe {
        let call = Call::new(fcinfo);
        let relation = call.oid(0, "relation");
        let name = call.optional_argument(1).map(|name| names::name(name));
        let function = function_beside(call.function(), c"near_dup_guard", &[]);
        (relation, name, function)
    };
    let all = guard_triggers(relation, function);
    let is_chosen = |trigger: &GuardTrigger| name.as_ref().is_none_or(|name| *name == trigger.name);
    let (chosen, others): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|trigger| trigger.is_main)
        .partition(|trigger| is_chosen(trigger));
    if all.is_empty() || name.is_some() && chosen.is_empty() {
        missing(relation, name.as_deref(), &others);
    }
    // A helping trigger is dropped with the guard that has the same notes. One without notes is dropped with its own
    // guard or the last one.
    let goes = |trigger: &&GuardTrigger| match (trigger.is_main, trigger.notes) {
        (true, _) => is_chosen(trigger),
        (false, Some(_)) => !others.iter().any(|main| main.notes == trigger.notes),
        (false, None) => {
            let is_derived =
                |main: &&GuardTrigger| trigger.name == names::derived(&main.name, "before");
            others.is_empty() || chosen.iter().any(is_derived)
        }
    };
    let connection = Connection::open();
    let drop = |trigger: &GuardTrigger, table| {
        let (name, table) = (names::identifier(&trigger.name), names::relation(table));
        connection.execute(&format!("DROP TRIGGER {name} ON {table}"));
    };
    for trigger in all.iter().filter(goes) {
        drop(trigger, relation);
        if let [notes, exceptions] = trigger.named[..] {
            for other in guard_triggers(exceptions, function) {
                if other.removes_notes && other.named == [notes, relation] {
                    drop(&other, exceptions);
                }
            }
        }
    }
    connection.close();
}

/// Returns the triggers of a table that call a function.
fn guard_triggers(relation: pg_sys::Oid, function: Option<pg_sys::Oid>) -> Vec<GuardTrigger> {
    let table = Relation::open_table(relation);
    let own = table.triggers().iter();
    let own = own.filter(|trigger| Some(trigger.tgfoid) == function);
    let describe = |trigger: &pg_sys::Trigger| GuardTrigger {
        // SAFETY: the trigger is the table's; nothing here looks into the catalog.
        name: utf8(unsafe { CStr::from_ptr(trigger.tgname) }),
        is_main: is_main(trigger),
        // SAFETY: as above.
        notes: unsafe { GuardOptions::notes_of(trigger) },
        // SAFETY: as above.
        named: unsafe { condition::named(trigger.tgqual) },
        removes_notes: removes_notes(trigger),
    };
    own.map(describe).collect()
}

/// Raises `undefined_object`; the HINT lists the guards of the table.
fn missing(relation: pg_sys::Oid, name: Option<&str>, guards: &[&GuardTrigger]) -> ! {
    let table = names::relation(relation);
    let name = name.map(quoted).unwrap_or_default();
    let names: Vec<&str> = guards.iter().map(|trigger| &*trigger.name).collect();
    let hint = match names.is_empty() {
        true => String::new(),
        false => format!("Its guards are {}.", names.join(", ")),
    };
    raise(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        format!("table {table} has no guard {name}").trim_end(),
        &hint,
    )
}

pgrx::extension_sql_file!("../../sql/guard/unprotect.sql", name = "guard_unprotect");
