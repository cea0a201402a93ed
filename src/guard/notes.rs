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

use crate::guard::neighbors::Neighbors;
use crate::guard::notes_table::{NewNotes, NotesTable};
use crate::guard::passing::{Passing, RowProgress};
use crate::guard::row::{Place, Slot, Source, in_memory_of_its_own, with_replaced, with_row};
use crate::pg::error::{OrRaise, check_interrupts};
use neardup::memory::collected;

/// Rows that one statement adds notes for, or removes the notes of.
const BATCH: usize = 1000;

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
                self.is_noted_by(place, number) && !progress.neighbors.is_empty()
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
            for neighbor in neighbors.iter() {
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
