//! Lets the rows of a statement pass, all together.
//!
//! **The rule.** Every guarded table has a gate; partitions share the gate of the partitioned table at their root.
//! Before a statement ends, its transaction looks for rows that are similar to its own, closes the gate, makes sure
//! that the answer still holds, announces that it *has passed*, and opens the gate. The effect of a similar row of
//! another transaction depends on that transaction:
//! - If it has committed, the row rejects the statement.
//! - If it is in progress and has passed, we wait for it, because it came first.
//! - If it is in progress and *will pass*, we leave the check to it: it finds our row.
//! - If it is in progress and has not announced anything yet, we wait for it. An UPDATE, and an INSERT without the
//!   trigger that announces before the row enters an index, announce only when their triggers for the row fire. We have
//!   announced that we will pass, so the other transaction finds our row while we wait, and leaves the check to us.
//! - If any transaction in progress deletes or changes the row, we wait for that one; how it ends decides whether the
//!   row counts.
//!
//! A transaction announces its state by a lock (see `locks`). Others check whether it is held, and never take it.
//!
//! **No copy is admitted.** Suppose that transactions A and B commit similar rows a and b, each by a statement that was
//! checked, and that A's statement went through the gate first. Then a was in its table and its index when B closed the
//! gate, and its table was among those that B looks at: B lists partitions again with the gate closed, and starts over
//! if they have changed, or fails if a table of its own rows is no longer among them. If A has attached a's table
//! itself, B does not list it. Then A has taken a lock before it looked, until it ends; B waits for that lock before it
//! lists partitions, and starts over if somebody holds it when the gate is closed: B tries to take the lock first, and
//! lists after that, since A may commit in between. B has looked at every row number that was drawn before that: the
//! first look covers all numbers, each later one the numbers drawn since the look before it began, and the last one is
//! made with the gate closed. A later look searches the new numbers for each of B's rows, or searches for B's rows near
//! each new one, whichever are fewer; both find the same pairs, since B's rows were all there before its first look. A
//! row of B's near a new one is compared with all others again; if it was found with the gate closed, B starts over. So
//! B has found a. If A was in progress then and had passed, B waited. If A had not passed, B checked again, with the
//! gate closed, whether the transactions to which it had left the check have passed or ended in the meantime, and
//! started over if one had: with a look at everything for the rows that had met such a transaction, and from where it
//! had stopped for the others, since only rows with later numbers can change their answers. B checks the lock first,
//! and after that whether the transaction is in progress. A transaction releases its locks after it has ceased to be in
//! progress, so one that is in progress now and did not hold the lock before had not passed. In the opposite order, one
//! that commits in between would look as if it had not passed. A transaction that has passed with one row, guard or
//! statement counts as having passed with the following ones: transactions that find their rows wait, and waiting is
//! always safe. A subtransaction that is rolled back releases its locks together with its rows.
//!
//! Row numbers are reliable because the locks on all tables and indexes that are searched are kept: no TRUNCATE or
//! REINDEX restarts the numbering between the first look and the last. An UPDATE that makes no index entry draws no
//! number, so others might not look again. Therefore the check of the row that it changes is not left to transactions
//! that will pass; we wait for those.
//!
//! **An UPDATE may keep a near pair, but never make one.** A row N near the new version of our row does not count if
//! the old version was near N as N is now or, if the statement has changed N too, near N's old version. Both are
//! compared directly, at every look. If N changes between two looks, either it gets another number and is compared
//! again, or its transaction has found our row and waits for us, by the rule above.
//!
//! **A row that does not satisfy the guard's condition** is not checked, and is similar to no row. When an UPDATE makes
//! a row satisfy it, the new version is treated like any other that is near rows that the old version was not near: it
//! may be anywhere in a HOT chain, and all live versions of a chain are looked at. When an UPDATE makes a row cease to
//! satisfy it, the old version is being deleted, and others wait for that.
//!
//! **The gate is closed only for a moment.** Looks with the gate open continue until few added rows are left, and the
//! remaining work grows with the number of rows that others have added since, not with the number of rows of the
//! statement.
//!
//! **Single-statement INSERT and COPY transactions that meet one guard do not deadlock**, whatever their rows and
//! partitions. Such a transaction announces that it will pass before it inserts its first row, and passing is the last
//! thing that it does. While it waits for another one it has not passed, so none of the others waits for it. One that
//! has passed waits for nobody. While a transaction keeps the gate closed it waits for nothing: it takes only its own
//! lock and, for a moment, locks on system catalogs, an index on exceptions, and a TOAST table, which only a
//! transaction of several statements can withhold, by naming it. Waits for equal keys are PostgreSQL's own, and come
//! earlier: a transaction that waits for a key has not passed either. A COPY whose rows pass one by one (see `places`)
//! has passed with its first row when it waits with the next. But only one such transaction at a time passes a root,
//! the others have not begun to pass, and anyone else who has passed waits for nobody.
//!
//! A transaction of several statements has passed with the first one when it waits with the second, and one that meets
//! two guards has passed the first when it waits at the second. Those can deadlock, and so can UPDATEs, by their row
//! locks.

