//! The check of one row: is there another one near it?

use crate::guard::columns::GuardColumns;
use crate::guard::locks::{Standing, standing};
use crate::guard::options::Notes;
use crate::guard::rejection::Rejection;
use crate::guard::row::Row;
use crate::guard::search::{Change, OpenTable, Own, Pending};
use crate::guard::slot::{Slot, Tid, get, have_same_bits, is_of_same_command, tid};
use crate::guard::table::Rule;
use crate::guard::version::{Nearness, RowVersion};
use crate::pg::error::OrRaise;
use crate::pg::names;
use crate::pg::statement::server_text;
use neardup::memory::Grow;
use pgrx::pg_sys;
use std::ffi::CString;

/// A guard with the tables that it searches.
pub struct Guard {
    pub rule: Rule,
    pub tables: Vec<OpenTable>,
}

/// The outcome of a check.
pub enum Verdict {
    Clear,
    /// A row whose fate is open until that transaction ends.
    Wait(Pending),
    /// Another row is near; more about it has to be known while the gate is open.
    Again,
    Rejected(Rejection),
}

/// A row near the one that is checked.
pub struct Near<'t> {
    /// The number of its table among those that the guard searches.
    pub number: usize,
    pub table: &'t OpenTable,
    pub slot: *mut pg_sys::TupleTableSlot,
    pub nearness: Nearness,
    /// The transaction in progress that decides whether it is there.
    pub pending: Option<Pending>,
}

/// The state that the checks of all rows of a root share.
#[derive(Default)]
pub struct Round {
    pub root: pg_sys::Oid,
    /// Nobody else passes, and nothing that takes locks may be done.
    pub is_gated: bool,
    /// All rows are looked at, not only the rows added since the round before.
    pub is_full: bool,
    /// The row that is checked has met a transaction in progress.
    pub is_open: bool,
    /// The transactions that have similar rows and will pass later, or whose checks find the row.
    pub later: Vec<Pending>,
}

impl Round {
    /// Returns the transaction that decides whether a row counts, if the running one has to wait for it;
    /// None otherwise.
    pub fn obstacle(&mut self, row: &Row<'_>, pending: Pending) -> Option<Pending> {
        self.is_open = true;
        if pending.change == Change::Deleted {
            return Some(pending);
        }
        let will_find_ours = match standing(self.root, pending.transaction) {
            Standing::WillPass => row.is_indexed,
            Standing::Silent => pending.change == Change::InsertedLater,
            Standing::Passed | Standing::Ended => false,
        };
        if !will_find_ours {
            return Some(pending);
        }
        let is_same = |other: &Pending| other.transaction == pending.transaction;
        if !self.later.iter().any(is_same) {
            self.later.push(pending);
        }
        None
    }
}

impl Guard {
    /// Returns the notes of a guard that lets rows in.
    pub fn notes(&self) -> Option<&Notes> {
        self.rule.options.notes.as_ref()
    }

    /// Checks a row against the rows that the round looks at.
    ///
    /// # Safety
    /// The row is one of a table under the guard's root. A snapshot is active.
    pub unsafe fn check(&self, row: &Row<'_>, round: &mut Round) -> Verdict {
        // SAFETY: vouched for by the caller.
        unsafe {
            // Nobody has to look again: a search that does not find the old version, dead by now,
            // goes on to the new one.
            let columns = &row.source.columns;
            if row.old.is_some_and(|old| columns.are_same(old, row.slot)) {
                return Verdict::Clear;
            }
            let version = |slot| RowVersion::new(&self.rule, columns, slot);
            let Some(new) = version(row.slot) else {
                return Verdict::Clear;
            };
            let old = row.old.and_then(version);
            self.search(row, &new, old.as_ref(), round)
        }
    }

