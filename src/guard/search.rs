//! Looking through an index of a table for rows of every transaction, as the check of an exclusion
//! constraint does.

use crate::guard::slot::{Slot, Tid, tid};
use crate::guard::table::{Rule, SearchedTable};
use crate::guard::version::RowVersion;
use crate::index::am::lookup::{self, NumberedRow, candidates, next_number};
use crate::index::classes::KeySearch;
use crate::pg::error::check_interrupts;
use crate::pg::relation::Relation;
use pgrx::itemptr::item_pointer_get_both;
use pgrx::pg_sys;
use std::cell::Cell;

/// A transaction in progress that inserted, changed or deleted a row.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    pub transaction: pg_sys::TransactionId,
    speculative_token: u32,
    pub change: Change,
}

/// A change that a transaction in progress has made to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Inserted,
    /// After the row that is checked, which the transaction's own check finds.
    InsertedLater,
    Deleted,
}

impl Change {
    /// Returns the same change of a row that came after ours.
    pub fn after_ours(self) -> Self {
        match self {
            Self::Inserted => Self::InsertedLater,
            other => other,
        }
    }
}

impl Pending {
    /// Returns the transaction in progress behind the row that a dirty snapshot has just shown.
    fn from_snapshot(snapshot: &pg_sys::SnapshotData, is_later: bool) -> Option<Self> {
        let nobody = pg_sys::InvalidTransactionId;
        let (transaction, change) = match (snapshot.xmin, snapshot.xmax) {
            (inserter, _) if inserter != nobody && is_later => (inserter, Change::InsertedLater),
            (inserter, _) if inserter != nobody => (inserter, Change::Inserted),
            (_, deleter) if deleter != nobody => (deleter, Change::Deleted),
            _ => return None,
        };
        Some(Self {
            transaction,
            speculative_token: snapshot.speculativeToken,
            change,
        })
    }

    /// Waits until the transaction has ended, or the speculative insertion is decided.
    ///
    /// # Errors
    /// ERROR on a deadlock, a timeout or a cancel.
    pub fn wait(&self) {
        // SAFETY: without a table and a row number none is named in messages.
        unsafe {
            if self.speculative_token != 0 {
                pg_sys::SpeculativeInsertionWait(self.transaction, self.speculative_token);
            } else {
                pg_sys::XactLockTableWait(
                    self.transaction,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    pg_sys::XLTW_Oper::XLTW_None,
                );
            }
        }
    }
}

/// The row that is checked, in the table that is searched.
#[derive(Debug, Clone, Copy)]
pub struct CheckedRow {
    pub tid: Tid,
    /// True if the index has an entry for this version of the row.
    pub is_indexed: bool,
}

/// A table with its index, open for searches in rounds: each goes on where the one before began, since a
/// row that enters the index while it is searched can be missed.
pub struct OpenTable {
    pub table: SearchedTable,
    relation: Relation,
    index: Relation,
    /// True if every session goes by the row numbers of this index.
    pub is_settled: bool,
    /// The number of the first of the guard's tables that is searched for the same keys.
    pub like: usize,
    /// The first row number that the round looks at.
    from: Cell<u64>,
    /// The number of the next row when the round began.
    next: Cell<u64>,
}

impl OpenTable {
    /// Opens a table to be searched beside others.
    ///
    /// # Errors
    /// ERROR if the table has no usable index.
    pub fn new(table: SearchedTable, rule: &Rule, others: &[Self]) -> Self {
        let usable = table.usable_index(rule);
        let index = Relation::open_index(usable.oid);
        let is_like = |other: &Self| {
            let scope = &other.table.usable_index(rule).scope;
            // SAFETY: both indexes are open, and of our access method.
            *scope == usable.scope
                && unsafe { lookup::make_same_keys(other.index.as_ptr(), index.as_ptr()) }
        };
        Self {
            relation: Relation::open_table(table.oid),
            like: others.iter().position(is_like).unwrap_or(others.len()),
            is_settled: usable.is_settled,
            index,
            table,
            from: Cell::new(0),
            next: Cell::new(0),
        }
    }

    pub fn relation(&self) -> pg_sys::Relation {
        self.relation.as_ptr()
    }

    /// Begins a round of the rows added since the one before.
    pub fn begin_round(&self) {
        self.from.set(self.next.get());
        self.next.set(self.next_number());
    }

    /// Returns how many rows the index got between the last two rounds.
    pub fn added(&self) -> u64 {
        self.next.get() - self.from.get()
    }