use crate::guard::columns::GuardColumns;
use crate::guard::found::EarlierRow;
use crate::guard::locks::{
    PassState, announce, close_gate, hide_partitions, open_gate, pass_state, sees_partitions,
};
use crate::guard::options::{GuardOptions, guard_of_helper};
use crate::guard::pair_table::PairTable;
use crate::guard::rejection::Rejection;
use crate::guard::row::{Row, RowVersion, Source, WrittenRow};
use crate::guard::search::Pending;
use crate::guard::table::{Rule, SearchedTable, foreign};
use crate::guard::window::Span;
use crate::index::am::hold;
use crate::pg::prelude::*;
use crate::pg::slot::{RowPlace, row_place};
use crate::pg::value::in_memory_of_its_own;
use rustc_hash::FxHashSet;
use std::ffi::CStr;
use std::mem::take;

/// Maximum number of looks with the gate open. Each is shorter than the last one, unless other sessions add rows
/// faster.
const MOST_LOOKS: usize = 8;

/// A look with the gate open is the last one if it has searched for at most this many rows.
const FEW: u64 = 16;

/// Lets the `written` rows pass, guard by guard, in the order of their roots. Returns the first rejection, or None if
/// all have passed.
///
/// # Safety
/// The running statement wrote these rows, and a snapshot is active.
pub unsafe fn pass(written: &[WrittenRow]) -> Option<Rejection> {
    let mut guards: Vec<Passing<'_>> = Vec::new();
    let mut known = FxHashSet::default();
    for row in written {
        check_interrupts();
        known.try_reserve(1).or_raise();
        if known.insert((row.table, row.trigger)) {
            Passing::add_source(&mut guards, written, row);
        }
    }
    guards.sort_by_key(|guard| guard.root.to_u32());
    guards.into_iter().find_map(|guard| guard.pass())
}

/// A guard and the rows that it checks.
pub struct Passing<'p> {
    pub root: pg_sys::Oid,
    pub rule: Rule,
    pub exceptions: Option<PairTable>,
    pub written: &'p [WrittenRow],
    pub sources: Vec<Source>,
    /// The rows that have to pass: the place of the newest version and the row number in the statement, sorted.
    pub order: Vec<(RowPlace, usize)>,
    /// The time span of rows that can be near the rows of `order`.
    reach: Span,
    /// The tables that can contain rows near the rows of `order`.
    pub tables: Vec<SearchedTable>,
    /// The partitioned tables above `tables`, each with its partitions at the time of listing.
    partitioned: Vec<(Relation, Vec<pg_sys::Oid>)>,
}

/// State of a row while it passes.
#[derive(Clone, Default)]
pub struct RowState {
    /// True if the row must be compared with all others.
    pub is_open: bool,
    /// True if the row is similar to a row of a transaction in progress.
    has_met_pending: bool,
    /// The earlier rows that the row is noted with, most similar first.
    pub earlier: Vec<EarlierRow>,
}

