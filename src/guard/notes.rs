//! Admits rows, and notes them with the earlier rows that they are similar to.
//!
//! **The rule.** A row that passes is noted with the most similar of the rows that have passed before it, or were there
//! before their table was guarded. Rows of one statement pass in the order in which they were written; rows of a COPY
//! that pass one by one (see `places`) pass in the order of their places in the table. Rows that a trigger writes in
//! the meantime pass before them, and may count as earlier or as later ones: of any two rows, only one is noted with
//! the other. A row passes again when its key, or a column that the guard reads, is changed; a row that a statement has
//! left unchanged counts as earlier than all that pass. When a row is deleted or changed, all notes that name it, on
//! either side, are removed.
//!
//! **Every earlier row is found.** Rows are searched for, waited for and left to others exactly as by a guard that
//! rejects (see `passing`); only the treatment of a committed row differs. By the argument there, the later to pass of
//! two committed similar rows has found the other, and has waited for its transaction if that had passed and was in
//! progress. A row that a rejection would name is an earlier row here. If a look at only the newest rows finds a row,
//! the transaction looks at everything once more, so that all earlier rows at the moment of passing come from one look,
//! and nothing has been added since.
//!
//! **A note never names a row that does not exist.** Suppose that transaction B notes row b with row a of another
//! transaction. Before B closes the gate, it locks a FOR SHARE, in the version that it has compared; if there is a
//! newer version, or none, it looks again. From then on, nobody changes or deletes a before B has ended. A later change
//! of a removes its notes under a snapshot taken after it has locked the row, so it sees everything that B has
//! committed; if its isolation level forbids that, it gets a serialization failure (40001), as from foreign key checks.
//! If a transaction was changing or deleting a before B had the lock, B waits for it. B's own rows need no lock: nobody
//! else sees them before B's notes are there. Row versions are identified by their places in their table, which cannot
//! be reused while B holds the snapshot under which its statement passes.
//!
//! **The remaining notes.** Each note is about two rows, is removed with either of them, and depends on no other note.
//! So a row keeps exactly the notes whose earlier rows are unchanged, and the most similar of these counts. Only the
//! transaction that passes writes notes, with the rights of the table's owner, so they are committed, prepared and
//! rolled back with the row, even to a savepoint.
//!
//! **Deadlocks.** Transactions of a single INSERT or COPY lock rows of others only in a shared mode and before they
//! pass. After that they write notes about their own rows, with keys that nobody else writes. So a transaction that has
//! passed waits for nobody, and they do not deadlock with each other.

use crate::guard::pair_table::PairTable;
use crate::guard::passing::{Passing, RowState};
use crate::guard::row::Source;
use crate::pg::prelude::*;
use crate::pg::value::in_memory_of_its_own;

impl Passing<'_> {
    /// Locks the earlier rows that `rows` will be noted with. Returns whether all earlier rows are unchanged since they
    /// were found. Opens each of `rows` with a changed earlier row.
    ///
    /// # Safety
    /// The statement wrote the rows in `written`.
    pub unsafe fn lock_earlier(&self, rows: &mut [RowState]) -> bool {
        let mut are_as_found = true;
        for row in rows.iter_mut().filter(|row| !row.earlier.is_empty()) {
            check_interrupts();
            let mut earlier = row.earlier.iter();
            if !in_memory_of_its_own(|| earlier.all(|row| row.lock(&self.tables))) {
                row.is_open = true;
                are_as_found = false;
            }
        }
        are_as_found
    }

    /// Removes the notes about the rows with the numbers `replaced` in the statement, which were deleted or changed.
    ///
    /// # Safety
    /// The same as for [`Self::lock_earlier`].
    pub unsafe fn remove_notes(&self, replaced: &[usize]) {
        self.write_notes(replaced, &|table, connection, source, row| {
            // Holds the version while its key is used.
            if let Some(old) = source.version(self.written[row].old)
                && let Some(key) = source.columns.key_of(old.as_ptr())
            {
                table.remove(connection, key);
            }
        });
    }

    /// Adds the notes of `rows`.
    ///
    /// # Safety
    /// The same as for [`Self::lock_earlier`]; the earlier rows are locked.
    pub unsafe fn add_notes(&self, rows: &[RowState]) {
        let noted = (0..rows.len()).filter(|row| !rows[*row].earlier.is_empty());
        let noted = collected(noted).or_raise();
        self.write_notes(&noted, &|table, connection, source, number| {
            for earlier in &rows[number].earlier {
                // A trigger on the notes may have deleted the row.
                source.with_row(&self.written[number], |row| {
                    let key = source.columns.key_of(row.slot);
                    let near = earlier.fetch(&self.tables);
                    let near = near.as_ref();
                    let near_key = near.and_then(|(of, slot)| of.columns.key_of(slot.as_ptr()));
                    table.add(connection, [key, near_key], earlier.similarity);
                });
            }
        });
    }

    /// Calls `write` for `rows`, given by their numbers in the statement, if the guard keeps notes.
    fn write_notes(&self, rows: &[usize], write: &dyn Fn(&PairTable, &Connection, &Source, usize)) {
        let source = |row: usize| self.source(&self.written[row]).expect("the row is checked");
        let Some((notes, &first)) = self.rule.options.notes.zip(rows.first()) else {
            return;
        };
        let notes = source(first).notes(notes.table);
        notes.as_owner(|connection| {
            for &row in rows {
                check_interrupts();
                in_memory_of_its_own(|| write(&notes, connection, source(row), row));
            }
        });
    }
}
