//! Looking through an index of a table for rows of every transaction, as the check of an exclusion
//! constraint does.

use crate::guard::row::{Slot, Tid, tid};
use crate::guard::table::{Rule, SearchedTable, UsableIndex};
use crate::guard::version::RowVersion;
use crate::index::am::lookup::{Candidate, candidates, next_number};
use crate::index::classes::{CONTAINED, EQUAL};
use crate::pg::error::check_interrupts;
use crate::pg::relation::Relation;
use pgrx::itemptr::item_pointer_get_both;
use pgrx::pg_sys;

/// A transaction in progress that inserted, changed or deleted a row.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    transaction: pg_sys::TransactionId,
    speculative_token: u32,
}

impl Pending {
    /// Waits until the transaction has ended, or the speculative insertion is decided.
    ///
    /// # Errors
    /// ERROR on a deadlock, a timeout or a cancel.
    pub fn wait(&self, table: pg_sys::Relation) {
        // SAFETY: the table is open; without a row number none is named in messages.
        unsafe {
            if self.speculative_token != 0 {
                pg_sys::SpeculativeInsertionWait(self.transaction, self.speculative_token);
            } else {
                pg_sys::XactLockTableWait(
                    self.transaction,
                    table,
                    std::ptr::null_mut(),
                    pg_sys::XLTW_Oper::XLTW_None,
                );
            }
        }
    }
}

/// The row that is checked, in the table that is searched.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    pub tid: Tid,
    /// Every transaction goes by the row numbers of the same index.
    pub is_ordered: bool,
}

/// A search through one index of one table.
pub struct TableSearch {
    table: Relation,
    index: Relation,
    keys: Vec<pg_sys::ScanKeyData>,
    slot: Slot,
}

impl TableSearch {
    /// # Errors
    /// ERROR if the table has no usable index.
    ///
    /// # Safety
    /// The version is of a row that is in one table with those that are searched, and outlives the
    /// search.
    pub unsafe fn new(table: &SearchedTable, rule: &Rule, version: &RowVersion<'_>) -> Self {
        let index = table.index(rule);
        let relation = Relation::open_table(table.oid);
        // SAFETY: the index was found to be one of our operator class on that table.
        unsafe {
            Self {
                slot: Slot::new(relation.as_ptr()),
                table: relation,
                index: Relation::open_index(index.oid),
                keys: keys(index, version),
            }
        }
    }

    pub fn table(&self) -> pg_sys::Relation {
        self.table.as_ptr()
    }

