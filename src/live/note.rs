//! The trigger function `near_dup_track`: notes in the queue which rows have changed.
//!
//! It writes into the queue itself, without a statement, so that whoever may write the table needs no
//! right on the queue, and no code runs with other rights than the writer's.

use crate::guard::keys::{KeyColumn, have_same_key, holds_keys, key_of};
use crate::live::access::check_tables;
use crate::live::commit;
use crate::live::tracker::{Tracker, no_trigger};
use crate::pg::call::{finfo, trigger_data};
use crate::pg::error::raise;
use crate::pg::relation::{ColumnType, Relation};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::{PgSqlErrorCode, pg_sys};

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
        let data = trigger_data(fcinfo).unwrap_or_else(|| no_trigger());
        if (*call).fn_extra.is_null() {
            let noting = Tracker::of_call(fcinfo).map(|tracker| Noting::new(data, tracker));
            let mut context = PgMemoryContexts::For((*call).fn_mcxt);
            (*call).fn_extra = context.leak_and_drop_on_delete(noting).cast();
        }
        if let Some(noting) = &*(*call).fn_extra.cast::<Option<Noting>>() {
            noting.note(data);
        }
    }
    pg_sys::Datum::null()
}

finfo!(pg_finfo_near_dup_note);

/// A tracker as the trigger needs it, looked up once for each statement.
struct Noting {
    tracker: Tracker,
    /// The columns of the primary key; none where the queue has another type of keys.
    key: Vec<KeyColumn>,
}

impl Noting {
    /// # Safety
    /// The data belong to the running call.
    unsafe fn new(data: &pg_sys::TriggerData, tracker: Tracker) -> Self {
        // SAFETY: the table is open.
        let table = Relation::open_table(unsafe { (*data.tg_relation).rd_id });
        let queue = Relation::open_table(tracker.tables.queue);
        check(&tracker, &table, &queue);
        let (_, mut numbers) = table.primary_key().unwrap_or_default();
        if !holds_keys(&queue, &table, &numbers) {
            numbers.clear();
        }
        let column = |&number: &i16| KeyColumn::new(&table, number);
        Self {
            key: numbers.iter().map(column).collect(),
            tracker,
        }
    }

    /// # Safety
    /// The data belong to the running call.
    unsafe fn note(&self, data: &pg_sys::TriggerData) {
        let row = pg_sys::TRIGGER_EVENT_ROW;
        let operation = data.tg_event & (pg_sys::TRIGGER_EVENT_OPMASK | row);
        let queue = Relation::open_to_write(self.tracker.tables.queue);
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
                    if !have_same_key(&self.key, data.tg_trigslot, data.tg_newslot) {
                        insert(&queue, key(data.tg_trigslot));
                    }
                    insert(&queue, key(data.tg_newslot));
                }
                _ => insert(&queue, None),
            }
        }
        drop(queue);
        if self.tracker.is_immediate {
            commit::remember(&self.tracker);
            if operation & row == 0 {
                // No trigger for a row will do it.
                commit::refresh_touched();
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
fn check(tracker: &Tracker, table: &Relation, queue: &Relation) {
    // SAFETY: both are open.
    let (form, columns) = unsafe {
        (
            &*(*queue.as_ptr()).rd_rel,
            (*(*queue.as_ptr()).rd_att).natts,
        )
    };
    if form.relowner != table.owner() {
        check_tables(tracker);
    }
    let is_plain = queue.kind() == pg_sys::RELKIND_RELATION && columns == 1 && !form.relhasindex;
    if !is_plain {
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the queue of a table tracked by near_dup_track was altered",
            "It is a table of one column without indexes; near_dup_untrack and near_dup_track make it anew.",
        );
    }
}

pgrx::extension_sql_file!("../../sql/live/note.sql", name = "live_note");
