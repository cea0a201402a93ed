//! The table that a guard writes its notes to, with the rights of the owner of both.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::get;
use crate::pg::checked::{CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::encoding::utf8;
use crate::pg::error::{OrRaise, raise, unsupported};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::OwnerRights;
use crate::pg::statement::{Connection, server_text, text_array, text_datum};
use neardup::memory::collected;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

/// Makes a table for the notes of a guard, in the schema of the guarded table. Rows are named by the column `key`.
///
/// # Errors
/// ERROR `feature_not_supported` for a temporary table, and the errors of CREATE TABLE.
pub fn create(guarded: &Relation, name: &str, key: i16) -> pg_sys::Oid {
    let oid = guarded.oid();
    // SAFETY: looks the table up in the catalog.
    let (schema, persistence) = unsafe {
        let schema = pg_sys::get_rel_namespace(oid);
        (schema, pg_sys::get_rel_persistence(oid) as u8)
    };
    let unlogged = match persistence {
        // Work as the owner makes no temporary objects.
        pg_sys::RELPERSISTENCE_TEMP => unsupported(
            "near_dup_protect cannot note rows of a temporary table",
            "action => 'reject' is possible.",
        ),
        pg_sys::RELPERSISTENCE_UNLOGGED => "UNLOGGED",
        _ => "",
    };
    let rights = OwnerRights::assume(guarded.owner());
    let connection = Connection::open();
    let key = ColumnType::of(oid, key).definition();
    let notes = names::qualified(schema, name);
    let comment = format!(
        "rows of {} that were similar to earlier ones when they came, by near_dup_protect",
        names::relation(oid)
    );
    // Of two rows only one is the later.
    connection.execute(&format!(
        "CREATE {unlogged} TABLE {notes} (key {key}, near_key {key},
             similarity double precision NOT NULL, noted_at timestamptz NOT NULL,
             PRIMARY KEY (key, near_key));
         CREATE INDEX ON {notes} (near_key);
         CREATE UNIQUE INDEX ON {notes} ((LEAST(key, near_key)), (GREATEST(key, near_key)));
         COMMENT ON TABLE {notes} IS {}",
        names::literal(&comment)
    ));
    connection.close();
    rights.resign();
    // SAFETY: the name is NUL-terminated.
    unsafe { pg_sys::get_relname_relid(server_text(name).as_ptr(), schema) }
}

/// An open table of notes about rows that a key names.
pub struct NotesTable {
    table: CheckedTable,
    key_type: pg_sys::Oid,
}

impl NotesTable {
    /// Opens the notes of a guarded table.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` unless the notes are as [`create`] made them, and have the owner of the
    /// guarded table.
    pub fn open(oid: pg_sys::Oid, guarded: &Relation, columns: &GuardColumns) -> Self {
        let key = columns.key.expect("a guard with notes has a key");
        let key = ColumnType::of(guarded.oid(), key);
        let columns = [
            ("key", key),
            ("near_key", key),
            ("similarity", ColumnType::plain(pg_sys::FLOAT8OID)),
            ("noted_at", ColumnType::plain(pg_sys::TIMESTAMPTZOID)),
        ];
        let created = CreatedTable {
            owner: guarded.owner(),
            persistence: guarded.persistence(),
            columns: &columns.map(|(name, type_)| CreatedColumn::new(name, type_, true)),
            key: Some(&[1, 2]),
        };
        let table = CheckedTable::open(oid, &created, pg_sys::RowExclusiveLock);
        let table = table.unwrap_or_else(|altered| {
            altered.raise(
                "Alter it back, or make it anew: near_dup_unprotect, DROP TABLE, near_dup_protect.",
            )
        });
        Self {
            table,
            key_type: key.type_,
        }
    }

    /// Does some work with the rights of the table's owner.
    pub fn write(&self, work: impl FnOnce(&Connection)) {
        let rights = OwnerRights::assume(self.table.relation().owner());
        rights.keep_texts();
        // Plans are kept, and may have been made while the table was empty.
        rights.set(c"enable_seqscan", c"off");
        let connection = Connection::open();
        work(&connection);
        connection.close();
        rights.resign();
    }