    /// Visits every live row, committed or not, until `visit` says stop (false). Rows have to be
    /// checked: the index finds too many. The own row is not visited, nor, where there is an order,
    /// those that are inserted later by transactions in progress: their checks find the own row and
    /// wait for it.
    pub fn for_each_live(
        &self,
        own: Option<Own>,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot, Option<Pending>) -> bool,
    ) {
        let mut own_number = None;
        let mut from = 0;
        // A row that is changed meanwhile can be missed: its old version is dead when it is looked
        // at, and its new one was not in the index when that was searched. So, after a dead one,
        // what the index has got since is looked at, too.
        loop {
            let (next, found) = self.candidates();
            if let Some(own) = own.filter(|own| own.is_ordered && from == 0) {
                let is_own = |row: &&Candidate| item_pointer_get_both(row.tid) == own.tid;
                own_number = found.iter().find(is_own).map(|row| row.number);
            }
            let mut is_complete = true;
            for row in found.iter().filter(|row| row.number >= from) {
                check_interrupts();
                let is_later = own_number.is_some_and(|own| row.number > own);
                let mut visit_other = |slot, by: &pg_sys::SnapshotData| {
                    let is_inserted_later = is_later && by.xmin != pg_sys::InvalidTransactionId;
                    // SAFETY: the slot holds a row of the table.
                    let is_own = own.is_some_and(|own| own.tid == unsafe { tid(slot) });
                    is_own || is_inserted_later || visit(slot, pending(by))
                };
                match self.visit_versions(row.tid, &mut dirty_snapshot(), &mut visit_other) {
                    Visited::None => is_complete = false,
                    Visited::All => {}
                    Visited::Stopped => return,
                }
            }
            if is_complete {
                return;
            }
            from = next;
        }
    }

    /// Visits the rows that a statement sees, as they were when it began.
    ///
    /// # Safety
    /// The snapshot is one of this transaction's for statements.
    pub unsafe fn for_each_seen(
        &self,
        snapshot: pg_sys::Snapshot,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot),
    ) {
        for row in self.candidates().1 {
            check_interrupts();
            // SAFETY: vouched for by the caller.
            let snapshot = unsafe { &mut *snapshot };
            self.visit_versions(row.tid, snapshot, &mut |slot, _| {
                visit(slot);
                true
            });
        }
    }

    /// Returns the candidates, after a number that no later one is below.
    fn candidates(&self) -> (u64, Vec<Candidate>) {
        // SAFETY: the index is open, and of our access method; the key is for it.
        unsafe {
            let next = next_number(self.index.as_ptr());
            (next, candidates(self.index.as_ptr(), &self.keys))
        }
    }

    /// Visits the versions of the row behind an index entry that the snapshot shows.
    fn visit_versions(
        &self,
        mut tid: pg_sys::ItemPointerData,
        snapshot: &mut pg_sys::SnapshotData,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot, &pg_sys::SnapshotData) -> bool,
    ) -> Visited {
        let slot = self.slot.as_ptr();
        let (mut again, mut all_dead) = (false, false);
        let mut visited = Visited::None;
        // SAFETY: the table is open; the fetch is ended below or, after an ERROR, with the statement.
        unsafe {
            let fetch = pg_sys::table_index_fetch_begin(self.table.as_ptr());
            while visited != Visited::Stopped
                && pg_sys::table_index_fetch_tuple(
                    fetch,
                    &mut tid,
                    snapshot,
                    slot,
                    &mut again,
                    &mut all_dead,
                )
            {
                visited = match visit(slot, snapshot) {
                    true => Visited::All,
                    false => Visited::Stopped,
                };
                if !again {
                    break;
                }
            }
            pg_sys::table_index_fetch_end(fetch);
        }
        visited
    }
}

/// The versions of a row visited so far.
#[derive(PartialEq)]
enum Visited {
    None,
    All,
    Stopped,
}

/// Returns a snapshot that sees rows of transactions in progress, and says which these are.
fn dirty_snapshot() -> pg_sys::SnapshotData {
    pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
        ..Default::default()
    }
}

/// Returns the transaction in progress behind the row that a dirty snapshot has just shown.
fn pending(snapshot: &pg_sys::SnapshotData) -> Option<Pending> {
    [snapshot.xmin, snapshot.xmax]
        .into_iter()
        .find(|&transaction| transaction != pg_sys::InvalidTransactionId)
        .map(|transaction| Pending {
            transaction,
            speculative_token: snapshot.speculativeToken,
        })
}

/// Returns the scan keys for everything within the bound of a version, in its scope as far as the
/// index has it. Without the value of a column in front, here a NULL, the index returns every row.
fn keys(index: &UsableIndex, version: &RowVersion<'_>) -> Vec<pg_sys::ScanKeyData> {
    let in_front = index.scope.iter().zip(1..);
    let mut keys: Vec<_> = in_front
        .filter_map(|(&place, column)| {
            let value = version.scope(place)?;
            Some(scan_key(column, EQUAL, value))
        })
        .collect();
    let column = index.scope.len() as i16 + 1;
    keys.push(scan_key(column, CONTAINED, version.ball));
    keys
}

/// Returns a scan key for an operator of the access method, which needs no function that compares.
pub fn scan_key(column: i16, strategy: u16, argument: pg_sys::Datum) -> pg_sys::ScanKeyData {
    pg_sys::ScanKeyData {
        sk_attno: column,
        sk_strategy: strategy,
        sk_argument: argument,
        ..Default::default()
    }
}
