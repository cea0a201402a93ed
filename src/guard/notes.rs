//! Rows that are let in, and noted beside the earlier rows that they are similar to.
//!
//! **The rule.** A row that passes is noted beside the most similar of the rows that have passed before it,
//! or were there before their table was guarded. Rows of one statement pass in the order in which they were
//! written; rows that a trigger writes meanwhile pass before them, and are still the later ones: of two rows
//! only one is noted beside the other. A row passes anew when its key, or a column that the guard reads, is
//! changed. When a row is deleted or changed, all notes that name it, on either side, are removed.
//!
//! **Every earlier row is found.** Rows are searched for, waited for and left to others exactly as by a guard
//! that rejects (see `passing`); only the treatment of a committed row differs. By the argument there, the
//! later to pass of two committed similar rows has found the other, and has waited for its transaction if that
//! had passed and was in progress. A row that a rejection would name is a neighbor here. If a look at only the
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

use crate::guard::neighbors::Neighbor;
use crate::guard::notes_table::{NewNote, NotesTable};
use crate::guard::passing::{Passing, RowProgress};
use crate::guard::row::{Place, Source, with_replaced, with_row};
use crate::guard::slot::Slot;
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::statement::Connection;
use crate::pg::value::in_memory_of_its_own;
use neardup::memory::{Grow, collected};

/// Rows that one statement adds notes for, or removes the notes of.
const BATCH: usize = 1000;

/// Writes to a table of notes, about some rows.
type WriteNotes<'a> =
    dyn Fn(&NotesTable, &Connection, &mut dyn Iterator<Item = (usize, &Source)>) + 'a;

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
            let mut neighbors = progress.neighbors.iter();
            // SAFETY: vouched for by the caller.
            if !in_memory_of_its_own(|| neighbors.all(|near| unsafe { near.lock(tables) })) {
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
        let is_replaced = |number: usize| self.places[number].old.is_some();
        self.write_notes(&is_replaced, &|table, connection, rows| {
            // SAFETY: vouched for by the caller.
            let keys = rows.filter_map(|(number, source)| unsafe {
                let place = &self.places[number];
                with_replaced(place, source, |slot| table.key(&source.columns, slot))
            });
            table.remove(connection, collected(keys).or_raise());
        });
    }

    /// Adds the notes of all rows.
    ///
    /// # Safety
    /// As for [`Self::lock_neighbors`].
    pub unsafe fn add_notes(&self, progress: &[RowProgress]) {
        let has_neighbors = |number: usize| !progress[number].neighbors.is_empty();
        self.write_notes(&has_neighbors, &|table, connection, rows| {
            let mut notes = Vec::new();
            for (number, source) in rows {
                let (place, neighbors) = (&self.places[number], &progress[number].neighbors);
                // SAFETY: vouched for by the caller.
                unsafe { self.note(place, source, neighbors, table, &mut notes) };
            }
            table.add(connection, &notes);
        });
    }

    /// Calls `write` with the table of notes of each guard that has one, and with the numbers of rows at the places
    /// that it notes, if `concerns` is true for them, in batches.
    fn write_notes(&self, concerns: &dyn Fn(usize) -> bool, write: &WriteNotes<'_>) {
        for (number, guard) in self.guards.iter().enumerate() {
            let Some(notes) = guard.notes() else { continue };
            let of_guard = |row: usize| {
                let source = self.source(&self.places[row]);
                let source = source.filter(|source| source.guard == number && concerns(row));
                source.map(|source| (row, source))
            };
            let mut rows = (0..self.places.len()).filter_map(of_guard).peekable();
            if rows.peek().is_none() {
                continue;
            }
            let table = NotesTable::open(notes.table);
            for source in self.sources.iter().filter(|source| source.guard == number) {
                table.check(&source.table);
            }
            table.write(|connection| {
                while rows.peek().is_some() {
                    in_memory_of_its_own(|| {
                        write(&table, connection, &mut rows.by_ref().take(BATCH));
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
        source: &Source,
        neighbors: &[Neighbor],
        table: &NotesTable,
        notes: &mut Vec<NewNote>,
    ) {
        // SAFETY: vouched for by the caller.
        unsafe {
            let key = with_row(place, source, |row| table.key(&source.columns, row.slot));
            let Some(key) = key else { return };
            for neighbor in neighbors {
                let searched = &self.guards[source.guard].tables[neighbor.table];
                let slot = Slot::new(searched.relation());
                slot.fetch(searched.relation(), neighbor.tid);
                let note = NewNote {
                    key,
                    near_key: table.key(&searched.table.columns, slot.as_ptr()),
                    similarity: neighbor.similarity,
                };
                notes.try_push(note).or_raise();
            }
        }
    }
}
