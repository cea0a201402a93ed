//! Rows that are let in, and noted beside the earlier rows that they are similar to.
//!
//! **The rule.** A row that passes is noted beside the most similar of the rows that have passed before it,
//! or were there before their table was guarded. Rows of one statement pass in the order in which they were
//! written; rows that a trigger writes meanwhile pass before them, and are still the later ones: of two rows
//! only one is noted beside the other. A row passes anew when its key, or a column that the guard reads, is
//! changed. When a row is deleted or changed, all notes that name it, on either side, are removed.
//!
//! **Every earlier row is found.** Rows are searched for, waited for and left to others exactly as by a guard
//! that refuses (see `passing`); only the treatment of a committed row differs. By the argument there, the
//! later to pass of two committed similar rows has found the other, and has waited for its transaction if that
//! had passed and was in progress. A row that a refusal would name is a neighbor here. If a look at only the
//! newest rows finds a row, the transaction looks at everything once more, so that all neighbors at the moment
//! of passing come from one look, and nothing has been added since.
//!
//! **A note never names a row that is not there.** Let transaction B note row b beside row a of another
//! transaction. Before B closes the gate it locks a FOR SHARE, in the version that it has compared; where there
//! is a newer version, or none, it looks again. From then on nobody changes or deletes a before B has ended. A
//! later change of a removes its notes under a snapshot taken after it has the row, so that it sees what B has
//! committed; where its isolation level forbids that, it gets a serialization failure (40001), as from the checks
//! of foreign keys. B waits for a transaction that was changing or deleting a before B had the lock. Rows of B's
//! own need no lock: nobody else sees them before B's notes are there. Versions of rows are named by their places
//! in their table, which cannot be used again while B holds the snapshot under which its statement passes.
//!
//! **The notes that are left.** Each note is about two rows, goes with either of them, and depends on no other
//! note. So a row keeps exactly the notes whose earlier rows are unchanged, and the most similar of these counts.
//! Only the transaction that passes writes notes, under the rights of the table's owner, so they are committed,
//! prepared and rolled back with the row, also to a savepoint.
//!
//! **Deadlocks.** Transactions of a single INSERT or COPY lock rows of others only in a shared mode, before they
//! pass, and write notes about their own rows after that, with keys that nobody else writes. So a transaction
//! that has passed waits for nobody, and they do not deadlock with each other.

use crate::guard::check::{Guard, Near, Round, Row, Verdict};
use crate::guard::notes_table::{NewNotes, NotesTable};
use crate::guard::passing::{Passing, RowProgress};
use crate::guard::places::Place;
use crate::guard::row::{Slot, Tid, is_own, tid};
use crate::guard::search::OpenTable;
use crate::guard::source::{Source, in_memory_of_its_own, with_replaced, with_row};
use crate::guard::table::{Rule, SearchedTable};
use crate::guard::version::RowVersion;
use crate::pg::error::{OrRaise, check_interrupts};
use neardup::memory::{Grow, collected};
use pgrx::pg_sys;

/// Rows that one statement adds notes for, or removes the notes of.
const BATCH: usize = 1000;

/// An earlier row near one that passes.
#[derive(Clone, Copy)]
struct Neighbor {
    /// The number of its table among those that the guard searches.
    table: usize,
    tid: Tid,
    similarity: f64,
    is_locked: bool,
}

/// The earlier rows that a row is noted beside, the most similar first.
#[derive(Clone, Default)]
pub struct Neighbors(Vec<Neighbor>);

impl Neighbors {
    fn keep(&mut self, neighbor: Neighbor, most: usize) {
        let is_before = |other: &Neighbor| other.similarity >= neighbor.similarity;
        let place = self.0.partition_point(is_before);
        if place < most {
            self.0.truncate(most - 1);
            self.0.try_push(neighbor).or_raise();
            self.0[place..].rotate_right(1);
        }
    }

