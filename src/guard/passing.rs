//! The rows of a statement pass, all together.
//!
//! **The rule.** A guarded table, or the partitioned one at the root of its partitions, has a gate. Before
//! a statement ends, its transaction looks for rows that are similar to its own, closes the gate, makes
//! sure that the answer still holds, says *I have passed*, and opens the gate. Of similar rows of other
//! transactions
//! - a committed one rejects the statement;
//! - one of a transaction in progress that has passed is waited for: that one came first;
//! - one of a transaction in progress that *will pass* is left to that transaction, which finds our row;
//! - any other one in progress came without the trigger that says so before the row enters an index (an
//!   UPDATE, a trigger written by hand). Our transaction waits for it unless both rows are in one index
//!   and ours came first: then it waits for us;
//! - one that a transaction in progress deletes or changes is waited for; how that ends decides if it counts.
//!
//! A transaction says so by a lock (see `locks`), which others ask for and never take.
//!
//! **No copy is admitted.** Let two transactions A and B commit similar rows a and b, each by a statement
//! that was checked, and let A's statement go through the gate first. Then a was in its table and its
//! index when B closed the gate. B has searched every row number that was drawn before that: the first
//! search looks at all numbers, each later one at the numbers drawn since the search before it began, the
//! last one with the gate closed. So B has found a. If a was in progress when B found it with the gate
//! closed, A had passed, and B waited. If B found it before that, B asked again with the gate closed
//! whether the transactions that it had left behind have passed or ended meanwhile, and began again if one
//! had: with a look at everything for the rows that had met such a transaction, and for the others from
//! where it was, since nothing but rows with later numbers can change their answers. The lock is asked for
//! first, and after that whether the transaction is in progress: a transaction releases its locks after it
//! has ceased to be in progress, so one that is in progress now and did not hold the lock before had not
//! passed. The other way round, one that commits in between would look as if it had not. A transaction
//! that has passed with one statement counts as passed with the statements that follow: transactions that
//! find their rows wait, and waiting is always safe. A subtransaction that is rolled back releases its
//! locks, with its rows.
//!
//! Row numbers can be relied upon because the locks on all tables and indexes that are searched are kept:
//! no TRUNCATE and no REINDEX starts numbering anew between the first search and the last. An UPDATE that
//! makes no index entry draws no number: others might not look again. So the row that it changes is not
//! left to transactions that will pass; those are waited for.
//!
//! **Single-statement INSERT and COPY transactions that meet one guard do not deadlock**, whatever their
//! rows and partitions. Such a transaction says that it will pass before it inserts its first row, and
//! passing is the last thing that it does. While it waits for another one it has not passed, so none of
//! the others waits for it. One that has passed waits for nobody. While a transaction keeps the gate closed
//! it waits for nothing: it takes only its own lock, and for a moment the lock of a TOAST table, which only a
//! transaction of several statements can withhold, by its name. Waits for equal keys are PostgreSQL's own,
//! and come before: a transaction that waits for a key has not passed either.
//!
//! A transaction of several statements has passed with the first one when it waits with the second, and
//! one that meets two guards when it waits at the second: those can deadlock, and UPDATEs by their row
//! locks.

use crate::guard::check::{Guard, Near, Round, Verdict};
use crate::guard::columns::GuardColumns;
use crate::guard::locks::{Gate, Standing, say, standing};
use crate::guard::neighbors::{Neighbor, PassingOrder};
use crate::guard::options::GuardOptions;
use crate::guard::rejection::Rejection;
use crate::guard::row::{Place, Source, not_so, with_row};
use crate::guard::search::{OpenTable, Pending};
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::am::hold;
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::relation::Relation;
use crate::pg::value::in_memory_of_its_own;
use neardup::memory::filled;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::mem::take;

