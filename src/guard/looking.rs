//! Searches for rows that are similar to the rows of a statement.

use crate::guard::found::{EarlierRow, SimilarRow};
use crate::guard::passing::{Attempt, Passing};
use crate::guard::rejection::{Rejection, rejection};
use crate::guard::row::{Row, RowVersion};
use crate::guard::table::SearchedTable;
use crate::index::classes::KeySearch;
use crate::pg::prelude::*;
use crate::pg::slot::{is_inserted, is_of_same_command, row_place};
use crate::pg::value::in_memory_of_its_own;

/// Compares the rows given to [`pass`](crate::guard::passing::pass).
impl Passing<'_> {
    /// Compares row `number` of the statement with all others. Returns the row's rejection, or None if it may stay. A
    /// guard that keeps notes rejects no row; it adds the similar earlier rows to the row's `earlier`.
    ///
    /// # Safety
    /// The same as for [`pass`](crate::guard::passing::pass).
    pub unsafe fn look_at_all(&self, attempt: &mut Attempt, number: usize) -> Option<Rejection> {
        attempt.rows[number].earlier.clear();
        let mut duplicate = None;
        // A near-duplicate written by the same statement is rolled back with the row. It is reported only if there is
        // no other.
        let mut companion = None;
        self.with_version(number, |row, new| {
            // An UPDATE may keep near pairs.
            let old = row.old.filter(|_| self.rule.options.notes.is_none());
            let old = old.and_then(|old| RowVersion::new(&self.rule, &row.source.columns, old));
            self.for_each_similar(new, &|_| Some(0), &mut |similar| {
                if !self.is_obstacle(attempt, (number, row), old.as_ref(), &similar) {
                    return true;
                }
                if let Some(notes) = self.rule.options.notes {
                    if self.is_earlier(&similar, (number, row)) {
                        let earlier = &mut attempt.rows[number].earlier;
                        let similarity = similar.similarity.share;
                        let place = row_place(similar.slot);
                        EarlierRow { place, similarity }.add_to(earlier, notes.most);
                    }
                    return true;
                }
                let is_companion = is_of_same_command(row.slot, similar.slot);
                if is_companion {
                    companion.get_or_insert_with(|| rejection(row, &similar, true));
                } else {
                    duplicate = Some(rejection(row, &similar, false));
                }
                is_companion
            });
        });
        duplicate.or(companion)
    }

    /// Compares the rows that have to pass with the rows added since the last round, by searching for the smaller set
    /// in the larger one. Opens the rows that are similar to an added one, because these must be compared with all
    /// others again. Returns whether it has opened any.
    ///
    /// # Safety
    /// The same as for [`pass`](crate::guard::passing::pass).
    pub unsafe fn look_at_added(&self, attempt: &mut Attempt) -> bool {
        let mut has_found = false;
        let mut open = |row: usize| {
            attempt.rows[row].is_open = true;
            has_found = true;
        };
        let first_added = |table: &SearchedTable| (table.added() > 0).then(|| table.from.get());
        let added: u64 = self.tables.iter().map(SearchedTable::added).sum();
        if added >= self.order.len() as u64 {
            for &(_, row) in self.order.iter().filter(|_| added > 0) {
                check_interrupts();
                self.with_version(row, |_, new| {
                    self.for_each_similar(new, &first_added, &mut |_| {
                        open(row);
                        false
                    });
                });
            }
            return has_found;
        }
        let has_ours = |table: &SearchedTable| {
            let mut sources = self.sources.iter();
            sources
                .any(|source| source.table.oid() == table.oid())
                .then_some(0)
        };
        for table in &self.tables {
            let Some(from) = first_added(table) else {
                continue;
            };
            table.for_each_live(&KeySearch::Everything, from, &mut |slot, _| {
                in_memory_of_its_own(|| {
                    if let Some(added) = RowVersion::new(&self.rule, &table.columns, slot) {
                        self.for_each_similar(&added, &has_ours, &mut |ours| {
                            self.number(ours.slot).map(&mut open);
                            true
                        });
                    }
                });
                true
            });
        }
        has_found
    }

    /// Calls `work` with row `number` of the statement and its newest version. Does nothing if another guard checks the
    /// row, or if it is gone or cannot be near others.
    ///
    /// # Safety
    /// The same as for [`pass`](crate::guard::passing::pass).
    unsafe fn with_version(&self, number: usize, work: impl FnOnce(&Row<'_>, &RowVersion<'_>)) {
        let written = &self.written[number];
        let Some(source) = self.source(written) else {
            return;
        };
        in_memory_of_its_own(|| {
            source.with_row(written, |row| {
                let version = RowVersion::new(&self.rule, &source.columns, row.slot);
                version.map(|version| work(row, &version))
            })
        });
    }

    /// Calls `visit` for the rows of all transactions that are similar to `version`, until it returns false. `from`
    /// returns the lowest row number to search in a table, or None to skip the table.
    ///
    /// # Safety
    /// `version` is one of a row under the guard's root.
    unsafe fn for_each_similar<'s>(
        &'s self,
        version: &RowVersion<'_>,
        from: &dyn Fn(&SearchedTable) -> Option<u64>,
        visit: &mut dyn FnMut(SimilarRow<'s>) -> bool,
    ) {
        let (mut goes_on, mut known) = (true, None::<(&SearchedTable, _)>);
        for table in &self.tables {
            let Some(from) = from(table).filter(|_| goes_on && table.span.meets(version.span))
            else {
                continue;
            };
            known.take_if(|(other, _)| !table.is_searched_as(other));
            let (_, search) = known.get_or_insert_with(|| (table, table.search(version)));
            table.for_each_live(search, from, &mut |slot, pending| {
                if !version.is_in(slot)
                    && let Some(similarity) = version.similarity(&table.columns, slot)
                {
                    goes_on = visit(SimilarRow {
                        table,
                        slot,
                        similarity,
                        pending,
                    });
                }
                goes_on
            });
        }
    }

    /// Returns whether `similar` counts now. If it depends on a transaction in progress, it may count later, and
    /// `attempt` meets that transaction. It does not count if the pair is an exception, or if the `old` version of our
    /// row was near it, because an UPDATE may keep a near pair.
    ///
    /// # Safety
    /// The same as for [`pass`](crate::guard::passing::pass).
    unsafe fn is_obstacle(
        &self,
        attempt: &mut Attempt,
        (number, row): (usize, &Row<'_>),
        old: Option<&RowVersion<'_>>,
        similar: &SimilarRow<'_>,
    ) -> bool {
        let keys = [
            row.source.columns.key_of(row.slot),
            similar.table.columns.key_of(similar.slot),
        ];
        let is_excused =
            old.is_some_and(|old| self.is_kept_pair(old, similar)) || self.excepts(keys);
        if let Some(pending) = similar.pending.filter(|_| !is_excused) {
            attempt.meet(self.root, (number, row), pending);
        }
        !is_excused && similar.pending.is_none()
    }

    /// Returns whether the `old` version of our row was near `similar` as it is now, or as it was before the statement
    /// if that changed it, too.
    ///
    /// # Safety
    /// The same as for [`pass`](crate::guard::passing::pass).
    unsafe fn is_kept_pair(&self, old: &RowVersion<'_>, similar: &SimilarRow<'_>) -> bool {
        let columns = &similar.table.columns;
        let is_near = |slot| {
            // The slot holds a row of the table.
            old.similarity(columns, slot).is_some()
                && !self.excepts([old.key(), columns.key_of(slot)])
        };
        let before = || {
            let written = &self.written[self.number(similar.slot)?];
            self.source(written)?.version(written.old)
        };
        is_near(similar.slot) || before().is_some_and(|before| is_near(before.as_ptr()))
    }

    /// Returns whether rows with these keys are an exception.
    fn excepts(&self, [a, b]: [Option<pg_sys::Datum>; 2]) -> bool {
        let exceptions = self.exceptions.as_ref().zip(a.zip(b));
        exceptions.is_some_and(|(exceptions, (a, b))| exceptions.has_pair([a, b]))
    }

    /// Returns whether `similar` passes before row `number` of the statement.
    ///
    /// # Safety
    /// The slots hold rows of their tables.
    unsafe fn is_earlier(
        &self,
        similar: &SimilarRow<'_>,
        (number, row): (usize, &Row<'_>),
    ) -> bool {
        match self.number(similar.slot) {
            Some(other) => other < number,
            // Both are rows of an INSERT or COPY whose rows pass one by one.
            None if is_inserted(similar.slot) && is_of_same_command(row.slot, similar.slot) => {
                row_place(similar.slot) < row_place(row.slot)
            }
            None => true,
        }
    }
}
