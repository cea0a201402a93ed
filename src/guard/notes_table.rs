//! The table that a guard writes its notes to, with the rights of the owner of both.

use crate::guard::columns::GuardColumns;
use crate::guard::keys::{define_keys, holds_keys};
use crate::guard::table::root_of;
use crate::pg::error::{OrRaise, not_ready, unsupported};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::OwnerRights;
use crate::pg::statement::{Connection, array_of_texts, server_text, text_datum};
use neardup::memory::collected;
use pgrx::{IntoDatum, pg_sys};
use std::ffi::CStr;

/// Makes a table for the notes of a guard, in the schema of the guarded table.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state` for a table without a primary key, `feature_not_supported` for a
/// temporary one, and the errors of CREATE TABLE.
pub fn create(guarded: &Relation, name: &str) -> pg_sys::Oid {
    let root = Relation::open_table(root_of(guarded.oid()));
    let Some((_, numbers)) = root.primary_key() else {
        let table = names::relation(root.oid());
        not_ready(
            &format!("notes need a primary key, which table {table} has not"),
            &format!("ALTER TABLE {table} ADD PRIMARY KEY (...);"),
        );
    };
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
    let key = names::qualified(schema, &names::derived(name, "key"));
    let key = define_keys(&connection, root.oid(), &numbers, &key);
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

/// An open table of notes.
pub struct NotesTable {
    table: Relation,
    key_type: pg_sys::Oid,
}

impl NotesTable {
    pub fn open(oid: pg_sys::Oid) -> Self {
        let table = Relation::open_table(oid);
        let key_type = ColumnType::of(oid, 1).type_;
        Self { table, key_type }
    }

    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` unless the table belongs to the owner of the guarded one,
    /// and holds its keys.
    pub fn check(&self, guarded: &Relation) {
        let names = || [guarded, &self.table].map(|table| names::relation(table.oid()));
        if self.table.owner() != guarded.owner() {
            let [table, notes] = names();
            not_ready(
                &format!("{notes} has another owner than {table}"),
                "Give both the same owner: ALTER TABLE ... OWNER TO ...",
            );
        }
        let (_, key) = guarded.primary_key().unwrap_or_default();
        if key.is_empty() || !holds_keys(&self.table, guarded, &key) {
            let [table, notes] = names();
            not_ready(
                &format!("the primary key of {table} is not the one that {notes} was made for"),
                "Drop the trigger and the notes, and call near_dup_protect again.",
            );
        }
    }

    /// Does some work with the rights of the table's owner.
    pub fn write(&self, work: impl FnOnce(&Connection)) {
        let rights = OwnerRights::assume(self.table.owner());
        rights.keep_texts();
        // Plans are kept, and may have been made while the table was empty.
        rights.set(c"enable_seqscan", c"off");
        // Notes that a policy hides from the owner would stay.
        rights.set(c"row_security", c"off");
        let connection = Connection::open();
        work(&connection);
        connection.close();
        rights.resign();
    }

    /// Returns the key of a row as text.
    ///
    /// # Safety
    /// The slot holds a row of a table with these columns, which [`Self::check`] has passed.
    pub unsafe fn key(
        &self,
        columns: &GuardColumns,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> pg_sys::Datum {
        let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: vouched for by the caller; returns a new NUL-terminated string.
        unsafe {
            let key = columns
                .key_as(self.key_type, slot)
                .expect("the table has a key");
            pg_sys::getTypeOutputInfo(self.key_type, &mut function, &mut is_varlena);
            let text = pg_sys::OidOutputFunctionCall(function, key);
            text_datum(CStr::from_ptr(text).to_bytes())
        }
    }

    /// Removes the notes that name rows with these keys, as texts.
    ///
    /// # Errors
    /// ERROR `t_r_serialization_failure` for a note that the transaction cannot see.
    pub fn remove(&self, connection: &Connection, keys: Vec<pg_sys::Datum>) {
        if keys.is_empty() {
            return;
        }
        let equal = names::equality(self.key_type).expect("a primary key has equality");
        let is_gone = |column| format!("{column} {equal} gone::{}", self.key_type_name());
        let [key, near_key] = ["key", "near_key"].map(is_gone);
        let notes = names::relation(self.table.oid());
        connection
            .prepare_kept(
                &format!(
                    "DELETE FROM {notes} USING pg_catalog.unnest($1) gone WHERE {key} OR {near_key}"
                ),
                &[pg_sys::TEXTARRAYOID],
            )
            .run_latest(&[Some(array_of_texts(keys))]);
    }

    /// Removes all notes.
    pub fn empty(&self) {
        let notes = names::relation(self.table.oid());
        self.write(|connection| {
            let delete = format!("DELETE FROM {notes}");
            connection.prepare(&delete, &[]).run_latest(&[]);
        });
    }

    pub fn add(&self, connection: &Connection, notes: &[NewNote]) {
        let keys = |key: fn(&NewNote) -> pg_sys::Datum| {
            Some(array_of_texts(collected(notes.iter().map(key)).or_raise()))
        };
        let similarities = collected(notes.iter().map(|note| note.similarity)).or_raise();
        let (table, key) = (names::relation(self.table.oid()), self.key_type_name());
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
                keys(|note| note.key),
                keys(|note| note.near_key),
                similarities.into_datum(),
            ]);
    }

    fn key_type_name(&self) -> String {
        names::type_of(self.key_type, -1)
    }
}

/// A note to be added, with the keys as texts.
pub struct NewNote {
    pub key: pg_sys::Datum,
    pub near_key: pg_sys::Datum,
    pub similarity: f64,
}
