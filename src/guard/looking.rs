//! Searches for rows that are similar to the rows of a statement.

use crate::guard::columns::GuardColumns;
use crate::guard::exceptions::Exceptions;
use crate::guard::notes::EarlierRow;
use crate::guard::options::Notes;
use crate::guard::passing::{Attempt, Passing};
use crate::guard::rejection::Rejection;
use crate::guard::row::{Row, version, with_row};
use crate::guard::search::Pending;
use crate::guard::slot::{is_inserted, is_of_same_command, is_own, tid};
use crate::guard::table::{PartitionedTable, Rule, SearchedTable};
use crate::guard::version::{RowVersion, Similarity};
use crate::guard::window::Span;
use crate::index::classes::KeySearch;
use crate::pg::error::check_interrupts;
use crate::pg::value::in_memory_of_its_own;
use pgrx::pg_sys;

/// A guard with the tables that it searches.
pub struct Guard {
    pub rule: Rule,
    pub exceptions: Option<Exceptions>,
    /// The time span of rows that can be near the checked rows, None if no row is checked.
    pub reach: Option<Span>,
    pub tables: Vec<SearchedTable>,
    pub partitioned: Vec<PartitionedTable>,
}

/// A row that is similar to the checked row.
pub struct SimilarRow<'t> {
    /// The number of its table in [`Guard::tables`].
    pub number: usize,
    pub table: &'t SearchedTable,
    pub slot: *mut pg_sys::TupleTableSlot,
    pub similarity: Similarity,
    /// The transaction in progress that inserted or deletes it.
    pub pending: Option<Pending>,
}

/// Visits a row that rejects the checked row, or is noted with it. Returns whether to go on.
type VisitObstacle<'v, 's> = dyn FnMut(&mut Attempt, &Row<'_>, SimilarRow<'s>) -> bool + 'v;

impl Guard {
    /// Returns the notes of a guard that accepts near-duplicates, None for a guard that rejects them.
    pub fn notes(&self) -> Option<&Notes> {
        self.rule.options.notes.as_ref()
    }

    /// Returns whether two rows are an exception.
    ///
    /// # Safety
    /// The slots hold rows of tables with these columns, under the guard's root.
    unsafe fn excepts(
        &self,
        a: (&GuardColumns, *mut pg_sys::TupleTableSlot),
        b: (&GuardColumns, *mut pg_sys::TupleTableSlot),
    ) -> bool {
        let exceptions = self.exceptions.as_ref();
        exceptions.is_some_and(|exceptions| exceptions.have(a, b))
    }
}

