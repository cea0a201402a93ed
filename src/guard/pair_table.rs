//! Tables of pairs of keys: the notes of a guard, and its exceptions. They are read and written with the rights of
//! their owner, who also owns the guarded table.

use crate::guard::columns::GuardColumns;
use crate::guard::locks::lock_with_rows;
use crate::guard::options::guard_with_notes;
use crate::pg::checked::{Altered, CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::condition;
use crate::pg::encoding::utf8;
use crate::pg::prelude::*;
use crate::pg::relation::{ColumnType, trigger_arguments};
use crate::pg::rights::OwnerRights;
use crate::pg::slot::{are_same, as_text, get};

/// Creates the notes table `name` in the schema of the `guarded` table, and returns it. Column `key` identifies the
/// rows of the guarded table.
///
/// # Errors
/// ERROR `feature_not_supported` for a temporary table, and the errors of CREATE TABLE.
pub fn create_notes(guarded: &Relation, name: &str, key: i16) -> pg_sys::Oid {
    if guarded.persistence() == pg_sys::RELPERSISTENCE_TEMP {
        // Temporary objects cannot be created with the rights of another role.
        unsupported(
            "near_dup_protect cannot note rows of a temporary table",
            "action => 'reject' is possible.",
        );
    }
    let rights = OwnerRights::assume(guarded.owner());
    let connection = Connection::open();
    let columns = columns_of_notes(ColumnType::of(guarded.oid(), key));
    let created = created(guarded, &columns, Some(&[1, 2]));
    let created = created.create(&connection, guarded.schema(), name);
    let notes = names::relation(created);
    let comment = format!(
        "rows of {} that were similar to earlier ones when they came, by near_dup_protect",
        names::relation(guarded.oid())
    );
    // A pair is noted once, whichever row is the later one.
    connection.execute(&format!(
        "CREATE INDEX ON {notes} (near_key);
         CREATE UNIQUE INDEX ON {notes} ((LEAST(key, near_key)), (GREATEST(key, near_key)));
         COMMENT ON TABLE {notes} IS {}",
        names::literal(&comment)
    ));
    connection.close();
    rights.resign();
    created
}

/// Returns the columns of notes about rows with keys of type `key`.
fn columns_of_notes(key: ColumnType) -> [CreatedColumn; 4] {
    [
        ("key", key),
        ("near_key", key),
        ("similarity", ColumnType::plain(pg_sys::FLOAT8OID)),
        ("noted_at", ColumnType::plain(pg_sys::TIMESTAMPTZOID)),
    ]
    .map(|(name, type_)| CreatedColumn::new(name, type_, true))
}

/// Returns the description of a table with these `columns` and `key`, and with the owner and the persistence of
/// `served`.
pub fn created<'c>(
    served: &Relation,
    columns: &'c [CreatedColumn],
    key: Option<&'c [i16]>,
) -> CreatedTable<'c> {
    CreatedTable {
        owner: served.owner(),
        persistence: served.persistence(),
        columns,
        key,
    }
}

pub const VALID_EXCEPTIONS: &str =
    "exceptions is a table of the same owner, with columns a and b of the key's type.";

/// Opens the exceptions of `table`, whose keys have the type `key`: pairs in columns `a` and `b` that are declared not
/// to be near-duplicates. The exceptions table may have more columns.
pub fn open_exceptions(
    exceptions: pg_sys::Oid,
    table: &Relation,
    key: ColumnType,
) -> Result<CheckedTable, Altered> {
    let columns = ["a", "b"].map(|name| CreatedColumn::new(name, key, false));
    let created = created(table, &columns, None);
    CheckedTable::open(exceptions, &created, pg_sys::AccessShareLock)
}

/// An open table of notes or exceptions.
pub struct PairTable {
    table: CheckedTable,
    name: String,
    /// The type of the keys. `equal` is its equality operator.
    key: ColumnType,
    equal: String,
    columns: [&'static str; 2],
}

impl PairTable {
    /// Opens the notes table `oid` of a `guarded` table with keys of type `key`, with `lock`, which lasts as long as the
    /// rows being written.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` unless the table is as [`create_notes`] created it and has the owner of
    /// the guarded table.
    pub fn notes(oid: pg_sys::Oid, guarded: &Relation, key: ColumnType, lock: u32) -> Self {
        let columns = columns_of_notes(key);
        let created = created(guarded, &columns, Some(&[1, 2]));
        let table = CheckedTable::open(oid, &created, lock).unwrap_or_else(|altered| {
            altered.raise(
                "Alter it back, or create it again: near_dup_unprotect, DROP TABLE, near_dup_protect.",
            )
        });
        lock_with_rows(oid, lock);
        Self::new(table, key, ["key", "near_key"])
    }

    /// Opens the exceptions table `oid` of a `guarded` table with keys of type `key`.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if the table has a different owner, or lacks the columns.
    pub fn exceptions(oid: pg_sys::Oid, guarded: &Relation, key: ColumnType) -> Self {
        let checked = open_exceptions(oid, guarded, key);
        let table = checked.unwrap_or_else(|altered| altered.raise(VALID_EXCEPTIONS));
        Self::new(table, key, ["a", "b"])
    }