    /// Returns the note of a row beside an earlier one, by their keys.
    ///
    /// # Errors
    /// ERROR `not_null_violation` for a row without a key, `unique_violation` for rows with one key.
    pub fn note<'c>(&self, keys: [Option<&'c CStr>; 2], similarity: f64) -> NewNote<'c> {
        let shared = match keys {
            [Some(key), Some(near_key)] if key != near_key => {
                return NewNote {
                    key,
                    near_key,
                    similarity,
                };
            }
            [Some(key), Some(_)] => Some(key),
            _ => None,
        };
        let notes = names::relation(self.oid());
        let hint =
            "The column that key => ... of near_dup_protect names must be unique and not NULL.";
        match shared {
            Some(key) => raise(
                PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
                &format!(
                    "two similar rows that {notes} is to name have the key {}",
                    utf8(key)
                ),
                hint,
            ),
            None => raise(
                PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION,
                &format!("a row that {notes} is to name has no key"),
                hint,
            ),
        }
    }

    /// Removes the notes that name rows with these keys, as texts.
    ///
    /// # Errors
    /// ERROR `t_r_serialization_failure` for a note that the transaction cannot see.
    pub fn remove(&self, connection: &Connection, keys: &[&CStr]) {
        if keys.is_empty() {
            return;
        }
        let equal = names::equality(self.key_type).expect("the notes have an index on keys");
        let is_gone = |column| format!("{column} {equal} gone::{}", self.key_type_name());
        let [key, near_key] = ["key", "near_key"].map(is_gone);
        let notes = names::relation(self.oid());
        connection
            .prepare_kept(
                &format!(
                    "DELETE FROM {notes} USING pg_catalog.unnest($1) gone WHERE {key} OR {near_key}"
                ),
                &[pg_sys::TEXTARRAYOID],
            )
            .run_latest(&[Some(texts(keys.iter().copied()))]);
    }

    /// Removes the note of a pair, whichever row is the earlier, by keys as texts.
    pub fn remove_pair(&self, connection: &Connection, a: &CStr, b: &CStr) {
        let equal = names::equality(self.key_type).expect("the notes have an index on keys");
        let (table, key) = (names::relation(self.oid()), self.key_type_name());
        let is_pair =
            |a: u8, b: u8| format!("(key {equal} ${a}::{key} AND near_key {equal} ${b}::{key})");
        let sql = format!(
            "DELETE FROM {table} WHERE {} OR {}",
            is_pair(1, 2),
            is_pair(2, 1)
        );
        connection
            .prepare_kept(&sql, &[pg_sys::TEXTOID; 2])
            .run_latest(&[a, b].map(|key| Some(text_datum(key.to_bytes()))));
    }

    /// Removes all notes.
    pub fn empty(&self) {
        let notes = names::relation(self.oid());
        self.write(|connection| {
            let delete = format!("DELETE FROM {notes}");
            connection.prepare(&delete, &[]).run_latest(&[]);
        });
    }

    pub fn add(&self, connection: &Connection, notes: &[NewNote<'_>]) {
        let similarities = collected(notes.iter().map(|note| note.similarity)).or_raise();
        let (table, key) = (names::relation(self.oid()), self.key_type_name());
        connection
            .prepare_kept(
                // A row that a trigger has written can pass before the row that fired it, and a row can
                // pass twice.
                &format!(
                    "INSERT INTO {table} (key, near_key, similarity, noted_at)
                     SELECT u.key::{key}, u.near_key::{key}, u.similarity, pg_catalog.clock_timestamp()
                     FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2),
                         pg_catalog.unnest($3)) u (key, near_key, similarity)
                     ON CONFLICT DO NOTHING"
                ),
                &[
                    pg_sys::TEXTARRAYOID,
                    pg_sys::TEXTARRAYOID,
                    pg_sys::FLOAT8ARRAYOID,
                ],
            )
            .execute(&[
                Some(texts(notes.iter().map(|note| note.key))),
                Some(texts(notes.iter().map(|note| note.near_key))),
                similarities.into_datum(),
            ]);
    }

    fn oid(&self) -> pg_sys::Oid {
        self.table.relation().oid()
    }

    fn key_type_name(&self) -> String {
        names::type_of(self.key_type, -1)
    }
}

/// A note to be added, with the keys as texts.
pub struct NewNote<'c> {
    key: &'c CStr,
    near_key: &'c CStr,
    similarity: f64,
}

/// Returns the value of a column as text, in the current memory context; None for NULL.
///
/// # Safety
/// The slot holds a row with that column.
pub unsafe fn text_of<'c>(slot: *mut pg_sys::TupleTableSlot, column: i16) -> Option<&'c CStr> {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: vouched for by the caller; returns a new NUL-terminated string.
    unsafe {
        let value = get(slot, column)?;
        let type_ = pg_sys::SPI_gettypeid((*slot).tts_tupleDescriptor, column.into());
        pg_sys::getTypeOutputInfo(type_, &mut function, &mut is_varlena);
        Some(CStr::from_ptr(pg_sys::OidOutputFunctionCall(
            function, value,
        )))
    }
}

/// Returns texts as an array.
fn texts<'c>(texts: impl Iterator<Item = &'c CStr>) -> pg_sys::Datum {
    text_array(texts.map(CStr::to_bytes))
}