    /// Locks the rows FOR SHARE. Returns whether they are as they were found.
    ///
    /// # Safety
    /// The rows were found in these tables.
    unsafe fn lock(&mut self, tables: &[OpenTable]) -> bool {
        self.0.iter_mut().all(|neighbor| {
            let table = tables[neighbor.table].relation();
            // SAFETY: vouched for by the caller.
            neighbor.is_locked |= unsafe {
                let slot = Slot::new(table);
                slot.fetch(table, neighbor.tid) && is_own(slot.as_ptr())
                    || slot.lock(table, neighbor.tid)
            };
            neighbor.is_locked
        })
    }
}

/// The order in which the rows of a statement pass.
#[derive(Default)]
pub struct PassingOrder(Vec<(u32, Tid, usize)>);

impl PassingOrder {
    pub fn of(places: &[Place]) -> Self {
        let numbered = places.iter().enumerate();
        let rows =
            numbered.filter_map(|(number, place)| Some((place.table.to_u32(), place.new?, number)));
        let mut rows = collected(rows).or_raise();
        rows.sort_unstable();
        Self(rows)
    }

    /// Returns whether a row passes, or has passed, before the row at the place of that number.
    ///
    /// # Safety
    /// The slot holds a row of its table.
    pub unsafe fn is_earlier(&self, near: &Near<'_>, number: usize) -> bool {
        // SAFETY: vouched for by the caller.
        let (is_own, tid) = unsafe { (is_own(near.slot), tid(near.slot)) };
        let table = near.table.table.oid;
        let found = self
            .0
            .binary_search_by_key(&(table.to_u32(), tid), |&(table, tid, _)| (table, tid));
        match found {
            _ if !is_own => true,
            Ok(found) => self.0[found].2 < number,
            Err(_) => true,
        }
    }
}

impl Row<'_> {
    /// Returns whether the row has to pass: not where nothing has changed that the guard reads, and not where
    /// it has been changed since, and passes by that.
    unsafe fn has_to_pass(&self) -> bool {
        // SAFETY: the slots hold versions of the row.
        unsafe {
            let is_same = |a, b| self.columns.are_same_row(a, b);
            is_same(self.noted, self.slot) && !self.old.is_some_and(|old| is_same(old, self.noted))
        }
    }
}

impl Guard {
    /// Finds the earlier rows that a row is near to, in a look at all rows; another look tells whether there is a
    /// further one.
    ///
    /// # Safety
    /// The row is one of a table under the guard's root. A snapshot is active.
    pub unsafe fn find(
        &self,
        row: &Row<'_>,
        round: &mut Round,
        most: usize,
        is_earlier: &dyn Fn(&Near<'_>) -> bool,
        neighbors: &mut Neighbors,
    ) -> Verdict {
        let is_full = round.is_full;
        if is_full {
            neighbors.0.clear();
        }
        let mut undecided = None;
        let mut has_another = false;
        // SAFETY: vouched for by the caller.
        unsafe {
            let version = RowVersion::new(&self.rule, row.columns, row.slot);
            let Some(version) = version.filter(|_| row.has_to_pass()) else {
                return Verdict::Clear;
            };
            self.for_each_near(row, &version, is_full, &mut |near| {
                if let Some(pending) = near.pending {
                    undecided = undecided.or_else(|| round.obstacle(row, pending));
                } else if is_earlier(&near) {
                    has_another |= !is_full;
                    let neighbor = Neighbor {
                        table: near.number,
                        tid: tid(near.slot),
                        similarity: near.nearness.similarity(),
                        is_locked: false,
                    };
                    neighbors.keep(neighbor, most);
                }
                !has_another
            });
        }
        match has_another {
            true => Verdict::Neighbor,
            false => undecided.map_or(Verdict::Clear, Verdict::Wait),
        }
    }
}

/// Locks a table whose rows may be locked for notes.
pub fn lock_for_notes(rule: &Rule, table: &SearchedTable) {
    if rule.options.notes.is_some() {
        // SAFETY: a transaction is running.
        unsafe { pg_sys::LockRelationOid(table.oid, pg_sys::RowShareLock as i32) };
    }
}

impl Passing<'_> {
    /// Locks the neighbors of all rows. Returns whether they are as they were found; otherwise the rows have to
    /// be checked again.
    ///
    /// # Safety
    /// The transaction wrote the rows at the places.
    pub unsafe fn lock_neighbors(&self, progress: &mut [RowProgress]) -> bool {
        let mut are_as_found = true;
        for (place, progress) in self.places.iter().zip(progress) {
            let Some(source) = self.source(place) else {
                continue;
            };
            check_interrupts();
            let tables = &self.guards[source.guard].tables;
            // SAFETY: vouched for by the caller.
            if !in_memory_of_its_own(|| unsafe { progress.neighbors.lock(tables) }) {
                progress.is_open = true;
                are_as_found = false;
            }
        }
        are_as_found
    }