/// An attempt to pass: the state of each row by its number in the statement, and the transactions that it met.
pub struct Attempt {
    pub rows: Vec<RowState>,
    /// Transactions with similar rows that will pass later and find ours.
    later: Vec<Pending>,
    /// A transaction that must end before the rows can pass.
    wait: Option<Pending>,
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
    /// Adds the table and trigger of `row` to its guard, which is created if it is new. Does nothing if the trigger
    /// no longer exists.
    ///
    /// # Errors
    /// ERROR for options that do not fit the table.
    fn add_source(guards: &mut Vec<Self>, written: &'p [WrittenRow], row: &WrittenRow) {
        let table = Relation::open_table(row.table);
        if table.kind() == pg_sys::RELKIND_FOREIGN_TABLE {
            foreign(row.table, None);
        }
        // SAFETY: the table is open; its triggers are those that it has now.
        unsafe {
            let mut triggers = table.triggers().iter();
            let Some(trigger) = triggers.find(|own| own.tgoid == row.trigger) else {
                return;
            };
            // Copied first, since reading the catalog may invalidate the trigger.
            let (name, function) = (CStr::from_ptr(trigger.tgname).to_owned(), trigger.tgfoid);
            let options = match row.new {
                Some(_) => Some(GuardOptions::from_trigger(trigger, &table)),
                None => guard_of_helper(&table, trigger),
            };
            let Some(options) = options else { return };
            let source = Source {
                columns: GuardColumns::of(&table, &options),
                table,
                trigger: row.trigger,
                name,
            };
            let known = |guard: &Self| guard.root == row.root && guard.rule.options == options;
            let number = guards.iter().position(known).unwrap_or_else(|| {
                let exceptions = options.exceptions;
                guards.push(Self {
                    root: row.root,
                    exceptions: exceptions.map(|oid| source.exceptions(oid)),
                    rule: Rule::new(&source.table, options, function),
                    written,
                    sources: Vec::new(),
                    order: Vec::new(),
                    reach: Span::NEVER,
                    tables: Vec::new(),
                    partitioned: Vec::new(),
                });
                guards.len() - 1
            });
            guards[number].sources.push(source);
        }
    }

    /// Returns the table and trigger of `row`, or None if another guard checks it.
    pub fn source(&self, row: &WrittenRow) -> Option<&Source> {
        let mut sources = self.sources.iter();
        sources.find(|source| source.trigger == row.trigger)
    }

    /// Adds row `number` of the statement to those that must pass, unless it is gone, cannot be near any row, or is
    /// unchanged in everything that the guard reads. Returns whether the statement deleted it or changed anything that
    /// the guard reads.
    ///
    /// # Safety
    /// The same as for [`pass`].
    unsafe fn add_row(&mut self, number: usize) -> bool {
        let written = &self.written[number];
        let Some(source) = self.source(written) else {
            return false;
        };
        let newest = source.with_row(written, |row| {
            let columns = &source.columns;
            let is_kept = row.old.is_some_and(|old| columns.are_same(old, row.slot));
            let version = (!is_kept).then(|| RowVersion::new(&self.rule, columns, row.slot));
            let span = version.flatten().map(|version| version.span);
            (is_kept, span.map(|span| (row_place(row.slot), span)))
        });
        let (is_kept, version) = newest.unwrap_or_default();
        if let Some((newest, span)) = version {
            self.order.try_push((newest, number)).or_raise();
            self.reach = self.reach.with(span);
        }
        written.old.is_some() && !is_kept
    }