    /// Looks for a row that the new version is near to and the old one was not.
    ///
    /// # Safety
    /// As for [`Self::check`]; the versions are the row's.
    unsafe fn search(
        &self,
        row: &Row<'_>,
        new: &RowVersion<'_>,
        old: Option<&RowVersion<'_>>,
        round: &mut Round,
    ) -> Verdict {
        let mut undecided = None;
        // A near-duplicate that the same statement writes is rolled back with the row: it is named
        // only where there is no other.
        let mut companion = None;
        let mut duplicate = None;
        let mut familiar: Option<(usize, Vec<Tid>)> = None;
        let is_full = round.is_full;
        let mut visit = |near: Near<'_>| {
            // SAFETY: the slot holds a row of the table; the old version is the row's.
            unsafe {
                if let Some(old) = old {
                    familiar.take_if(|(number, _)| *number != near.number);
                    let (_, known) =
                        familiar.get_or_insert_with(|| (near.number, near_before(near.table, old)));
                    if known.binary_search(&tid(near.slot)).is_ok() {
                        return true;
                    }
                }
                if let Some(pending) = near.pending {
                    undecided = undecided.or_else(|| round.obstacle(row, pending));
                    return true;
                }
                let describe = |origin| match round.is_gated {
                    true => None,
                    false => describe(row, &near, origin),
                };
                if is_of_same_command(row.slot, near.slot) {
                    companion.get_or_insert_with(|| describe(", which the same statement writes"));
                    return true;
                }
                duplicate = Some(describe(""));
                false
            }
        };
        // SAFETY: vouched for by the caller.
        unsafe { self.for_each_near(row, new, is_full, &mut visit) };
        match duplicate.or(companion) {
            Some(_) if round.is_gated => Verdict::Again,
            Some(detail) => Verdict::Rejected(Rejection::new(row.source, detail.as_deref())),
            None => undecided.map_or(Verdict::Clear, Verdict::Wait),
        }
    }

    /// Visits the other rows that a version of the row is near to, until `visit` returns false: all, or
    /// only the rows that a round has to look at.
    ///
    /// # Safety
    /// As for [`Self::check`]; the version is the row's.
    pub unsafe fn for_each_near(
        &self,
        row: &Row<'_>,
        version: &RowVersion<'_>,
        is_full: bool,
        visit: &mut dyn FnMut(Near<'_>) -> bool,
    ) {
        let mut goes_on = true;
        let mut known = None;
        for (number, table) in self.tables.iter().enumerate() {
            let is_in_reach = is_full || table.is_behind();
            if !is_in_reach || !table.table.span.meets(version.span) {
                continue;
            }
            known.take_if(|(like, _)| *like != table.like);
            let (_, search) = known.get_or_insert_with(|| (table.like, table.search(version)));
            // SAFETY: vouched for by the caller.
            unsafe {
                let own = (row.source.table.oid() == table.table.oid).then(|| Own {
                    tid: tid(row.slot),
                    is_indexed: row.is_indexed,
                });
                let from = if is_full { 0 } else { table.from() };
                table.for_each_live(search, own, from, &mut |slot, pending| {
                    if let Some(nearness) = version.nearness(&table.table.columns, slot) {
                        goes_on = visit(Near {
                            number,
                            table,
                            slot,
                            nearness,
                            pending,
                        });
                    }
                    goes_on
                });
            }
            if !goes_on {
                return;
            }
        }
    }
}

/// Returns the places of the rows that the old version was near to when the statement began, ascending.
///
/// # Safety
/// The version is one of a row in the table that is searched. A snapshot is active.
unsafe fn near_before(table: &OpenTable, old: &RowVersion<'_>) -> Vec<Tid> {
    let mut tids = Vec::new();
    // SAFETY: vouched for by the caller.
    unsafe {
        let newest = Slot::new(table.relation());
        table.for_each_seen(
            &table.search(old),
            pg_sys::GetActiveSnapshot(),
            &mut |found| {
                if old.nearness(&table.table.columns, found).is_some()
                    && newest.fetch_newest(table.relation(), tid(found))
                {
                    tids.try_push(tid(newest.as_ptr())).or_raise();
                }
            },
        );
    }
    tids.sort_unstable();
    tids
}

/// Returns the DETAIL of a rejection: both rows, their similarity, and the `origin` of the row found; None
/// if the role may not see that row.
///
/// # Safety
/// The slots hold rows of their tables.
unsafe fn describe(row: &Row<'_>, near: &Near<'_>, origin: &str) -> Option<CString> {
    let (table, nearness) = (&near.table.table, near.nearness);
    if table.hides_rows() {
        return None;
    }
    // SAFETY: vouched for by the caller; the row is one of its table.
    unsafe {
        let theirs = table.columns.key(near.slot)?;
        let ours = row.source.columns.key(row.slot);
        let mut detail = match &ours {
            Some(key) => [&b"Row "[..], key.as_bytes()].concat(),
            None => b"The row".to_vec(),
        };
        detail.extend_from_slice(format!(" {nearness} row ").as_bytes());
        detail.extend_from_slice(theirs.as_bytes());
        if row.source.table.oid() != table.oid {
            let table = server_text(&names::relation(table.oid));
            detail.extend_from_slice(b" of table ");
            detail.extend_from_slice(table.to_bytes());
        }
        detail.extend_from_slice(origin.as_bytes());
        detail.push(b'.');
        CString::new(detail).ok()
    }
}

impl GuardColumns {
    /// Returns whether two versions of a row have the same values, bit for bit, in all columns that the
    /// guard reads. An UPDATE stores a long document anew even where it sets the same one.
    ///
    /// # Safety
    /// The slots hold rows of a table with these columns.
    pub unsafe fn are_same(
        &self,
        old: *mut pg_sys::TupleTableSlot,
        new: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: vouched for by the caller.
        unsafe {
            self.window
                .is_none_or(|window| window.around(old) == window.around(new))
                && self
                    .scope
                    .iter()
                    .all(|column| column.same(get(old, column.number), get(new, column.number)))
                && have_same_bits(old, new, &[self.value])
        }
    }
}