    /// Removes the notes that name rows which were deleted or changed.
    ///
    /// # Safety
    /// As for [`Self::lock_neighbors`].
    pub unsafe fn remove_notes(&self) {
        for number in 0..self.guards.len() {
            let is_replaced =
                |place: &&Place| self.is_noted_by(place, number) && place.old.is_some();
            if !self.places.iter().any(|place| is_replaced(&place)) {
                continue;
            }
            let table = self.notes_table(number);
            table.write(|connection| {
                for places in self.places.chunks(BATCH) {
                    in_memory_of_its_own(|| {
                        let places = places.iter().filter(is_replaced);
                        // SAFETY: vouched for by the caller.
                        let keys = places.filter_map(|place| unsafe {
                            let source = self.source(place)?;
                            with_replaced(place, source, |slot| table.key(&source.columns, slot))
                        });
                        table.remove(connection, collected(keys).or_raise());
                    });
                }
            });
        }
    }

    /// Adds the notes of all rows.
    ///
    /// # Safety
    /// As for [`Self::lock_neighbors`].
    pub unsafe fn add_notes(&self, progress: &[RowProgress]) {
        for number in 0..self.guards.len() {
            let has_neighbors = |(place, progress): &(&Place, &RowProgress)| {
                self.is_noted_by(place, number) && !progress.neighbors.0.is_empty()
            };
            if !self
                .places
                .iter()
                .zip(progress)
                .any(|row| has_neighbors(&row))
            {
                continue;
            }
            let table = self.notes_table(number);
            table.write(|connection| {
                let batches = self.places.chunks(BATCH).zip(progress.chunks(BATCH));
                for (places, progress) in batches {
                    in_memory_of_its_own(|| {
                        let mut notes = NewNotes::default();
                        for (place, progress) in places.iter().zip(progress).filter(has_neighbors) {
                            // SAFETY: vouched for by the caller.
                            unsafe { self.note(place, &progress.neighbors, &table, &mut notes) };
                        }
                        table.add(connection, notes);
                    });
                }
            });
        }
    }

    /// Notes the row at a place beside its neighbors.
    ///
    /// # Safety
    /// As for [`Self::lock_neighbors`]; the neighbors are locked.
    unsafe fn note(
        &self,
        place: &Place,
        neighbors: &Neighbors,
        table: &NotesTable,
        notes: &mut NewNotes,
    ) {
        let Some(source) = self.source(place) else {
            return;
        };
        // SAFETY: vouched for by the caller.
        unsafe {
            let key = with_row(place, source, |row| table.key(row.columns, row.slot));
            let Some(key) = key else { return };
            for neighbor in &neighbors.0 {
                let searched = &self.guards[source.guard].tables[neighbor.table];
                let slot = Slot::new(searched.relation());
                slot.fetch(searched.relation(), neighbor.tid);
                let near_key = table.key(&searched.table.columns, slot.as_ptr());
                notes.push(key, near_key, neighbor.similarity);
            }
        }
    }

    fn is_noted_by(&self, place: &Place, guard: usize) -> bool {
        let is_source = |source: &Source| source.guard == guard;
        self.guards[guard].notes().is_some() && self.source(place).is_some_and(is_source)
    }

    /// Returns the table of a guard's notes.
    ///
    /// # Errors
    /// The errors of [`NotesTable::open`].
    fn notes_table(&self, guard: usize) -> NotesTable {
        let notes = self.guards[guard].notes().expect("the guard notes rows");
        let table = NotesTable::open(notes.table);
        for source in self.sources.iter().filter(|source| source.guard == guard) {
            table.check(&source.table);
        }
        table
    }
}
