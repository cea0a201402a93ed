//! The rows of a statement pass, all together.
//!
//! **The rule.** A guarded table, or the partitioned one at the root of its partitions, has a gate. Before a statement
//! ends, its transaction looks for rows that are similar to its own, closes the gate, makes sure that the answer still
//! holds, announces that it *has passed*, and opens the gate. Of similar rows of other transactions
//! - a committed one rejects the statement;
//! - one of a transaction in progress that has passed is waited for: that one came first;
//! - one of a transaction in progress that *will pass* is left to that transaction, which finds our row;
//! - any other one in progress has not announced anything yet: an UPDATE, and an INSERT without the trigger that
//!   announces before the row enters an index, do so only when their triggers for the row fire. Our transaction has
//!   announced that it will pass, waits, and is found by the other one meanwhile, which leaves our row to us;
//! - one that a transaction in progress deletes or changes is waited for; how that ends decides if it counts.
//!
//! A transaction announces this by a lock (see `locks`), which others ask for and never take.
//!
//! **No copy is admitted.** Let two transactions A and B commit similar rows a and b, each by a statement that was
//! checked, and let A's statement go through the gate first. Then a was in its table and its index when B closed the
//! gate, and its table was among those that B looks at: B lists partitions anew with the gate closed, and begins again
//! if they are others. B has looked at every row number that was drawn before that: the first look is at all numbers,
//! each later one at the numbers drawn since the look before it began, the last one with the gate closed. A later look
//! searches the new numbers for each of B's rows, or searches for B's rows near each new one, whichever are fewer; both
//! find the same pairs, since B's rows were all there before its first look. So B has found a. If a was in progress
//! when B found it with the gate closed, A had passed, and B waited. If B found it before that, B asked again with the
//! gate closed whether the transactions that it had left behind have passed or ended meanwhile, and began again if one
//! had: with a look at everything for the rows that had met such a transaction, and for the others from where it was,
//! since nothing but rows with later numbers can change their answers. The lock is asked for first, and after that
//! whether the transaction is in progress: a transaction releases its locks after it has ceased to be in progress, so
//! one that is in progress now and did not hold the lock before had not passed. The other way round, one that commits
//! in between would look as if it had not. A transaction that has passed with one row or statement counts as passed
//! with those that follow: transactions that find their rows wait, and waiting is always safe. A subtransaction that is
//! rolled back releases its locks, with its rows.
//!
//! Row numbers can be relied upon because the locks on all tables and indexes that are searched are kept: no TRUNCATE
//! and no REINDEX starts numbering anew between the first look and the last. An UPDATE that makes no index entry draws
//! no number: others might not look again. So the row that it changes is not left to transactions that will pass; those
//! are waited for.
//!
//! **An UPDATE may keep a near pair, never make one.** A row N near the new version of ours does not count if the old
//! version was near N as N is now, or, where the statement has changed N too, near N's old version. Both are compared
//! directly, at every look. Where N changes between two looks, either it gets another number and is compared anew, or
//! its transaction has found our row and waits for us, by the rule above.
//!
//! **A row that does not satisfy the guard's condition** is neither checked nor similar to any. An UPDATE by which a row
//! comes to satisfy it makes a version like any other that is near rows which the old one was not near: it may be
//! anywhere in a HOT chain, whose live versions are all looked at. One by which it ceases leaves a version in progress of
//! being deleted, which is waited for.
//!
//! **The gate is closed for a moment only.** Looks with the gate open go on until few rows are left, and the work that
//! is left grows with what others have added since, not with the rows of the statement.
//!
//! **Single-statement INSERT and COPY transactions that meet one guard do not deadlock**, whatever their rows and
//! partitions. Such a transaction announces that it will pass before it inserts its first row, and passing is the last
//! thing that it does. While it waits for another one it has not passed, so none of the others waits for it. One that
//! has passed waits for nobody. While a transaction keeps the gate closed it waits for nothing: it takes only its own
//! lock, and for a moment those of system catalogs, of an index on exceptions, and of a TOAST table, which only a
//! transaction of several statements can withhold, by its name. Waits for equal keys are PostgreSQL's own, and come before: a transaction that
//! waits for a key has not passed either. A COPY whose rows pass one by one (see `places`) has passed with the first
//! row when it waits with the next; but only one such transaction at a time passes a root, the others have not begun
//! to pass, and whoever else has passed waits for nobody.
//!
//! A transaction of several statements has passed with the first one when it waits with the second, and one that meets
//! two guards when it waits at the second: those can deadlock, and UPDATEs by their row locks.

