//! Rows that are let in, and noted beside the earlier rows that they are similar to.
//!
//! **The rule.** A row that passes is noted beside the most similar of the rows that have passed before it, or were
//! there before their table was guarded. Rows of one statement pass in the order in which they were written; rows of a
//! COPY that pass one by one (see `places`) in the order of their places in the table. Rows that a trigger writes
//! meanwhile pass before them, and may be the earlier or the later ones: of two rows only one is noted beside the other.
//! A row passes anew when its key, or a column that the guard reads, is changed; a row that a statement has left as it
//! was is an earlier one for all that pass. When a row is deleted or changed, all notes that name it, on either side,
//! are removed.
//!
//! **Every earlier row is found.** Rows are searched for, waited for and left to others exactly as by a guard that
//! rejects (see `passing`); only the treatment of a committed row differs. By the argument there, the later to pass of
//! two committed similar rows has found the other, and has waited for its transaction if that had passed and was in
//! progress. A row that a rejection would name is an earlier row here. If a look at only the newest rows finds a row,
//! the transaction looks at everything once more, so that all earlier rows at the moment of passing come from one look,
//! and nothing has been added since.
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

use crate::guard::looking::SimilarRow;
use crate::guard::notes_table::NotesTable;
use crate::guard::passing::{Passing, RowState};
use crate::guard::row::{Source, version, with_row};
use crate::guard::slot::{Slot, Tid, is_own, tid};
use crate::guard::table::SearchedTable;
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::statement::Connection;
use crate::pg::value::in_memory_of_its_own;
use neardup::memory::{Grow, collected};
use pgrx::pg_sys;
use std::ffi::CStr;

/// Maximum number of rows whose notes one statement adds or removes.
const BATCH: usize = 1000;

/// Writes to a table of notes about rows, given by place number and source.
type WriteNotes<'a> = dyn Fn(&NotesTable, &Connection, &[(usize, &Source)]) + 'a;

/// An earlier row that a row is noted with.
#[derive(Clone, Copy)]
pub struct EarlierRow {
    /// The number of its table among those that the guard searches.
    table: usize,
    tid: Tid,
    similarity: f64,
}

impl EarlierRow {
    /// # Safety
    /// The slot holds a row of its table.
    pub unsafe fn new(similar: &SimilarRow<'_>) -> Self {
        Self {
            table: similar.number,
            tid: tid(similar.slot),
            similarity: similar.similarity.share(),
        }
    }

    /// Adds the row to `others`, which are sorted by descending similarity, and keeps at most `most` of them.
    pub fn add_to(self, others: &mut Vec<Self>, most: usize) {
        let place = others.partition_point(|other| other.similarity >= self.similarity);
        if place < most {
            others.truncate(most - 1);
            others.try_push(self).or_raise();
            others[place..].rotate_right(1);
        }
    }

    /// Returns the key of the row as text.
    ///
    /// # Safety
    /// As for [`Self::lock`].
    unsafe fn key<'c>(&self, tables: &[SearchedTable]) -> Option<&'c CStr> {
        let searched = &tables[self.table];
        let slot = Slot::new(searched.table.as_ptr());
        let is_there = slot.fetch(searched.table.as_ptr(), self.tid);
        is_there.then(|| searched.columns.key_text(slot.as_ptr()))?
    }

    /// Locks the row FOR SHARE. Returns whether it is unchanged since it was found.
    ///
    /// # Safety
    /// The row was found in one of these tables.
    unsafe fn lock(&self, tables: &[SearchedTable]) -> bool {
        let table = tables[self.table].table.as_ptr();
        let slot = Slot::new(table);
        slot.fetch(table, self.tid) && is_own(slot.as_ptr()) || slot.lock(table, self.tid)
    }
}

impl Passing<'_> {
    /// Locks the earlier rows that `rows` will be noted with. Returns whether all are unchanged since they were found,
    /// and opens the rows of those that are not.
    ///
    /// # Safety
    /// The statement wrote the rows at the places.
    pub unsafe fn lock_earlier(&self, rows: &mut [RowState]) -> bool {
        let mut are_as_found = true;
        for (place, row) in self.places.iter().zip(rows) {
            let Some(source) = self.source(place).filter(|_| !row.earlier.is_empty()) else {
                continue;
            };
            check_interrupts();
            let tables = &self.guards[source.guard].tables;
            let mut earlier = row.earlier.iter();
            if !in_memory_of_its_own(|| earlier.all(|row| row.lock(tables))) {
                row.is_open = true;
                are_as_found = false;
            }
        }
        are_as_found
    }

    /// Removes the notes about rows that were deleted or changed.
    ///
    /// # Safety
    /// As for [`Self::lock_earlier`].
    pub unsafe fn remove_notes(&self, rows: &[RowState]) {
        self.write_notes(&|row| rows[row].is_replaced, &|table, connection, rows| {
            let keys = rows.iter().filter_map(|&(row, source)| {
                let place = &self.places[row];
                let old = version(source, place.old)?;
                source.columns.key_text(old.as_ptr())
            });
            table.remove(connection, &collected(keys).or_raise());
        });
    }

    /// Adds the notes of all rows.
    ///
    /// # Safety
    /// As for [`Self::lock_earlier`]; the earlier rows are locked.
    pub unsafe fn add_notes(&self, rows: &[RowState]) {
        self.write_notes(
            &|row| !rows[row].earlier.is_empty(),
            &|table, connection, noted| {
                let mut notes = Vec::new();
                for &(row, source) in noted {
                    let tables = &self.guards[source.guard].tables;
                    let key = with_row(&self.places[row], source, |row| {
                        source.columns.key_text(row.slot)
                    });
                    for earlier in rows[row].earlier.iter().filter(|_| key.is_some()) {
                        let near_key = earlier.key(tables);
                        let note = table.note([key.flatten(), near_key], earlier.similarity);
                        notes.try_push(note).or_raise();
                    }
                }
                table.add(connection, &notes);
            },
        );
    }

    /// Calls `write` for each guard with a table of notes, in batches of its rows for which `concerns` returns true.
    fn write_notes(&self, concerns: &dyn Fn(usize) -> bool, write: &WriteNotes<'_>) {
        for (number, guard) in self.guards.iter().enumerate() {
            let Some(notes) = guard.notes() else { continue };
            let of_guard = |row: usize| {
                let source = self.source(&self.places[row]);
                let source = source.filter(|source| source.guard == number && concerns(row));
                source.map(|source| (row, source))
            };
            let rows = collected((0..self.places.len()).filter_map(of_guard)).or_raise();
            if let Some((_, source)) = rows.first() {
                let table = NotesTable::open(
                    notes.table,
                    &source.table,
                    &source.columns,
                    pg_sys::RowExclusiveLock,
                );
                table.write(|connection| {
                    for batch in rows.chunks(BATCH) {
                        in_memory_of_its_own(|| write(&table, connection, batch));
                    }
                });
            }
        }
    }
}
