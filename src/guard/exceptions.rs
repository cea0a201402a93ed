//! Exceptions: pairs of keys that are not near-duplicates by decision, in columns `a` and `b` of a table of the same
//! owner.

use crate::guard::columns::GuardColumns;
use crate::guard::notes_table::{NotesTable, as_owner, is_pair, run_with_keys};
use crate::guard::options::noting;
use crate::pg::checked::{Altered, CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::condition;
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation, trigger_arguments};
use crate::pg::slot::get;
use pgrx::pg_sys;

/// Returns whether a trigger is the one on exceptions, which removes the notes of inserted pairs.
pub fn removes_notes(trigger: &pg_sys::Trigger) -> bool {
    // SAFETY: the trigger is one of an open table.
    trigger.tgnargs == 1 && unsafe { trigger_arguments(trigger) }[..] == [c"exceptions"]
}

pub const VALID_EXCEPTIONS: &str =
    "exceptions is a table of the same owner, with columns a and b of the key's type.";

/// Opens the exceptions of `table`, whose keys have the type `key`. The table of exceptions may have more columns.
pub fn open_exceptions(
    exceptions: pg_sys::Oid,
    table: &Relation,
    key: ColumnType,
) -> Result<CheckedTable, Altered> {
    let created = CreatedTable {
        owner: table.owner(),
        persistence: table.persistence(),
        columns: &["a", "b"].map(|name| CreatedColumn::new(name, key, false)),
        key: None,
    };
    CheckedTable::open(exceptions, &created, pg_sys::AccessShareLock)
}

/// The exceptions of a guard.
pub struct Exceptions {
    table: CheckedTable,
    key: ColumnType,
    /// A statement that returns a row if a pair is in the table.
    find: String,
}

impl Exceptions {
    /// Opens the exceptions of a guarded table with a key.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if the table has a different owner, or no such columns.
    pub fn open(oid: pg_sys::Oid, guarded: &Relation, columns: &GuardColumns) -> Self {
        let key = ColumnType::of(guarded.oid(), columns.key.expect("exceptions need a key"));
        let table = open_exceptions(oid, guarded, key);
        let table = table.unwrap_or_else(|altered| altered.raise(VALID_EXCEPTIONS));
        let is_pair = is_pair(key, ["a", "b"]);
        Self {
            table,
            key,
            find: format!("SELECT FROM {} WHERE {is_pair}", names::relation(oid)),
        }
    }

    /// Returns whether two rows are a pair in the table, in either order. Reads what is committed now.
    ///
    /// # Safety
    /// The slots hold rows of tables with these columns.
    pub unsafe fn have(
        &self,
        a: (&GuardColumns, *mut pg_sys::TupleTableSlot),
        b: (&GuardColumns, *mut pg_sys::TupleTableSlot),
    ) -> bool {
        as_owner(self.table.relation(), |connection| {
            let keys = a.0.key_of(a.1).zip(b.0.key_of(b.1));
            keys.is_some_and(|(a, b)| run_with_keys(connection, &self.find, self.key, &[a, b]) > 0)
        })
    }
}

/// Removes the note of a pair that was inserted into a table of exceptions. The trigger's condition names the notes and
/// the guarded table.
///
/// # Safety
/// The data belong to the running call, for an INSERT or UPDATE.
pub unsafe fn remove_note(data: &pg_sys::TriggerData) {
    // A table is open while its triggers run.
    let trigger = &*data.tg_trigger;
    let [notes, guarded] = condition::named(trigger.tgqual)[..] else {
        return;
    };
    let Some(guarded) = Relation::try_open_table(guarded) else {
        return;
    };
    let Some(options) = noting(&guarded, notes, trigger.tgfoid) else {
        return;
    };
    let table = (*data.tg_relation).rd_id;
    if options.exceptions != Some(table) {
        return;
    }
    let columns = GuardColumns::of(&guarded, &options);
    Exceptions::open(table, &guarded, &columns);
    let new = match data.tg_newslot.is_null() {
        true => data.tg_trigslot,
        false => data.tg_newslot,
    };
    // The lock waits for transactions that may write the note because they have read the exceptions before.
    let notes = NotesTable::open(notes, &guarded, &columns, pg_sys::ShareRowExclusiveLock);
    notes.write(|connection| {
        let [a, b] = [c"a", c"b"].map(|name| get(new, names::column_number(table, name)));
        if let Some((a, b)) = a.zip(b) {
            notes.remove_pair(connection, [a, b]);
        }
    });
}
