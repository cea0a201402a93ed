//! The table of a guard's notes, which is written with the rights of its owner.

use crate::guard::columns::GuardColumns;
use crate::pg::checked::{CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::encoding::utf8;
use crate::pg::error::{raise, unsupported};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::OwnerRights;
use crate::pg::slot::{are_same, as_text};
use crate::pg::statement::Connection;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

/// Creates a table for the notes of a guard in the schema of the guarded table. Column `key` identifies rows.
///
/// # Errors
/// ERROR `feature_not_supported` for a temporary table, and the errors of CREATE TABLE.
pub fn create(guarded: &Relation, name: &str, key: i16) -> pg_sys::Oid {
    if guarded.persistence() == pg_sys::RELPERSISTENCE_TEMP {
        // Temporary objects cannot be created with the rights of another role.
        unsupported(
            "near_dup_protect cannot note rows of a temporary table",
            "action => 'reject' is possible.",
        );
    }
    let rights = OwnerRights::assume(guarded.owner());
    let connection = Connection::open();
    let columns = columns(ColumnType::of(guarded.oid(), key));
    let created = created(guarded, &columns).create(&connection, guarded.schema(), name);
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
fn columns(key: ColumnType) -> [CreatedColumn; 4] {
    [
        ("key", key),
        ("near_key", key),
        ("similarity", ColumnType::plain(pg_sys::FLOAT8OID)),
        ("noted_at", ColumnType::plain(pg_sys::TIMESTAMPTZOID)),
    ]
    .map(|(name, type_)| CreatedColumn::new(name, type_, true))
}

fn created<'c>(guarded: &Relation, columns: &'c [CreatedColumn]) -> CreatedTable<'c> {
    CreatedTable {
        owner: guarded.owner(),
        persistence: guarded.persistence(),
        columns,
        key: Some(&[1, 2]),
    }
}

/// An open table of notes.
pub struct NotesTable {
    table: CheckedTable,
    name: String,
    key: ColumnType,
}

impl NotesTable {
    /// Opens the notes of a guarded table.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` unless the table is as [`create`] created it and has the owner of the
    /// guarded table.
    pub fn open(oid: pg_sys::Oid, guarded: &Relation, columns: &GuardColumns, lock: u32) -> Self {
        let key = ColumnType::of(guarded.oid(), columns.key.expect("notes need a key"));
        let columns = self::columns(key);
        let created = created(guarded, &columns);
        let table = CheckedTable::open(oid, &created, lock);
        let table = table.unwrap_or_else(|altered| {
            altered.raise(
                "Alter it back, or make it anew: near_dup_unprotect, DROP TABLE, near_dup_protect.",
            )
        });
        Self {
            table,
            name: names::relation(oid),
            key,
        }
    }

    /// Calls `work` with the rights of the table's owner.
    pub fn write(&self, work: impl FnOnce(&Connection)) {
        as_owner(self.table.relation(), work);
    }

    /// Adds the note of a row and an earlier row, given their keys, unless the pair is noted.
    ///
    /// # Errors
    /// ERROR `not_null_violation` if a key is NULL, `unique_violation` if both are the same.
    pub fn add(&self, connection: &Connection, keys: [Option<pg_sys::Datum>; 2], similarity: f64) {
        let table = &self.name;
        let raise = |code, message: &str| {
            let hint =
                "The column that key => ... of near_dup_protect names must be unique and not NULL.";
            raise(code, message, hint)
        };
        let [Some(key), Some(near_key)] = keys else {
            let message = format!("a row that {table} is to name has no key");
            raise(PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION, &message)
        };
        // SAFETY: the keys are of that type.
        unsafe {
            if are_same(self.key.type_, key, near_key) {
                let key = utf8(as_text(self.key.type_, key));
                let message =
                    format!("two similar rows that {table} is to name have the key {key}");
                raise(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, &message)
            }
        }
        // A row that a trigger writes can pass before the row that fired it, and a row can pass twice.
        let sql = format!(
            "INSERT INTO {table} (key, near_key, similarity, noted_at)
             VALUES ($1, $2, $3, pg_catalog.clock_timestamp()) ON CONFLICT DO NOTHING"
        );
        let types = [self.key.type_, self.key.type_, pg_sys::FLOAT8OID];
        let insert = connection.prepare_kept(&sql, &types);
        insert.execute(&[Some(key), Some(near_key), similarity.into_datum()]);
    }

    /// Removes the notes about the row with a key.
    ///
    /// # Errors
    /// ERROR `t_r_serialization_failure` if the transaction cannot see a note.
    pub fn remove(&self, connection: &Connection, key: pg_sys::Datum) {
        let equal = equality(self.key);
        let condition = format!("key {equal} $1 OR near_key {equal} $1");
        self.delete(connection, &condition, &[key]);
    }

    /// Removes the note of a pair of keys, in either order.
    pub fn remove_pair(&self, connection: &Connection, pair: [pg_sys::Datum; 2]) {
        self.delete(connection, &is_pair(self.key, ["key", "near_key"]), &pair);
    }

    /// Removes all notes.
    pub fn empty(&self) {
        self.write(|connection| self.delete(connection, "true", &[]));
    }

    /// Removes the notes that satisfy a condition with `keys` as parameters.
    fn delete(&self, connection: &Connection, condition: &str, keys: &[pg_sys::Datum]) {
        let sql = format!("DELETE FROM {} WHERE {condition}", self.name);
        run_with_keys(connection, &sql, self.key, keys);
    }
}

/// Calls `work` with the rights of a table's owner. Sequential scans are disabled, since plans may stem from the time
/// when the table was empty.
pub fn as_owner<R>(table: &Relation, work: impl FnOnce(&Connection) -> R) -> R {
    let rights = OwnerRights::assume(table.owner());
    rights.set(c"enable_seqscan", c"off");
    let connection = Connection::open();
    let result = work(&connection);
    connection.close();
    rights.resign();
    result
}

/// Returns the equality operator of keys, as SQL.
fn equality(key: ColumnType) -> String {
    names::equality(key.type_).expect("keys have equality")
}

/// Returns the condition that two columns contain the keys `$1` and `$2`, in either order.
pub fn is_pair(key: ColumnType, [a, b]: [&str; 2]) -> String {
    let equal = equality(key);
    let are = |x, y| format!("({a} {equal} ${x} AND {b} {equal} ${y})");
    format!("({} OR {})", are(1, 2), are(2, 1))
}

/// Runs a statement with keys as parameters on the rows committed by now. Returns the number of rows returned or
/// changed.
pub fn run_with_keys(
    connection: &Connection,
    sql: &str,
    key: ColumnType,
    keys: &[pg_sys::Datum],
) -> u64 {
    let statement = connection.prepare_kept(sql, &vec![key.type_; keys.len()]);
    statement.run_latest(&keys.iter().copied().map(Some).collect::<Vec<_>>())
}
