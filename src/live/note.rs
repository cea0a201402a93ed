//! The trigger function `near_dup_track`: notes in the queue which rows have changed.
//!
//! It writes into the queue itself, without a statement, so that whoever may write the table needs no
//! right on the queue, and no code runs with other rights than the writer's.

use crate::guard::keys::{holds_keys, key_of};
use crate::guard::slot::have_same_bits;
use crate::guard::table::root_of;
use crate::live::access::check_tables;
use crate::live::commit;
use crate::live::tracker::{IMMEDIATE, Tables, check_call, note_trigger};
use crate::pg::call::finfo;
use crate::pg::error::not_ready;
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
        let queue = Relation::open_table(tables.queue);
        // A partition has the trigger from the tracked table.
        let tracked = match trigger.tgisclone {
            true => root_of(oid),
            false => oid,
        };
        check(tracked, &tables, &queue);
        let (_, mut key) = table.primary_key().unwrap_or_default();
        if !holds_keys(&queue, &table, &key) {
            key.clear();
        }
        Some(Self {
            tables,
            is_immediate: mode.is_some_and(|mode| mode.to_bytes() == IMMEDIATE.as_bytes()),
            key,
        })
    }

    /// # Safety
    /// The data belong to the running call of the function.
    unsafe fn note(&self, data: &pg_sys::TriggerData, function: pg_sys::Oid) {
        let row = pg_sys::TRIGGER_EVENT_ROW;
        let operation = data.tg_event & (pg_sys::TRIGGER_EVENT_OPMASK | row);
        let queue = Relation::open_to_write(self.tables.queue);
        let key_type = ColumnType::of(queue.oid(), 1).type_;
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

/// Inserts a key into the queue; None says that any row may have changed.
fn insert(queue: &Relation, key: Option<pg_sys::Datum>) {
    let (mut value, mut is_null) = (key.unwrap_or(pg_sys::Datum::null()), key.is_none());
    let queue = queue.as_ptr();
    // SAFETY: the queue is open, has one column, of the key's type, and no index.
    unsafe {
        let row = pg_sys::heap_form_tuple((*queue).rd_att, &raw mut value, &raw mut is_null);
        pg_sys::simple_heap_insert(queue, row);
        pg_sys::heap_freetuple(row);
    }
}

/// # Errors
/// ERROR `object_not_in_prerequisite_state` for a queue into which no row can be put as it is, or one of another owner.
fn check(tracked: pg_sys::Oid, tables: &Tables, queue: &Relation) {
    // SAFETY: both are open.
    let (form, columns) = unsafe {
        (
            &*(*queue.as_ptr()).rd_rel,
            (*(*queue.as_ptr()).rd_att).natts,
        )
    };
    if form.relowner != Relation::open_table(tracked).owner() {
        check_tables(tracked, tables);
    }
    let is_plain = queue.kind() == pg_sys::RELKIND_RELATION && columns == 1 && !form.relhasindex;
    if !is_plain {
        not_ready(
            "the queue of a table tracked by near_dup_track was altered",
            "It is a table of one column without indexes; near_dup_untrack and near_dup_track make it anew.",
        );
    }
}

pgrx::extension_sql_file!("../../sql/live/note.sql", name = "live_note");
