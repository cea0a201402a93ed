//! The triggers of a guard. The main one checks rows. The others help it, and do nothing after it was dropped.

use crate::guard::options::GuardOptions;
use crate::guard::row::protocol_violation;
use crate::pg::relation::Relation;
use pgrx::pg_sys;

/// Returns whether a trigger of a guard is the main one, which checks rows.
pub fn is_main(trigger: &pg_sys::Trigger) -> bool {
    let is = |bits: u32| u32::from(trigger.tgtype as u16) & bits != 0;
    is(pg_sys::TRIGGER_TYPE_ROW)
        && !is(pg_sys::TRIGGER_TYPE_BEFORE)
        && is(pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE)
        && trigger.tgnargs > 1
}

/// Returns whether a trigger fires in this session.
pub fn fires(trigger: &pg_sys::Trigger) -> bool {
    // SAFETY: a variable of the backend.
    let role = unsafe { pg_sys::SessionReplicationRole } as u32;
    let is_replica = role == pg_sys::SESSION_REPLICATION_ROLE_REPLICA;
    match trigger.tgenabled as u8 {
        b'A' => true,
        b'O' => !is_replica,
        b'R' => is_replica,
        _ => false,
    }
}

/// Returns the options of the guard whose notes `trigger` removes, or None if that guard no longer exists.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` for a trigger that names no notes.
pub fn helped(table: &Relation, trigger: &pg_sys::Trigger) -> Option<GuardOptions> {
    // SAFETY: the trigger is the table's.
    let Some(notes) = (unsafe { GuardOptions::notes_of(trigger) }) else {
        protocol_violation("near_dup_guard was fired by another event than INSERT or UPDATE");
    };
    noting(table, notes, trigger.tgfoid)
}

/// Returns the options of the guard of `table` that writes to `notes`, or None if there is none.
pub fn noting(table: &Relation, notes: pg_sys::Oid, function: pg_sys::Oid) -> Option<GuardOptions> {
    let mut triggers = table.triggers().iter();
    // SAFETY: the triggers are the table's; nothing here looks into the catalog before the options are read.
    unsafe {
        let main = triggers.find(|main| {
            let is_ours = main.tgfoid == function && is_main(main);
            is_ours && GuardOptions::notes_of(main) == Some(notes)
        });
        Some(GuardOptions::from_trigger(main?, table))
    }
}
