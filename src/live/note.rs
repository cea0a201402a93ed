//! The trigger function `near_dup_track`: adds the keys of changed rows to the queue.
//!
//! It writes to the queue directly, not through a statement. So roles that may write the table need no privileges on
//! the queue, and no code runs with rights other than the rights of these roles.

use crate::live::tables::altered_hint;
use crate::live::tracker::{Tables, TrackerTable};
use crate::live::triggers::for_updates;
use crate::pg::call::{finfo, trigger_data};
use crate::pg::checked::{CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::encoding::utf8;
use crate::pg::prelude::*;
use crate::pg::relation::{ColumnType, root_of};
use crate::pg::slot::{get, have_same_bits};
use crate::pg::{condition, nodes};
use pgrx::memcxt::PgMemoryContexts;
use std::ffi::CStr;

/// Adds the key of a changed row, or both keys of a changed exception, to the queue.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn near_dup_note(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // `fn_extra` is set only here.
    let call = (*fcinfo).flinfo;
    let of_row = |data: &&pg_sys::TriggerData| data.tg_event & pg_sys::TRIGGER_EVENT_ROW != 0;
    let Some(data) = trigger_data(fcinfo).filter(of_row) else {
        not_our_trigger();
    };
    if (*call).fn_extra.is_null() {
        let noting = Noting::new(data, (*call).fn_oid);
        let mut context = PgMemoryContexts::For((*call).fn_mcxt);
        (*call).fn_extra = context.leak_and_drop_on_delete(noting).cast();
    }
    if let Some(noting) = &*(*call).fn_extra.cast::<Option<Noting>>() {
        noting.note(data);
    }
    pg_sys::Datum::null()
}

finfo!(pg_finfo_near_dup_note);

/// Raises the error for a call by anything but a trigger of a tracker.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated`.
fn not_our_trigger() -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "a function of near_dup_track was not called by its trigger",
        "near_dup_track creates its triggers itself.",
    )
}

/// The parts of a tracker that its trigger needs, looked up once per statement.
struct Noting {
    tables: Tables,
    /// Owner and persistence of the table with the trigger, or of its root if it is a partition.
    owner: pg_sys::Oid,
    persistence: u8,
    /// The columns of the changed table that hold keys.
    keys: Vec<i16>,
    /// All columns of the changed table that the tracker reads. An UPDATE that changes no bit of them is skipped.
    /// Equality operators cannot replace this test, because equal values can have different places in the order.
    read: Vec<i16>,
    /// The type of the queue's keys. The queue is closed between rows, so a trigger can alter it within the statement.
    key_type: ColumnType,
    /// True if `keys` is not empty and all its columns are of `key_type`.
    are_of_type: bool,
}

impl Noting {
    /// Looks up the tracker whose trigger fired. Returns None if the tracker has ended because its trigger for updates
    /// was dropped with a column.
    ///
    /// # Errors
    /// ERROR `e_r_i_e_trigger_protocol_violated` if the trigger's condition does not name a tracker's tables,
    /// `object_not_in_prerequisite_state` if the queue has a different owner than the table with the trigger.
    ///
    /// # Safety
    /// `data` belongs to the running call of `function`.
    unsafe fn new(data: &pg_sys::TriggerData, function: pg_sys::Oid) -> Option<Self> {
        // The table is open.
        let (oid, trigger) = ((*data.tg_relation).rd_id, &*data.tg_trigger);
        let Some(tables) = Tables::of(trigger) else {
            not_our_trigger();
        };
        let table = Relation::open_table(oid);
        let updates = for_updates(function, &table, &tables)?;
        let kept = condition::kept(updates.tgqual).unwrap_or_default();
        // An exception has two keys.
        let count = if tables.exceptions == Some(oid) { 2 } else { 1 };
        let keys = kept.iter().take(count);
        // A forged condition can name a system column, which a slot does not have among its values.
        let keys = keys.map_while(|&node| condition::column(node).filter(|&column| column > 0));
        let keys: Vec<_> = keys.collect();
        let read = kept.iter().flat_map(|&node| nodes::columns(node));
        let read = read.filter(|&column| column > 0).collect();
        // A partition has a clone of the tracked table's trigger.
        let root = Relation::open_table(match trigger.tgisclone {
            true => root_of(oid),
            false => oid,
        });
        if names::owner(tables.get(TrackerTable::Queue)) != Some(root.owner()) {
            let table = names::relation(root.oid());
            let trigger = names::identifier(&utf8(CStr::from_ptr(trigger.tgname)));
            not_ready(
                &format!("a trigger of table {table} notes changes for clusters of another owner"),
                &format!("Undo the change of its owner, or DROP TRIGGER {trigger} ON {table}."),
            );
        }
        let key_type = held(tables.get(TrackerTable::Queue));
        let is_of_type = |&column: &i16| {
            names::column(oid, column).is_some() && ColumnType::of(oid, column) == key_type
        };
        Some(Self {
            key_type,
            are_of_type: keys.iter().all(is_of_type) && !keys.is_empty(),
            keys,
            read,
            owner: root.owner(),
            persistence: root.persistence(),
            tables,
        })
    }

    /// Opens the queue.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if it was altered.
    fn queue(&self) -> CheckedTable {
        let queue = self.tables.get(TrackerTable::Queue);
        let created = CreatedTable {
            owner: self.owner,
            persistence: self.persistence,
            columns: &[CreatedColumn::new("key", self.key_type, false)],
            key: Some(&[]),
        };
        let opened = CheckedTable::open(queue, &created, pg_sys::RowExclusiveLock);
        opened.unwrap_or_else(|altered| altered.raise(&altered_hint(&self.tables)))
    }

    /// Adds the keys of the changed row to the queue, unless an UPDATE changed no column that the tracker reads. Adds
    /// NULL if the keys do not have the type of the queue's keys.
    ///
    /// # Safety
    /// `data` belongs to the running call of the function.
    unsafe fn note(&self, data: &pg_sys::TriggerData) {
        let is_update =
            data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_UPDATE;
        let has_same = |columns: &[i16]| {
            // The slots of the event hold rows of the table.
            is_update && have_same_bits(data.tg_trigslot, data.tg_newslot, columns)
        };
        if self.are_of_type && has_same(&self.read) {
            return;
        }
        let queue = self.queue();
        if !self.are_of_type {
            return insert(&queue, None);
        }
        let note = |slot| {
            for &column in &self.keys {
                // The slots of the event hold rows of the table.
                let key = get(slot, column);
                // An exception with a NULL has no effect.
                if key.is_some() || self.keys.len() == 1 {
                    insert(&queue, key);
                }
            }
        };
        if !is_update || !has_same(&self.keys) {
            note(data.tg_trigslot);
        }
        if is_update {
            note(data.tg_newslot);
        }
    }
}

/// Returns the type of the keys in `queue`, or the invalid type if its first column was dropped.
fn held(queue: pg_sys::Oid) -> ColumnType {
    names::column(queue, 1).map_or_else(ColumnType::default, |_| ColumnType::of(queue, 1))
}

/// Inserts `key` into `queue`. None means that any row may have changed.
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