    /// Returns the first row number that the round looks at.
    pub fn from(&self) -> u64 {
        self.from.get()
    }

    /// Returns the search for everything within the bound of a version, in its scope as far as the index has it in
    /// front. Without the value of such a column, here a NULL, it finds every row.
    pub fn search(&self, version: &RowVersion<'_>) -> KeySearch {
        let (_, strategy) = version.rule.kind.operator(0);
        let index = self
            .table
            .index
            .as_ref()
            .expect("an open table has an index");
        let keys = index.scan_keys(&|place| version.scope(place), strategy, version.ball);
        // SAFETY: the index is open, and of our access method, which the keys are for.
        unsafe { lookup::search(self.index.as_ptr(), &keys) }
    }

    /// Visits every live row from a number on, committed or not, until `visit` returns false. Rows have
    /// to be checked: the index finds too many. Skips the row that is checked.
    pub fn for_each_live(
        &self,
        search: &KeySearch,
        checked: Option<CheckedRow>,
        mut from: u64,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot, Option<Pending>) -> bool,
    ) {
        let mut checked_number = None;
        // A row that is changed meanwhile can be missed: its old version is dead when it is looked
        // at, and its new one was not in the index when that was searched. So, after a dead one,
        // the rows that the index has got since are looked at, too.
        loop {
            // No candidate that the search misses is below.
            let next = self.next_number();
            // SAFETY: the index is open, and of our access method.
            let mut found = unsafe { candidates(self.index.as_ptr(), search, from) };
            if let Some(checked) = checked.filter(|row| row.is_indexed && self.is_settled) {
                let is_checked = |row: &NumberedRow| item_pointer_get_both(row.tid) == checked.tid;
                // It is in the index already when a first round begins.
                checked_number = checked_number
                    .or_else(|| Some(found.iter().find(is_checked)?.number))
                    .or(from.checked_sub(1));
            }
            let mut is_complete = true;
            for row in found.iter().filter(|row| row.number >= from) {
                check_interrupts();
                let is_later = checked_number.is_some_and(|number| row.number > number);
                let mut visit_other = |slot, by: &pg_sys::SnapshotData| {
                    // SAFETY: the slot holds a row of the table.
                    let is_checked = checked.is_some_and(|row| row.tid == unsafe { tid(slot) });
                    is_checked || visit(slot, Pending::from_snapshot(by, is_later))
                };
                match self.visit_versions(row.tid, &mut visit_other) {
                    Some(true) => {}
                    Some(false) => return,
                    None => is_complete = false,
                }
            }
            if is_complete {
                return;
            }
            from = next;
        }
    }

    /// Visits every live row, committed or not, that the index got between the last two rounds or later, as
    /// [`Self::for_each_live`] does.
    pub fn for_each_added(
        &self,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot, Option<Pending>) -> bool,
    ) {
        self.for_each_live(&KeySearch::Everything, None, self.from(), visit);
    }

    /// Returns a number that no row of the index has reached yet.
    fn next_number(&self) -> u64 {
        // SAFETY: the index is open, and of our access method.
        unsafe { next_number(self.index.as_ptr()) }
    }

    /// Visits the live versions of the row behind an index entry, with the snapshot that shows each, until `visit`
    /// returns false. Returns the last result of `visit`; None if there is no version.
    fn visit_versions(
        &self,
        mut tid: pg_sys::ItemPointerData,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot, &pg_sys::SnapshotData) -> bool,
    ) -> Option<bool> {
        // SAFETY: the table is open.
        let held = unsafe { Slot::new(self.relation()) };
        let (slot, snapshot) = (held.as_ptr(), &mut dirty_snapshot());
        let (mut again, mut all_dead) = (false, false);
        let mut goes_on = None;
        // SAFETY: the table is open; the fetch is ended below or, after an ERROR, with the statement.
        unsafe {
            let fetch = pg_sys::table_index_fetch_begin(self.relation());
            while goes_on != Some(false)
                && pg_sys::table_index_fetch_tuple(
                    fetch,
                    &mut tid,
                    snapshot,
                    slot,
                    &mut again,
                    &mut all_dead,
                )
            {
                goes_on = Some(visit(slot, snapshot));
                if !again {
                    break;
                }
            }
            pg_sys::table_index_fetch_end(fetch);
        }
        goes_on
    }
}

/// Returns a snapshot that sees rows of transactions in progress, and names these transactions.
fn dirty_snapshot() -> pg_sys::SnapshotData {
    pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
        ..Default::default()
    }
}