    /// Returns the number of the row whose newest version is in `slot`, or None if it does not have to pass.
    ///
    /// # Safety
    /// `slot` holds a row of a table.
    pub unsafe fn number(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<usize> {
        let place = row_place(slot);
        let found = self.order.binary_search_by_key(&place, |row| row.0);
        found.ok().map(|found| self.order[found].1)
    }

    /// Opens the tables that can contain rows near those that have to pass. Marks the rows that have to pass for
    /// comparison with all others.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if a table has no usable index, or if a row's own table is no longer
    /// under the root.
    fn open_tables(&mut self, attempt: &mut Attempt) {
        let notes = self.rule.options.notes;
        if let Some(notes) = notes.filter(|_| self.exceptions.is_some()) {
            // A transaction that inserts an exception waits for this lock, and then removes the notes.
            self.sources[0].notes(notes.table);
        }
        if self.sources[0].table.oid() != self.root {
            sees_partitions(self.root, true);
        }
        (self.tables, self.partitioned) =
            self.rule.tables(self.root, self.reach, "near_dup_guard", 0);
        if self.has_attached() {
            hide_partitions(self.root);
        }
        for rows in self.order.chunk_by(|a, b| a.0.0 == b.0.0) {
            let own = self.written[rows[0].1].table;
            if !self.tables.iter().any(|table| table.oid() == own) {
                let own = names::relation(own);
                let message = format!("partition {own} was detached before its rows were checked");
                not_ready(&message, "Try again.");
            }
        }
        if notes.is_some() {
            for table in &self.tables {
                // SAFETY: a transaction is running. The lock is required to lock rows.
                unsafe { pg_sys::LockRelationOid(table.oid(), pg_sys::RowShareLock as i32) };
            }
        }
        self.begin_round();
        for (_, row) in &self.order {
            attempt.rows[*row].is_open = true;
        }
    }

    /// Returns whether rows to check may be in a partition that this transaction has attached, which changes a row of
    /// `pg_class`. Locks do not tell: those of a cursor that fails in a savepoint are released.
    fn has_attached(&self) -> bool {
        let own = self.sources.iter().map(|source| &source.table);
        // The first one is the root.
        let above = self.partitioned.iter().skip(1).map(|(table, _)| table);
        let mut tables = own.chain(above);
        !self.partitioned.is_empty() && tables.any(Relation::has_changed)
    }

    /// Returns whether partitions were attached or detached since the tables were opened, by committed transactions, or by
    /// one in progress that has rows in them.
    fn has_other_tables(&self) -> bool {
        let mut tables = self.partitioned.iter();
        // In this order, because a transaction that commits holds the lock until others see its partitions.
        !self.partitioned.is_empty() && !sees_partitions(self.root, false)
            || tables.any(|(table, partitions)| table.partitions() != *partitions)
    }

    /// Searches and waits until the rows have passed. Returns the first rejection, or None if all have passed.
    ///
    /// # Safety
    /// The same as for [`pass`].
    unsafe fn pass(mut self) -> Option<Rejection> {
        let mut replaced = Vec::new();
        for number in 0..self.written.len() {
            check_interrupts();
            if in_memory_of_its_own(|| self.add_row(number)) {
                replaced.try_push(number).or_raise();
            }
        }
        self.order.sort_unstable();
        // A cascade of a foreign key may have changed a row again. Its first change has the version before the statement.
        self.order.dedup_by_key(|row| row.0);
        self.remove_notes(&replaced);
        if self.order.is_empty() {
            return None;
        }
        let mut attempt = Attempt {
            rows: filled(RowState::default(), self.written.len()).or_raise(),
            later: Vec::new(),
            wait: None,
        };
        self.open_tables(&mut attempt);
        loop {
            match self.try_to_pass(&mut attempt) {
                Ok(true) => break self.add_notes(&attempt.rows),
                Ok(false) => {}
                Err(rejection) => return Some(*rejection),
            }
            if let Some(pending) = attempt.wait.take() {
                pending.wait();
            }
            if self.has_other_tables() {
                self.open_tables(&mut attempt);
            }
        }
        None
    }

    /// Compares open rows with all others, and all rows with those added in the meantime, until few are added. Then
    /// makes the last look, with the gate closed. Returns whether the rows have passed, or a rejection. If they have
    /// not passed, another attempt may succeed once [`Attempt::wait`], if set, has ended.
    ///
    /// # Safety
    /// The same as for [`pass`].
    unsafe fn try_to_pass(&self, attempt: &mut Attempt) -> Result<bool, Box<Rejection>> {
        attempt.later.clear();
        for row in &mut attempt.rows {
            row.is_open |= take(&mut row.has_met_pending);
        }
        for _ in 0..MOST_LOOKS {
            let mut searched = self.begin_round();
            self.look_at_added(attempt);
            for number in 0..attempt.rows.len() {
                check_interrupts();
                if take(&mut attempt.rows[number].is_open) {
                    searched += 1;
                    if let Some(rejection) = self.look_at_all(attempt, number) {
                        return Err(rejection.into());
                    }
                }
            }
            if attempt.wait.is_some() {
                return Ok(false);
            }
            hold::point("guard_has_looked");
            if searched <= FEW {
                break;
            }
        }
        if !self.lock_earlier(&mut attempt.rows) {
            return Ok(false);
        }
        hold::point("guard_has_searched");
        close_gate(self.root);
        let passes = self.passes(attempt);
        if passes {
            announce(self.root, PassState::Passed);
        }
        open_gate(self.root);
        Ok(passes)
    }

    /// Makes the last look, and returns whether the rows pass. The caller has closed the gate.
    ///
    /// # Safety
    /// The same as for [`pass`].
    unsafe fn passes(&self, attempt: &mut Attempt) -> bool {
        let has_moved = |other: &&Pending| {
            let state = pass_state(self.root, other.transaction);
            matches!(state, PassState::Passed | PassState::Ended)
        };
        attempt.wait = attempt.later.iter().find(has_moved).copied();
        if attempt.wait.is_some() || self.has_other_tables() {
            return false;
        }
        self.begin_round();
        !self.look_at_added(attempt)
    }

    /// Begins a round in all tables. Returns the number of rows added since the last round began.
    fn begin_round(&self) -> u64 {
        let tables = self.tables.iter().inspect(|table| table.begin_round());
        tables.map(SearchedTable::added).sum()
    }
}