/// Lets rows pass, root by root. Returns the rejection of one.
///
/// # Safety
/// The running transaction wrote the rows at the places, and a snapshot is active.
pub unsafe fn pass(places: &[Place]) -> Option<Rejection> {
    let roots = || places.iter().map(|place| place.root.to_u32());
    let mut next = roots().min();
    while let Some(root) = next {
        let passing = Passing::new(root.into(), places);
        // SAFETY: vouched for by the caller.
        let rejection = unsafe { passing.pass() };
        if rejection.is_some() {
            return rejection;
        }
        next = roots().filter(|&other| other > root).min();
    }
    None
}

/// The rows of a root with the guards that they meet.
pub struct Passing<'p> {
    pub root: pg_sys::Oid,
    pub places: &'p [Place],
    pub sources: Vec<Source>,
    pub guards: Vec<Guard>,
    /// The order of the rows, where a guard notes them.
    pub order: PassingOrder,
}

/// The state of a row on its way.
#[derive(Clone, Default)]
pub struct RowProgress {
    /// It has to be checked against all rows.
    pub is_open: bool,
    /// The earlier rows that it is noted beside, the most similar first.
    pub neighbors: Vec<Neighbor>,
}

impl<'p> Passing<'p> {
    fn new(root: pg_sys::Oid, places: &'p [Place]) -> Self {
        let mut passing = Self {
            root,
            places,
            sources: Vec::new(),
            guards: Vec::new(),
            order: PassingOrder::default(),
        };
        for place in places.iter().filter(|place| place.root == root) {
            if passing.source(place).is_none() {
                passing.add_source(place);
            }
        }
        // SAFETY: the transaction wrote the rows at the places.
        unsafe { passing.open_tables() };
        if passing.guards.iter().any(|guard| guard.notes().is_some()) {
            passing.order = PassingOrder::of(places);
        }
        passing
    }

    pub fn source(&self, place: &Place) -> Option<&Source> {
        let mut sources = self.sources.iter();
        sources.find(|source| source.trigger == place.trigger)
    }

