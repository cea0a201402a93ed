//! Searches an index for rows of all transactions, as the check of an exclusion constraint does.

use crate::guard::row::RowVersion;
use crate::guard::table::SearchedTable;
use crate::index::am::lookup::{self, for_each_candidate, next_number};
use crate::index::classes::{EQUAL, KeySearch, RowKeys};
use crate::pg::slot::Versions;
use pgrx::pg_sys;
use std::ptr::null_mut;

/// A transaction in progress that inserted, updated or deleted a row.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    pub transaction: pg_sys::TransactionId,
    speculative_token: u32,
    /// True if the transaction deletes the row version.
    pub deletes: bool,
}

impl Pending {
    /// Returns the transaction in progress that wrote the row version just seen by the dirty `snapshot`, if any.
    fn from_snapshot(snapshot: &pg_sys::SnapshotData) -> Option<Self> {
        let (deletes, transaction) = match snapshot.xmin {
            pg_sys::InvalidTransactionId => (true, snapshot.xmax),
            inserter => (false, inserter),
        };
        (transaction != pg_sys::InvalidTransactionId).then_some(Self {
            transaction,
            speculative_token: snapshot.speculativeToken,
            deletes,
        })
    }

    /// Waits until the transaction or its speculative insertion has ended.
    ///
    /// # Errors
    /// ERROR on a deadlock, a timeout or a cancel.
    pub fn wait(&self) {
        // SAFETY: the table and the row number may be NULL; they only appear in messages.
        unsafe {
            if self.speculative_token != 0 {
                pg_sys::SpeculativeInsertionWait(self.transaction, self.speculative_token);
            } else {
                let none = pg_sys::XLTW_Oper::XLTW_None;
                pg_sys::XactLockTableWait(self.transaction, null_mut(), null_mut(), none);
            }
        }
    }
}

/// Searches run in rounds. A round covers the rows added since the last one started, because a search can miss rows
/// that are added while it runs.
impl SearchedTable {
    /// Returns whether a search of this table can also be used for `other`.
    pub fn is_searched_as(&self, other: &Self) -> bool {
        // SAFETY: both indexes are open, and of our access method.
        self.scope == other.scope
            && unsafe { lookup::make_same_keys(other.index.as_ptr(), self.index.as_ptr()) }
    }

    /// Begins a round over the rows added since the last one began.
    pub fn begin_round(&self) {
        self.from.set(self.next.get());
        // SAFETY: the index is open, and of our access method.
        self.next.set(unsafe { next_number(self.index.as_ptr()) });
    }

    /// Returns the number of rows added to the index between the starts of the last two rounds.
    pub fn added(&self) -> u64 {
        self.next.get() - self.from.get()
    }

    /// Returns the search for the rows within the bound of `version`, restricted to the scope of `version` by the scope
    /// columns of the index. If a scope column is NULL, the search finds rows of every scope.
    pub fn search(&self, version: &RowVersion<'_>) -> KeySearch {
        let (_, strategy) = version.rule.kind.operator(0);
        // The access method needs no comparison function.
        let scan_key = |column, strategy, argument| pg_sys::ScanKeyData {
            sk_attno: column,
            sk_strategy: strategy,
            sk_argument: argument,
            ..Default::default()
        };
        let scope = self.scope.iter().zip(1..);
        let scope = scope
            .filter_map(|(&place, column)| Some(scan_key(column, EQUAL, version.scope(place)?)));
        let ball = scan_key(self.scope.len() as i16 + 1, strategy, version.ball);
        let keys: Vec<_> = scope.chain([ball]).collect();
        // SAFETY: the index is open, and of our access method, which the keys are for.
        unsafe { RowKeys::of_index(self.index.as_ptr()).search(&keys).0 }
    }

    /// Calls `visit` for every live row numbered `from` or above that `search` finds, committed or not, until `visit`
    /// returns false. `visit` also gets the transaction in progress that wrote the row, if any. It must recheck the
    /// row, because the index returns false positives.
    pub fn for_each_live(
        &self,
        search: &KeySearch,
        mut from: u64,
        visit: &mut dyn FnMut(*mut pg_sys::TupleTableSlot, Option<Pending>) -> bool,
    ) {
        // A row that is updated during the search can be missed: its old version is dead when it is visited, and its
        // new one was added to the index after the search. So if a candidate is dead, the rows added since that search
        // began are searched, too.
        let mut dirty = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        // SAFETY: the table is open; after an ERROR the fetch ends with the statement.
        let mut versions = unsafe { Versions::open(self.table.as_ptr(), &raw mut dirty) };
        let mut visit = |slot: _, dirty: &_| visit(slot, Pending::from_snapshot(dirty));
        let mut is_complete = false;
        while !is_complete {
            is_complete = true;
            let mut visit = |tid| {
                let goes_on = versions.visit(tid, &mut visit);
                is_complete = goes_on == Some(false) || is_complete && goes_on.is_some();
                goes_on != Some(false)
            };
            // SAFETY: the index is open, and of our access method.
            from = unsafe { for_each_candidate(self.index.as_ptr(), search, from, &mut visit) };
        }
        versions.close();
    }
}