use crate::guard::columns::GuardColumns;
use crate::guard::exceptions::Exceptions;
use crate::guard::locks::{Gate, PassState, announce, pass_state};
use crate::guard::looking::Guard;
use crate::guard::notes::EarlierRow;
use crate::guard::options::GuardOptions;
use crate::guard::rejection::Rejection;
use crate::guard::row::{Place, Row, Source, with_row};
use crate::guard::search::Pending;
use crate::guard::slot::Tid;
use crate::guard::table::{PartitionedTable, Rule, SearchedTable};
use crate::guard::triggers;
use crate::guard::version::RowVersion;
use crate::index::am::hold;
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::relation::Relation;
use crate::pg::value::in_memory_of_its_own;
use neardup::memory::{Grow, collected, filled};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::mem::take;

/// Maximum number of looks with the gate open. Each is shorter than the last one, unless other sessions are faster.
const MOST_LOOKS: usize = 8;

/// Maximum number of added rows that are left to the look with the gate closed.
const FEW: u64 = 16;

/// Lets rows pass, root by root. Returns the first rejection.
///
/// # Safety
/// The running statement wrote the rows at the places, and a snapshot is active.
pub unsafe fn pass(places: &[Place]) -> Option<Rejection> {
    let mut roots = collected(places.iter().map(|place| place.root.to_u32())).or_raise();
    roots.sort_unstable();
    roots.dedup();
    roots.into_iter().find_map(|root| {
        let (mut passing, attempt) = Passing::new(root.into(), places);
        passing.pass(attempt)
    })
}

/// The rows of a root and the guards that check them.
pub struct Passing<'p> {
    pub root: pg_sys::Oid,
    pub places: &'p [Place],
    pub sources: Vec<Source>,
    pub guards: Vec<Guard>,
    /// The rows that have to pass, as (guard, table, newest version, place number), sorted.
    pub order: Vec<(usize, u32, Tid, usize)>,
}

/// State of a row while it passes.
#[derive(Clone, Default)]
pub struct RowState {
    /// False if nothing that the guard reads has changed, or if the row is gone or does not satisfy the condition.
    has_to_pass: bool,
    /// True if the statement deleted the row or changed what the guard reads.
    pub is_replaced: bool,
    /// True if the row has to be compared with all others.
    pub is_open: bool,
    /// True if it is similar to a row of a transaction in progress.
    has_met_pending: bool,
    /// The earlier rows that it is noted with, the most similar first.
    pub earlier: Vec<EarlierRow>,
}

/// State of all rows in an attempt to pass.
pub struct Attempt {
    pub rows: Vec<RowState>,
    /// True once all rows have been compared with all others.
    has_looked: bool,
    /// Transactions with similar rows that will pass later and find ours.
    later: Vec<Pending>,
    /// A transaction that must end before the rows can pass.
    wait: Option<Pending>,
}

/// The outcome of an attempt to pass.
enum Verdict {
    Passed,
    /// The result depends on whether that transaction commits.
    Wait(Pending),
    /// Another look with the gate open is necessary.
    Again,
    Rejected(Rejection),
}

impl Attempt {
    /// Decides what to do about a similar row of a transaction in progress: wait for that transaction, or leave the
    /// check to it.
    pub fn meet(&mut self, root: pg_sys::Oid, (number, row): (usize, &Row<'_>), pending: Pending) {
        self.rows[number].has_met_pending = true;
        let state = pass_state(root, pending.transaction);
        let will_find_ours = !pending.deletes && row.is_indexed && state == PassState::WillPass;
        let is_same = |other: &Pending| other.transaction == pending.transaction;
        if !will_find_ours {
            self.wait.get_or_insert(pending);
        } else if !self.later.iter().any(is_same) {
            self.later.push(pending);
        }
    }
}

impl<'p> Passing<'p> {
    /// # Safety
    /// As for [`pass`].
    unsafe fn new(root: pg_sys::Oid, places: &'p [Place]) -> (Self, Attempt) {
        let mut passing = Self {
            root,
            places,
            sources: Vec::new(),
            guards: Vec::new(),
            order: Vec::new(),
        };
        let mut rows = filled(RowState::default(), places.len()).or_raise();
        for (number, (place, row)) in places.iter().zip(&mut rows).enumerate() {
            check_interrupts();
            if place.root == root {
                if passing.source(place).is_none() {
                    passing.add_source(place);
                }
                in_memory_of_its_own(|| passing.add_row(number, row));
            }
        }
        passing.order.sort_unstable();
        let attempt = Attempt {
            rows,
            has_looked: false,
            later: Vec::new(),
            wait: None,
        };
        (passing, attempt)
    }

