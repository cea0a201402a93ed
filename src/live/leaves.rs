//! The tables that hold the rows of a tracked table: itself, or its partitions.

use crate::live::tracker::{Tracker, name_of, note_trigger};
use crate::pg::relation::Relation;
use pgrx::pg_sys;
use std::collections::HashSet;

/// A table with rows, as a refresh has read it. Another file or another trigger means that rows may
/// have changed that were not noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeafTable {
    pub table: pg_sys::Oid,
    /// Invalid where rows may change and nobody notices.
    pub file: pg_sys::Oid,
    /// The trigger that notes its rows: a partition gets another one when it is attached again.
    pub trigger: pg_sys::Oid,
}

/// Rows that may have changed without having been noted.
pub struct Unnoted {
    /// The leaves whose rows all count as changed.
    pub new: Vec<pg_sys::Oid>,
    /// There may be clusters of rows that are gone.
    pub are_gone: bool,
    /// All rows count as changed.
    pub is_all: bool,
}

/// The tracked table, and the function and the name of the trigger that notes its rows.
type NotingTrigger = (pg_sys::Oid, pg_sys::Oid, String);

impl LeafTable {
    /// Returns the leaves of a tracked table.
    pub fn all_of(tracker: &Tracker) -> Vec<Self> {
        let root = Relation::open_table(tracker.relation);
        let inserts = pg_sys::TRIGGER_TYPE_INSERT;
        let mut leaves = Vec::new();
        if let Some(trigger) = note_trigger(tracker.note, &root, tracker.tables, inserts) {
            let trigger = (tracker.relation, tracker.note, name_of(trigger));
            add_leaves(&root, &trigger, &mut leaves);
        }
        leaves
    }

    fn of(table: &Relation, (root, function, name): &NotingTrigger) -> Self {
        let triggers = table.triggers().iter();
        let noting: Vec<_> = triggers.filter(|t| t.tgfoid == *function).collect();
        // A partition's trigger has the name of its table's.
        let trigger = noting.iter().find(|trigger| name_of(trigger) == *name);
        // SAFETY: the table is open.
        let (oid, form) = unsafe { ((*table.as_ptr()).rd_id, &*(*table.as_ptr()).rd_rel) };
        let is_received = is_received(oid) || is_received(*root);
        let is_enabled = |trigger: &&pg_sys::Trigger| is_enabled(trigger, is_received);
        let is_noted = trigger.is_some() && noting.iter().all(is_enabled);
        Self {
            table: oid,
            file: match is_noted && !table.has_new_file() {
                true => form.relfilenode,
                false => pg_sys::InvalidOid,
            },
            trigger: trigger.map_or(pg_sys::InvalidOid, |trigger| trigger.tgoid),
        }
    }

    /// Returns whether a change of its rows is noted.
    pub fn is_known(&self) -> bool {
        self.file != pg_sys::InvalidOid
    }
}

fn add_leaves(table: &Relation, trigger: &NotingTrigger, leaves: &mut Vec<LeafTable>) {
    if table.kind() != pg_sys::RELKIND_PARTITIONED_TABLE {
        return leaves.push(LeafTable::of(table, trigger));
    }
    for partition in table.partitions() {
        add_leaves(&Relation::open_table(partition), trigger, leaves);
    }
}

/// Returns whether all changes of a table fire a trigger; `is_received` if replication makes some.
fn is_enabled(trigger: &pg_sys::Trigger, is_received: bool) -> bool {
    match trigger.tgenabled as u8 {
        pg_sys::TRIGGER_DISABLED | pg_sys::TRIGGER_FIRES_ON_REPLICA => false,
        pg_sys::TRIGGER_FIRES_ON_ORIGIN => !is_received,
        _ => true,
    }
}

/// Returns whether a subscription writes to a table.
fn is_received(table: pg_sys::Oid) -> bool {
    let subscribed = pg_sys::SysCacheIdentifier::SUBSCRIPTIONRELMAP as i32;
    // SAFETY: the first key of the cache is the table; the list is released.
    unsafe {
        let list =
            pg_sys::SearchSysCacheList(subscribed, 1, table.into(), 0usize.into(), 0usize.into());
        let is_received = (*list).n_members > 0;
        pg_sys::ReleaseCatCacheList(list);
        is_received
    }
}

impl Unnoted {
    /// Compares the leaves that the last refresh has read with the present ones.
    pub fn since(before: &[LeafTable], now: &[LeafTable]) -> Self {
        let known = |leaves: &[LeafTable]| -> HashSet<LeafTable> {
            let known = leaves.iter().filter(|leaf| leaf.is_known());
            known.copied().collect()
        };
        let (before_known, now_known) = (known(before), known(now));
        let new = now.iter().filter(|leaf| !before_known.contains(leaf));
        let new: Vec<_> = new.map(|leaf| leaf.table).collect();
        let are_gone = before.iter().any(|leaf| !now_known.contains(leaf));
        Self {
            is_all: (are_gone || !new.is_empty()) && new.len() == now.len(),
            new,
            are_gone,
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.new.is_empty() && !self.are_gone
    }
}
