//! The table of a guard's notes, which is written with the rights of its owner.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::get;
use crate::pg::checked::{CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::encoding::utf8;
use crate::pg::error::{OrRaise, raise, unsupported};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::OwnerRights;
use crate::pg::statement::{Connection, text_array, text_datum};
use neardup::memory::collected;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

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
    key: KeyWords,
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
            key: KeyWords::new(key),
        }
    }

    /// Calls `work` with the rights of the table's owner.
    pub fn write(&self, work: impl FnOnce(&Connection)) {
        as_owner(self.table.relation(), work);
    }

    /// Returns the note of a row and an earlier row, given their keys.
    ///
    /// # Errors
    /// ERROR `not_null_violation` if a key is NULL, `unique_violation` if both are the same.
    pub fn note<'c>(&self, keys: [Option<&'c CStr>; 2], similarity: f64) -> NewNote<'c> {
        let notes = &self.name;
        let (code, message) = match keys {
            [Some(key), Some(near_key)] if key != near_key => {
                return NewNote {
                    key,
                    near_key,
                    similarity,
                };
            }
            [Some(key), Some(_)] => (
                PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
                format!(
                    "two similar rows that {notes} is to name have the key {}",
                    utf8(key)
                ),
            ),
            _ => (
                PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION,
                format!("a row that {notes} is to name has no key"),
            ),
        };
        let hint =
            "The column that key => ... of near_dup_protect names must be unique and not NULL.";
        raise(code, &message, hint)
    }

    /// Removes the notes about rows with `keys`, given as texts.
    ///
    /// # Errors
    /// ERROR `t_r_serialization_failure` if the transaction cannot see a note.
    pub fn remove(&self, connection: &Connection, keys: &[&CStr]) {
        let KeyWords { type_, equal } = &self.key;
        let is_gone = |column| format!("{column} {equal} gone::{type_}");
        let [key, near_key] = ["key", "near_key"].map(is_gone);
        let sql = format!(
            "DELETE FROM {} USING pg_catalog.unnest($1) gone WHERE {key} OR {near_key}",
            self.name
        );
        let delete = connection.prepare_kept(&sql, &[pg_sys::TEXTARRAYOID]);
        delete.run_latest(&[Some(texts(keys.iter().copied()))]);
    }

    /// Removes the note of a pair of keys, given as texts in either order.
    pub fn remove_pair(&self, connection: &Connection, pair: [&CStr; 2]) {
        let is_pair = self.key.is_pair(["key", "near_key"]);
        let sql = format!("DELETE FROM {} WHERE {is_pair}", self.name);
        run_for_pair(connection, &sql, pair);
    }

    /// Removes all notes.
    pub fn empty(&self) {
        let delete = format!("DELETE FROM {}", self.name);
        self.write(|connection| {
            connection.prepare(&delete, &[]).run_latest(&[]);
        });
    }

    /// Adds notes, except those of pairs that are noted.
    pub fn add(&self, connection: &Connection, notes: &[NewNote<'_>]) {
        let similarities = collected(notes.iter().map(|note| note.similarity)).or_raise();
        let (table, type_) = (&self.name, &self.key.type_);
        // A row that a trigger writes can pass before the row that fired it, and a row can pass twice.
        let sql = format!(
            "INSERT INTO {table} (key, near_key, similarity, noted_at)
             SELECT u.key::{type_}, u.near_key::{type_}, u.similarity, pg_catalog.clock_timestamp()
             FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3))
                 u (key, near_key, similarity)
             ON CONFLICT DO NOTHING"
        );
        let types = [
            pg_sys::TEXTARRAYOID,
            pg_sys::TEXTARRAYOID,
            pg_sys::FLOAT8ARRAYOID,
        ];
        connection.prepare_kept(&sql, &types).execute(&[
            Some(texts(notes.iter().map(|note| note.key))),
            Some(texts(notes.iter().map(|note| note.near_key))),
            similarities.into_datum(),
        ]);
    }
}

/// Calls `work` with the rights of a table's owner. Sequential scans are disabled, since plans may stem from the time
/// when the table was empty.
pub fn as_owner<R>(table: &Relation, work: impl FnOnce(&Connection) -> R) -> R {
    let rights = OwnerRights::assume(table.owner());
    rights.keep_texts();
    rights.set(c"enable_seqscan", c"off");
    let connection = Connection::open();
    let result = work(&connection);
    connection.close();
    rights.resign();
    result
}

/// The type of keys and its equality operator, as SQL.
pub struct KeyWords {
    type_: String,
    equal: String,
}

impl KeyWords {
    pub fn new(key: ColumnType) -> Self {
        Self {
            type_: key.name(),
            equal: names::equality(key.type_).expect("keys have equality"),
        }
    }

    /// Returns the condition that two columns contain the keys `$1` and `$2`, texts, in either order.
    pub fn is_pair(&self, [a, b]: [&str; 2]) -> String {
        let Self { type_, equal } = self;
        let are = |x, y| format!("({a} {equal} ${x}::{type_} AND {b} {equal} ${y}::{type_})");
        format!("({} OR {})", are(1, 2), are(2, 1))
    }
}

/// Runs a statement for a pair of keys on the rows committed by now. Returns the number of rows returned or changed.
pub fn run_for_pair(connection: &Connection, sql: &str, pair: [&CStr; 2]) -> u64 {
    let statement = connection.prepare_kept(sql, &[pg_sys::TEXTOID; 2]);
    statement.run_latest(&pair.map(|key| Some(text_datum(key.to_bytes()))))
}

/// A note to be added. Keys are texts.
pub struct NewNote<'c> {
    key: &'c CStr,
    near_key: &'c CStr,
    similarity: f64,
}

/// Returns the value of a column as text in the current memory context, or None for NULL.
///
/// # Safety
/// The slot holds a row with that column.
pub unsafe fn text_of<'c>(slot: *mut pg_sys::TupleTableSlot, column: i16) -> Option<&'c CStr> {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    let value = get(slot, column)?;
    let type_ = pg_sys::SPI_gettypeid((*slot).tts_tupleDescriptor, column.into());
    pg_sys::getTypeOutputInfo(type_, &mut function, &mut is_varlena);
    Some(CStr::from_ptr(pg_sys::OidOutputFunctionCall(
        function, value,
    )))
}

/// Returns an array of texts.
fn texts<'c>(texts: impl Iterator<Item = &'c CStr>) -> pg_sys::Datum {
    text_array(texts.map(CStr::to_bytes))
}