    fn new(table: CheckedTable, key: ColumnType, columns: [&'static str; 2]) -> Self {
        Self {
            name: names::relation(table.relation().oid()),
            table,
            equal: names::equality(key.type_).expect("keys have equality"),
            key,
            columns,
        }
    }

    /// Calls `work` with the rights of the table's owner, and returns its result. Disables sequential scans, because
    /// plans may date from when the table was empty.
    pub fn as_owner<R>(&self, work: impl FnOnce(&Connection) -> R) -> R {
        let rights = OwnerRights::assume(self.table.relation().owner());
        rights.set(c"enable_seqscan", c"off");
        let connection = Connection::open();
        let result = work(&connection);
        connection.close();
        rights.resign();
        result
    }

    /// Returns whether the table has `pair`, in either order. Reads the rows committed by now.
    pub fn has_pair(&self, pair: [pg_sys::Datum; 2]) -> bool {
        let find = format!("SELECT FROM {} WHERE {}", self.name, self.is_pair());
        self.as_owner(|connection| self.run(connection, &find, &pair) > 0)
    }

    /// Returns the condition, in SQL, that the columns contain the keys `$1` and `$2`, in either order.
    fn is_pair(&self) -> String {
        let ([a, b], equal) = (self.columns, &self.equal);
        let are = |x, y| format!("({a} {equal} ${x} AND {b} {equal} ${y})");
        format!("({} OR {})", are(1, 2), are(2, 1))
    }

    /// Adds a note about a row and an earlier row, given their `keys`, unless the pair is already noted.
    ///
    /// # Errors
    /// ERROR `not_null_violation` if a key is NULL, `unique_violation` if both are the same.
    pub fn add(&self, connection: &Connection, keys: [Option<pg_sys::Datum>; 2], similarity: f64) {
        let (table, type_) = (&self.name, self.key.type_);
        let raise = |code, message: &str| {
            let hint =
                "The column that key => ... of near_dup_protect names must be unique and not NULL.";
            raise(code, message, hint)
        };
        let [Some(key), Some(near_key)] = keys else {
            let message = format!("a row to be noted in {table} has no key");
            raise(PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION, &message)
        };
        // SAFETY: the keys are of that type.
        unsafe {
            if are_same(type_, key, near_key) {
                let key = utf8(as_text(type_, key));
                let message = format!("two similar rows to be noted in {table} have the key {key}");
                raise(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, &message)
            }
        }
        // A row that a trigger writes can pass before the row that fired it, and a row can pass twice.
        let sql = format!(
            "INSERT INTO {table} (key, near_key, similarity, noted_at)
             VALUES ($1, $2, $3, pg_catalog.clock_timestamp()) ON CONFLICT DO NOTHING"
        );
        let insert = connection.prepare_kept(&sql, &[type_, type_, pg_sys::FLOAT8OID]);
        insert.execute(&[Some(key), Some(near_key), similarity.into_datum()]);
    }

    /// Removes the notes about the row with `key`.
    ///
    /// # Errors
    /// ERROR `t_r_serialization_failure` if the transaction cannot see a note.
    pub fn remove(&self, connection: &Connection, key: pg_sys::Datum) {
        let (name, equal) = (&self.name, &self.equal);
        let sql = format!("DELETE FROM {name} WHERE key {equal} $1 OR near_key {equal} $1");
        self.run(connection, &sql, &[key]);
    }

    /// Removes all notes.
    pub fn empty(&self) {
        let sql = format!("DELETE FROM {}", self.name);
        self.as_owner(|connection| self.run(connection, &sql, &[]));
    }

    /// Runs `sql` with `keys` as parameters on the rows committed by now. Returns the number of rows returned or
    /// changed.
    fn run(&self, connection: &Connection, sql: &str, keys: &[pg_sys::Datum]) -> u64 {
        let statement = connection.prepare_kept(sql, &vec![self.key.type_; keys.len()]);
        statement.run_latest(&keys.iter().copied().map(Some).collect::<Vec<_>>())
    }
}

/// Returns whether `trigger` is on an exceptions table, where it removes the notes of pairs that are inserted or
/// updated.
pub fn removes_notes(trigger: &pg_sys::Trigger) -> bool {
    // SAFETY: the trigger is one of an open table.
    trigger.tgnargs == 1 && unsafe { trigger_arguments(trigger) }[..] == [c"exceptions"]
}

/// Removes the note of a pair that was inserted into an exceptions table, or updated there. The trigger's condition
/// names the notes and the guarded table.
///
/// # Safety
/// The data belong to the running call, for an INSERT or UPDATE.
pub unsafe fn remove_note(data: &pg_sys::TriggerData) {
    // A table is open while its triggers run.
    let (table, trigger) = ((*data.tg_relation).rd_id, &*data.tg_trigger);
    let [notes, guarded] = condition::named(trigger.tgqual)[..] else {
        return;
    };
    let Some(guarded) = Relation::try_open_table(guarded) else {
        return;
    };
    let options = guard_with_notes(&guarded, notes, trigger.tgfoid);
    let Some(options) = options.filter(|options| options.exceptions == Some(table)) else {
        return;
    };
    let key = GuardColumns::of(&guarded, &options).key_type(&guarded);
    PairTable::exceptions(table, &guarded, key);
    let new = match data.tg_newslot.is_null() {
        true => data.tg_trigslot,
        false => data.tg_newslot,
    };
    let [a, b] = [c"a", c"b"].map(|name| get(new, names::column_number(table, name)));
    // The lock waits for transactions that read the exceptions earlier, and may still write the note.
    let notes = PairTable::notes(notes, &guarded, key, pg_sys::ShareRowExclusiveLock);
    if let Some((a, b)) = a.zip(b) {
        let sql = format!("DELETE FROM {} WHERE {}", notes.name, notes.is_pair());
        notes.as_owner(|connection| notes.run(connection, &sql, &[a, b]));
    }
}