    pub fn source(&self, place: &Place) -> Option<&Source> {
        let mut sources = self.sources.iter();
        sources.find(|source| source.trigger == place.trigger)
    }

    /// Adds the table and trigger of a place, unless the trigger no longer exists.
    ///
    /// # Errors
    /// ERROR for options that do not fit the table.
    fn add_source(&mut self, place: &Place) {
        let table = Relation::open_table(place.table);
        // SAFETY: the table is open; its triggers are those that it has now.
        unsafe {
            let mut triggers = table.triggers().iter();
            let Some(trigger) = triggers.find(|own| own.tgoid == place.trigger) else {
                return;
            };
            // Copied first, since reading the catalog may invalidate the trigger.
            let (name, function) = (CStr::from_ptr(trigger.tgname).to_owned(), trigger.tgfoid);
            let options = match place.new {
                Some(_) => Some(GuardOptions::from_trigger(trigger, &table)),
                None => triggers::helped(&table, trigger),
            };
            let Some(options) = options else { return };
            let columns = GuardColumns::of(&table, &options);
            let known = |guard: &Guard| guard.rule.options == options;
            let guard = self.guards.iter().position(known).unwrap_or_else(|| {
                self.guards.push(Guard {
                    exceptions: options
                        .exceptions
                        .map(|oid| Exceptions::open(oid, &table, &columns)),
                    rule: Rule::new(&table, options, function),
                    reach: None,
                    tables: Vec::new(),
                    partitioned: Vec::new(),
                });
                self.guards.len() - 1
            });
            self.sources.push(Source {
                table,
                trigger: place.trigger,
                name,
                columns,
                guard,
            });
        }
    }

    /// Sets whether the row at place `number` was changed, and whether it has to pass.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn add_row(&mut self, number: usize, row: &mut RowState) {
        let place = &self.places[number];
        let Some(source) = self.source(place) else {
            return;
        };
        let (number_of_guard, table) = (source.guard, source.table.oid());
        let rule = &self.guards[number_of_guard].rule;
        let newest = with_row(place, source, |row| {
            let columns = &source.columns;
            let is_kept = row.old.is_some_and(|old| columns.are_same(old, row.slot));
            let version = (!is_kept).then(|| RowVersion::new(rule, columns, row.slot));
            (
                is_kept,
                version.flatten().map(|version| (row.tid, version.span)),
            )
        });
        let is_kept = newest.is_some_and(|(is_kept, _)| is_kept);
        row.is_replaced = place.old.is_some() && !is_kept;
        if let Some((tid, span)) = newest.and_then(|(_, version)| version) {
            (row.has_to_pass, row.is_open) = (true, true);
            let entry = (number_of_guard, table.to_u32(), tid, number);
            self.order.try_push(entry).or_raise();
            let reach = &mut self.guards[number_of_guard].reach;
            *reach = Some(reach.map_or(span, |reach| reach.with(span)));
        }
    }

    /// Returns the place number of a row that has to pass, given its newest version.
    pub fn number(&self, guard: usize, table: pg_sys::Oid, tid: Tid) -> Option<usize> {
        let row = (guard, table.to_u32(), tid);
        let is_before = |&(guard, table, tid, _): &_| (guard, table, tid) < row;
        let &(guard, table, tid, number) = self.order.get(self.order.partition_point(is_before))?;
        ((guard, table, tid) == row).then_some(number)
    }