/// The places are those of [`pass`](crate::guard::passing::pass).
impl Passing<'_> {
    /// Compares a row with all others. Returns its rejection, or collects the earlier rows that are noted with it.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    pub unsafe fn look_at_all(&self, attempt: &mut Attempt, number: usize) -> Option<Rejection> {
        attempt.rows[number].earlier.clear();
        let mut duplicate = None;
        // A near-duplicate written by the same statement is rolled back with the row. It is reported only if there is
        // no other.
        let mut companion = None;
        self.for_each_obstacle(attempt, number, false, &mut |attempt, row, similar| {
            if let Some(notes) = self.guards[row.source.guard].notes() {
                if self.is_earlier(&similar, (number, row)) {
                    let earlier = &mut attempt.rows[number].earlier;
                    EarlierRow::new(&similar).add_to(earlier, notes.most);
                }
                return true;
            }
            let is_companion = is_of_same_command(row.slot, similar.slot);
            if is_companion {
                companion.get_or_insert_with(|| Rejection::new(row, &similar, true));
            } else {
                duplicate = Some(Rejection::new(row, &similar, false));
            }
            is_companion
        });
        duplicate.or(companion)
    }

    /// Compares the rows with those added since the last round. Searches for the fewer of both among the others. Opens
    /// the rows that have to be compared with all others again. Returns whether there are any.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    pub unsafe fn look_at_added(&self, attempt: &mut Attempt) -> bool {
        let mut has_found = false;
        for (number, guard) in self.guards.iter().enumerate() {
            let rows = self.order.iter().filter(|row| row.0 == number);
            let added: u64 = guard.tables.iter().map(SearchedTable::added).sum();
            if added < rows.clone().count() as u64 {
                for table in guard.tables.iter().filter(|table| table.added() > 0) {
                    has_found |= self.look_from_added(attempt, number, table);
                }
                continue;
            }
            for &(.., row) in rows.filter(|_| added > 0) {
                check_interrupts();
                self.for_each_obstacle(attempt, row, true, &mut |attempt, _, _| {
                    attempt.rows[row].is_open = true;
                    has_found = true;
                    false
                });
            }
        }
        has_found
    }

    /// Searches for our rows near each row added to `table` since the last round. Opens those for which it counts.
    /// Returns whether there are any.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    unsafe fn look_from_added(
        &self,
        attempt: &mut Attempt,
        guard: usize,
        table: &SearchedTable,
    ) -> bool {
        let Guard { rule, tables, .. } = &self.guards[guard];
        let mut has_found = false;
        let has_ours = |searched: &&SearchedTable| {
            let mut sources = self.sources.iter();
            sources.any(|source| source.guard == guard && source.table.oid() == searched.oid())
        };
        table.for_each_live(
            &KeySearch::Everything,
            table.from.get(),
            &mut |slot, pending| {
                // Frees what a comparison allocates.
                in_memory_of_its_own(|| {
                    let added = (!is_own(slot))
                        .then(|| RowVersion::new(rule, &table.columns, slot))
                        .flatten();
                    let Some(added) = added else { return };
                    for searched in tables.iter().filter(has_ours) {
                        let search = searched.search(&added);
                        searched.for_each_live(&search, 0, &mut |ours, _| {
                            let found = self.number(guard, searched.oid(), tid(ours));
                            let similarity = added.similarity(&searched.columns, ours);
                            if let Some((number, similarity)) = found.zip(similarity) {
                                let similar = SimilarRow {
                                    number: 0,
                                    table,
                                    slot,
                                    similarity,
                                    pending,
                                };
                                if self.meets(attempt, number, &similar) {
                                    attempt.rows[number].is_open = true;
                                    has_found = true;
                                }
                            }
                            true
                        });
                    }
                });
                true
            },
        );
        has_found
    }

    /// Returns whether a similar row counts for the row at place `number`.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    unsafe fn meets(&self, attempt: &mut Attempt, number: usize, added: &SimilarRow<'_>) -> bool {
        let place = &self.places[number];
        let meets = self.source(place).and_then(|source| {
            with_row(place, source, |row| {
                let old = self.old_version(row);
                self.is_obstacle(attempt, (number, row), old.as_ref(), added)
            })
        });
        meets == Some(true)
    }

    /// Calls `visit` for the similar rows that count for the row at place `number`, until it returns false. Searches
    /// all rows, or those added since the last round if `is_added`.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    unsafe fn for_each_obstacle<'s>(
        &'s self,
        attempt: &mut Attempt,
        number: usize,
        is_added: bool,
        visit: &mut VisitObstacle<'_, 's>,
    ) {
        let place = &self.places[number];
        let Some(source) = self.source(place) else {
            return;
        };
        let Guard { rule, tables, .. } = &self.guards[source.guard];
        let compare = |row: &Row<'_>| {
            let Some(new) = RowVersion::new(rule, &source.columns, row.slot) else {
                return;
            };
            let old = self.old_version(row);
            let (mut goes_on, mut known) = (true, None);
            for (table_number, table) in tables.iter().enumerate() {
                let has_some = !is_added || table.added() > 0;
                if !goes_on || !has_some || !table.span.meets(new.span) {
                    continue;
                }
                known.take_if(|(like, _)| *like != table.like);
                let (_, search) = known.get_or_insert_with(|| (table.like, table.search(&new)));
                let from = if is_added { table.from.get() } else { 0 };
                table.for_each_live(search, from, &mut |slot, pending| {
                    let is_itself = table.oid() == source.table.oid() && tid(slot) == row.tid;
                    let similarity = (!is_itself).then(|| new.similarity(&table.columns, slot));
                    if let Some(similarity) = similarity.flatten() {
                        let similar = SimilarRow {
                            number: table_number,
                            table,
                            slot,
                            similarity,
                            pending,
                        };
                        goes_on = !self.is_obstacle(attempt, (number, row), old.as_ref(), &similar)
                            || visit(attempt, row, similar);
                    }
                    goes_on
                });
            }
        };
        in_memory_of_its_own(|| with_row(place, source, compare));
    }

    /// Returns the version of a row that an UPDATE replaced, if its near pairs may stay.
    ///
    /// # Safety
    /// The row is one of its source.
    unsafe fn old_version<'r>(&'r self, row: &'r Row<'_>) -> Option<RowVersion<'r>> {
        let guard = &self.guards[row.source.guard];
        let old = row.old.filter(|_| guard.notes().is_none())?;
        RowVersion::new(&guard.rule, &row.source.columns, old)
    }

    /// Returns whether a similar row counts now. If it depends on a transaction in progress, it may count later. It
    /// does not count if the `old` version of our row was near it, because an UPDATE may keep a near pair.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    unsafe fn is_obstacle(
        &self,
        attempt: &mut Attempt,
        (number, row): (usize, &Row<'_>),
        old: Option<&RowVersion<'_>>,
        similar: &SimilarRow<'_>,
    ) -> bool {
        let guard = &self.guards[row.source.guard];
        let theirs = (&similar.table.columns, similar.slot);
        let is_excused = old.is_some_and(|old| self.is_kept_pair(row.source.guard, old, similar))
            || guard.excepts((&row.source.columns, row.slot), theirs);
        if let Some(pending) = similar.pending.filter(|_| !is_excused) {
            attempt.meet(self.root, (number, row), pending);
        }
        !is_excused && similar.pending.is_none()
    }

    /// Returns whether the `old` version of our row was near the other row as it is now, or as it was before the
    /// statement if that changed it, too.
    ///
    /// # Safety
    /// As for [`pass`](crate::guard::passing::pass).
    unsafe fn is_kept_pair(
        &self,
        guard: usize,
        old: &RowVersion<'_>,
        similar: &SimilarRow<'_>,
    ) -> bool {
        let table = similar.table;
        let is_near = |slot| {
            // The slot holds a row of the table.
            old.similarity(&table.columns, slot).is_some()
                && !self.guards[guard].excepts(old.row(), (&table.columns, slot))
        };
        let before = || {
            let number = self.number(guard, table.oid(), tid(similar.slot))?;
            let place = &self.places[number];
            version(self.source(place)?, place.old)
        };
        is_near(similar.slot) || before().is_some_and(|before| is_near(before.as_ptr()))
    }

    /// Returns whether a similar row passes before the row at place `number`.
    ///
    /// # Safety
    /// The slots hold rows of their tables.
    unsafe fn is_earlier(
        &self,
        similar: &SimilarRow<'_>,
        (number, row): (usize, &Row<'_>),
    ) -> bool {
        let (table, source) = (similar.table.oid(), row.source);
        match self.number(source.guard, table, tid(similar.slot)) {
            Some(other) => other < number,
            // Both are rows of an INSERT or COPY whose rows pass one by one.
            None if is_inserted(similar.slot) && is_of_same_command(row.slot, similar.slot) => {
                (table.to_u32(), tid(similar.slot)) < (source.table.oid().to_u32(), row.tid)
            }
            None => true,
        }
    }
}
