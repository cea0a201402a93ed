//! The trigger function `near_dup_track`: notes in the queue which rows have changed.
//!
//! It writes into the queue itself, without a statement, so that whoever may write the table needs no
//! right on the queue, and no code runs with other rights than the writer's.

use crate::guard::keys::{holds_keys, key_of};
use crate::guard::slot::have_same_bits;
use crate::guard::table::root_of;
use crate::live::access::{altered_hint, check_tables};
use crate::live::commit;
use crate::live::tracker::{IMMEDIATE, Tables, check_call, note_trigger};
use crate::pg::call::finfo;
use crate::pg::checked::{CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation, trigger_arguments};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys;

/// Notes the keys of a changed row, or that the table was emptied.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn near_dup_note(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: vouched for by the caller; the value that is kept with the statement is of this type.
    unsafe {
        let call = (*fcinfo).flinfo;
        let data = check_call(fcinfo);
        if (*call).fn_extra.is_null() {
            let noting = Noting::new(data, (*call).fn_oid);
            let mut context = PgMemoryContexts::For((*call).fn_mcxt);
            (*call).fn_extra = context.leak_and_drop_on_delete(noting).cast();
        }
        if let Some(noting) = &*(*call).fn_extra.cast::<Option<Noting>>() {
            noting.note(data, (*call).fn_oid);
        }
    }
    pg_sys::Datum::null()
}

finfo!(pg_finfo_near_dup_note);

/// A tracker as the trigger needs it, looked up once for each statement.
struct Noting {
    tables: Tables,
    /// The tracked table's owner and persistence.
    tracked: (pg_sys::Oid, u8),
    is_immediate: bool,
    /// The columns of the primary key; none where the queue has another type of keys.
    key: Vec<i16>,
}

impl Noting {
    /// Returns None where the tracker has ended, because its trigger for updates was dropped with a column.
    ///
    /// # Safety
    /// The data belong to the running call of the function.
    unsafe fn new(data: &pg_sys::TriggerData, function: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the table is open.
        let (oid, trigger) = unsafe { ((*data.tg_relation).rd_id, &*data.tg_trigger) };
        let table = Relation::open_table(oid);
        let tables = Tables::of(trigger)?;
        note_trigger(function, &table, tables, pg_sys::TRIGGER_TYPE_UPDATE)?;
        // SAFETY: the trigger is one of the table.
        let mode = unsafe { trigger_arguments(trigger) }.get(1).copied();
        // A partition has the trigger from the tracked table.
        let tracked = match trigger.tgisclone {
            true => root_of(oid),
            false => oid,
        };
        check_tables(tracked, &tables);
        let tracked = Relation::open_table(tracked);
        let mut noting = Self {
            tables,
            tracked: (tracked.owner(), tracked.persistence()),
            key: Vec::new(),
            is_immediate: mode.is_some_and(|mode| mode.to_bytes() == IMMEDIATE.as_bytes()),
        };
        let (_, key) = table.primary_key().unwrap_or_default();
        if holds_keys(noting.queue().relation(), &table, &key) {
            noting.key = key;
        }
        Some(noting)
    }

    /// Opens the queue.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` for one that was altered.
    fn queue(&self) -> CheckedTable {
        let queue = self.tables.queue;
        let (owner, persistence) = self.tracked;
        let created = CreatedTable {
            owner,
            persistence,
            columns: &[CreatedColumn::new("key", held(queue), false)],
            key: &[],
        };
        let opened = CheckedTable::open(queue, &created, pg_sys::RowExclusiveLock);
        opened.unwrap_or_else(|altered| altered.raise(&altered_hint(self.tables.clusters)))
    }

    /// # Safety
    /// The data belong to the running call of the function.
    unsafe fn note(&self, data: &pg_sys::TriggerData, function: pg_sys::Oid) {
        let row = pg_sys::TRIGGER_EVENT_ROW;
        let operation = data.tg_event & (pg_sys::TRIGGER_EVENT_OPMASK | row);
        let queue = self.queue();
        let key_type = held(self.tables.queue).type_;
        // SAFETY: vouched for by the caller; slots that the event has hold rows of the table.
        unsafe {
            let key = |slot| Some(key_of(&self.key, key_type, slot));
            match operation ^ row {
                _ if self.key.is_empty() => insert(&queue, None),
                pg_sys::TRIGGER_EVENT_INSERT | pg_sys::TRIGGER_EVENT_DELETE => {
                    insert(&queue, key(data.tg_trigslot));
                }
                pg_sys::TRIGGER_EVENT_UPDATE => {
                    if !have_same_bits(data.tg_trigslot, data.tg_newslot, &self.key) {
                        insert(&queue, key(data.tg_trigslot));
                    }
                    insert(&queue, key(data.tg_newslot));
                }
                _ => insert(&queue, None),
            }
        }
        drop(queue);
        if self.is_immediate {
            commit::remember(self.tables.clusters);
            if operation & row == 0 {
                // No trigger for a row will do it.
                commit::refresh_touched(function);
            }
        }
    }
}

/// Returns the type of the keys in a queue; invalid for a queue without a first column.
fn held(queue: pg_sys::Oid) -> ColumnType {
    match names::column(queue, 1) {
        Some(_) => ColumnType::of(queue, 1),
        None => ColumnType::default(),
    }
}

/// Inserts a key into the queue; None says that any row may have changed.
fn insert(queue: &CheckedTable, key: Option<pg_sys::Datum>) {
    let (mut value, mut is_null) = (key.unwrap_or(pg_sys::Datum::null()), key.is_none());
    let queue = queue.relation().as_ptr();
    // SAFETY: the queue is open, has one column, of the key's type, and no index.
    unsafe {
        let row = pg_sys::heap_form_tuple((*queue).rd_att, &raw mut value, &raw mut is_null);
        pg_sys::simple_heap_insert(queue, row);
        pg_sys::heap_freetuple(row);
    }
}

pgrx::extension_sql_file!("../../sql/live/note.sql", name = "live_note");