    /// Opens the tables that can contain rows near those that have to pass.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if a table has no usable index.
    fn open_tables(&mut self) {
        for guard in &mut self.guards {
            guard.tables.clear();
            let Some(reach) = guard.reach else { continue };
            if let Some(notes) = guard.notes().filter(|_| guard.exceptions.is_some()) {
                // A transaction that inserts an exception waits for this lock, and then removes the notes.
                // SAFETY: a
                // transaction is running.
                unsafe { pg_sys::LockRelationOid(notes.table, pg_sys::RowExclusiveLock as i32) };
            }
            let (tables, partitioned) = guard.rule.tables(self.root, reach);
            guard.partitioned = partitioned;
            for mut table in tables {
                if guard.rule.options.notes.is_some() {
                    // Locking its rows needs this lock.
                    let mode = pg_sys::RowShareLock as i32;
                    // SAFETY: a transaction is running.
                    unsafe { pg_sys::LockRelationOid(table.oid(), mode) };
                }
                table.check_index(&guard.rule, "near_dup_guard", 0);
                let mut others = guard.tables.iter();
                let like = others.position(|other| table.is_searched_as(other));
                table.like = like.unwrap_or(guard.tables.len());
                guard.tables.push(table);
            }
        }
    }

    /// Returns whether partitions were attached or detached since the tables were opened.
    fn has_other_tables(&self) -> bool {
        // SAFETY: a transaction is running.
        unsafe { pg_sys::AcceptInvalidationMessages() };
        let mut tables = self.guards.iter().flat_map(|guard| &guard.partitioned);
        tables.any(PartitionedTable::has_changed)
    }

    /// Searches and waits until the rows have passed. Returns the first rejection.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn pass(&mut self, mut attempt: Attempt) -> Option<Rejection> {
        self.remove_notes(&attempt.rows);
        if self.order.is_empty() {
            return None;
        }
        self.open_tables();
        loop {
            match self.try_to_pass(&mut attempt) {
                Verdict::Passed => {
                    self.add_notes(&attempt.rows);
                    return None;
                }
                Verdict::Rejected(rejection) => return Some(rejection),
                Verdict::Wait(pending) => pending.wait(),
                Verdict::Again => {}
            }
            if self.has_other_tables() {
                self.open_tables();
                attempt.has_looked = false;
                attempt
                    .rows
                    .iter_mut()
                    .for_each(|row| row.is_open = row.has_to_pass);
            }
        }
    }

    /// Looks at all rows with the gate open, then at rows added meanwhile until these are few, and at the rest with the
    /// gate closed.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn try_to_pass(&self, attempt: &mut Attempt) -> Verdict {
        attempt.later.clear();
        attempt.wait = None;
        for row in &mut attempt.rows {
            row.is_open |= take(&mut row.has_met_pending);
        }
        for _ in 0..MOST_LOOKS {
            let added = self.begin_round();
            if attempt.has_looked && added > 0 {
                self.look_at_added(attempt);
            }
            attempt.has_looked = true;
            for number in 0..attempt.rows.len() {
                check_interrupts();
                if take(&mut attempt.rows[number].is_open)
                    && let Some(rejection) = self.look_at_all(attempt, number)
                {
                    return Verdict::Rejected(rejection);
                }
            }
            if let Some(pending) = attempt.wait {
                return Verdict::Wait(pending);
            }
            if added <= FEW {
                break;
            }
        }
        if !self.lock_earlier(&mut attempt.rows) {
            return Verdict::Again;
        }
        hold::point("guard_has_searched");
        let gate = Gate::close(self.root);
        let verdict = self.decide(attempt);
        if let Verdict::Passed = verdict {
            announce(self.root, PassState::Passed);
        }
        gate.open();
        verdict
    }

    /// Decides whether the rows pass. The gate is closed.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn decide(&self, attempt: &mut Attempt) -> Verdict {
        let has_moved = |other: &&Pending| {
            let state = pass_state(self.root, other.transaction);
            matches!(state, PassState::Passed | PassState::Ended)
        };
        if let Some(&other) = attempt.later.iter().find(has_moved) {
            return Verdict::Wait(other);
        }
        if self.has_other_tables() {
            return Verdict::Again;
        }
        let has_found = self.begin_round() > 0 && self.look_at_added(attempt);
        match attempt.wait {
            Some(pending) => Verdict::Wait(pending),
            None if has_found => Verdict::Again,
            None => Verdict::Passed,
        }
    }

    /// Begins a round in all tables. Returns the number of rows added since the last round.
    fn begin_round(&self) -> u64 {
        let tables = self.guards.iter().flat_map(|guard| &guard.tables);
        tables
            .inspect(|table| table.begin_round())
            .map(SearchedTable::added)
            .sum()
    }
}
