//! `near_dup_unprotect`: drops the triggers of guards, those that help too.

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
    /// The table of notes that it names.
    notes: Option<pg_sys::Oid>,
    /// The tables that it names.
    named: Vec<pg_sys::Oid>,
    /// True if it is on exceptions, and removes notes.
    removes_notes: bool,
}

/// Implements `near_dup_unprotect(relation, trigger_name)`: drops the triggers of one guard of a table, or of all.
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
    let is_named =
        |trigger: &&GuardTrigger| trigger.is_main && name.as_ref() == Some(&trigger.name);
    let main = all.iter().find(is_named);
    if all.is_empty() || name.is_some() && main.is_none() {
        missing(relation, name.as_deref(), &all);
    }
    let has_others = || {
        let mut mains = all.iter().filter(|trigger| trigger.is_main);
        mains.any(|trigger| name.as_ref() != Some(&trigger.name))
    };
    let goes = |trigger: &&GuardTrigger| match main {
        None => true,
        Some(main) if trigger.is_main => trigger.name == main.name,
        Some(main) if trigger.notes.is_some() => trigger.notes == main.notes,
        Some(main) => trigger.name == names::derived(&main.name, "before") || !has_others(),
    };
    let connection = Connection::open();
    let drop = |trigger: &GuardTrigger, table| {
        let (name, table) = (names::identifier(&trigger.name), names::relation(table));
        connection.execute(&format!("DROP TRIGGER {name} ON {table}"));
    };
    for trigger in all.iter().filter(goes) {
        drop(trigger, relation);
        let &[notes, exceptions] = &trigger.named[..] else {
            continue;
        };
        for other in guard_triggers(exceptions, function) {
            if other.removes_notes && other.named == [notes, relation] {
                drop(&other, exceptions);
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
fn missing(relation: pg_sys::Oid, name: Option<&str>, all: &[GuardTrigger]) -> ! {
    let table = names::relation(relation);
    let mains = all.iter().filter(|trigger| trigger.is_main);
    let names: Vec<&str> = mains.map(|trigger| &*trigger.name).collect();
    raise(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        &match name {
            Some(name) => format!("table {table} has no guard {}", quoted(name)),
            None => format!("table {table} has no guard"),
        },
        &match names.is_empty() {
            true => String::new(),
            false => format!("Its guards are {}.", names.join(", ")),
        },
    )
}

pgrx::extension_sql_file!("../../sql/guard/unprotect.sql", name = "guard_unprotect");