    /// Adds the table of a place with its trigger, unless that is gone.
    ///
    /// # Errors
    /// ERROR for options that do not fit the table, and where a table has no usable index.
    fn add_source(&mut self, place: &Place) {
        let table = Relation::open_table(place.table);
        // SAFETY: the table is open; its triggers are those that it has now.
        unsafe {
            let mut triggers = table.triggers().iter();
            let Some(trigger) = triggers.find(|own| own.tgoid == place.trigger) else {
                return;
            };
            // Copied before anything is looked up in the catalog, which may replace the trigger.
            let (name, function) = (CStr::from_ptr(trigger.tgname).to_owned(), trigger.tgfoid);
            let options = GuardOptions::of_trigger(trigger, place.table);
            if place.new.is_none() && options.notes.is_none() {
                not_so("near_dup_guard was fired by another event than INSERT or UPDATE");
            }
            let columns = GuardColumns::of(&table, &options);
            let known = |guard: &Guard| guard.rule.options == options;
            let guard = self.guards.iter().position(known).unwrap_or_else(|| {
                let rule = Rule::new(&table, options, function);
                self.guards.push(Guard {
                    rule,
                    tables: Vec::new(),
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

    /// Opens the tables that can have rows near the rows at `places`.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn open_tables(&mut self) {
        for number in 0..self.guards.len() {
            let spans = self.places.iter().filter_map(|place| {
                let source = self.source(place)?;
                let window = match source.columns.window {
                    _ if source.guard != number => return None,
                    None => return Some(Span::ALWAYS),
                    Some(window) => window,
                };
                // SAFETY: vouched for by the caller.
                in_memory_of_its_own(|| unsafe {
                    with_row(place, source, |row| window.around(row.slot)).flatten()
                })
            });
            let reach = spans.reduce(Span::with);
            if let Some(reach) = reach {
                let Guard { rule, tables } = &mut self.guards[number];
                for table in rule.tables(self.root, reach) {
                    if rule.options.notes.is_some() {
                        // Its rows may be locked.
                        let mode = pg_sys::RowShareLock as i32;
                        // SAFETY: a transaction is running.
                        unsafe { pg_sys::LockRelationOid(table.oid, mode) };
                    }
                    tables.push(OpenTable::new(table, rule, tables));
                }
            }
        }
    }

    /// Waits and searches until the rows have passed. Returns the rejection of one.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn pass(&self) -> Option<Rejection> {
        let mut round = Round {
            root: self.root,
            ..Round::default()
        };
        let mut progress = filled(RowProgress::default(), self.places.len()).or_raise();
        // SAFETY: vouched for by the caller.
        unsafe { self.remove_notes() };
        loop {
            // SAFETY: vouched for by the caller.
            match unsafe { self.try_to_pass(&mut round, &mut progress) } {
                Verdict::Clear => {
                    // SAFETY: vouched for by the caller.
                    unsafe { self.add_notes(&progress) };
                    return None;
                }
                Verdict::Rejected(rejection) => return Some(rejection),
                Verdict::Wait(pending) => pending.wait(),
                Verdict::Again => {}
            }
        }
    }

    /// Searches with the gate open, then the rows added meanwhile, then the rest with the gate closed.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn try_to_pass(&self, round: &mut Round, progress: &mut [RowProgress]) -> Verdict {
        round.later.clear();
        for is_first in [true, false] {
            // SAFETY: vouched for by the caller.
            let outcome = unsafe { self.look(round, progress, is_first) };
            if !matches!(outcome, Verdict::Clear) {
                return outcome;
            }
        }
        // SAFETY: vouched for by the caller.
        if !unsafe { self.lock_neighbors(progress) } {
            return Verdict::Again;
        }
        hold::point("guard_has_searched");
        let gate = Gate::close(self.root);
        round.is_gated = true;
        let has_moved = |other: &&Pending| {
            let standing = standing(self.root, other.transaction);
            matches!(standing, Standing::Passed | Standing::Ended)
        };
        let outcome = match round.later.iter().find(has_moved) {
            Some(&other) => Verdict::Wait(other),
            // SAFETY: vouched for by the caller.
            None => unsafe { self.look(round, progress, false) },
        };
        round.is_gated = false;
        if let Verdict::Clear = outcome {
            say(self.root, Standing::Passed);
        }
        gate.open();
        outcome
    }

    /// Checks all rows against the rows that a new round looks at; the first round of a try checks the `open`
    /// rows against all. Leaves the rows open that have met a transaction in progress.
    ///
    /// # Safety
    /// As for [`pass`].
    unsafe fn look(
        &self,
        round: &mut Round,
        progress: &mut [RowProgress],
        is_first: bool,
    ) -> Verdict {
        let tables = self.guards.iter().flat_map(|guard| &guard.tables);
        let behind = tables.filter(|table| table.begin_round()).count();
        let mut outcome = Verdict::Clear;
        for (number, (place, progress)) in self.places.iter().zip(progress).enumerate() {
            check_interrupts();
            round.is_full = is_first && take(&mut progress.is_open);
            let Some(source) = self.source(place).filter(|_| round.is_full || behind > 0) else {
                continue;
            };
            // SAFETY: vouched for by the caller.
            let verdict = in_memory_of_its_own(|| unsafe {
                let guard = &self.guards[source.guard];
                with_row(place, source, |row| match guard.notes() {
                    None => guard.check(row, round),
                    Some(notes) => {
                        let is_earlier = |near: &Near<'_>| self.order.is_earlier(near, number);
                        guard.find(row, round, notes.most, &is_earlier, &mut progress.neighbors)
                    }
                })
            });
            progress.is_open |= take(&mut round.is_open);
            match verdict.unwrap_or(Verdict::Clear) {
                Verdict::Wait(pending) if !matches!(outcome, Verdict::Again) => {
                    outcome = Verdict::Wait(pending);
                }
                Verdict::Clear | Verdict::Wait(_) => {}
                // The others have to be checked in this round, too.
                Verdict::Again => {
                    progress.is_open = true;
                    outcome = Verdict::Again;
                }
                rejected => return rejected,
            }
        }
        outcome
    }
}
