//! A guard, and the rows that are similar to a row that it checks.

use crate::guard::columns::GuardColumns;
use crate::guard::exceptions::Exceptions;
use crate::guard::options::Notes;
use crate::guard::row::Row;
use crate::guard::search::{CheckedRow, OpenTable, Pending};
use crate::guard::slot::{get, have_same_bits};
use crate::guard::table::{PartitionedTable, Rule};
use crate::guard::version::{RowVersion, Similarity};
use crate::guard::window::Span;
use crate::pg::names;
use crate::pg::statement::server_text;
use pgrx::pg_sys;
use std::ffi::CString;

/// A guard with the tables that it searches.
pub struct Guard {
    pub rule: Rule,
    pub exceptions: Option<Exceptions>,
    /// The moments of rows that can be near the rows it checks; None if it checks none.
    pub reach: Option<Span>,
    pub tables: Vec<OpenTable>,
    pub partitioned: Vec<PartitionedTable>,
}

/// A row that is similar to the one that is checked.
pub struct SimilarRow<'t> {
    /// The number of its table among those that the guard searches.
    pub number: usize,
    pub table: &'t OpenTable,
    pub slot: *mut pg_sys::TupleTableSlot,
    pub similarity: Similarity,
    /// The transaction in progress that decides whether it is there.
    pub pending: Option<Pending>,
}

impl Guard {
    /// Returns the notes of a guard that lets rows in.
    pub fn notes(&self) -> Option<&Notes> {
        self.rule.options.notes.as_ref()
    }

    /// Returns whether an UPDATE has left a row as it was, as far as the guard is concerned.
    ///
    /// # Safety
    /// The slots hold versions of a row in a table with these columns.
    pub unsafe fn is_unchanged(
        &self,
        columns: &GuardColumns,
        old: *mut pg_sys::TupleTableSlot,
        new: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: vouched for by the caller.
        unsafe {
            let names_rows = self.notes().is_some() || self.exceptions.is_some();
            let key = columns.key.filter(|_| names_rows);
            columns.are_same(old, new) && key.is_none_or(|key| have_same_bits(old, new, &[key]))
        }
    }

    /// Returns whether two rows are a pair that is excepted.
    ///
    /// # Safety
    /// The slots hold rows of tables with these columns, under the guard's root.
    pub unsafe fn excepts(
        &self,
        a: (&GuardColumns, *mut pg_sys::TupleTableSlot),
        b: (&GuardColumns, *mut pg_sys::TupleTableSlot),
    ) -> bool {
        let exceptions = self.exceptions.as_ref();
        // SAFETY: vouched for by the caller.
        exceptions.is_some_and(|exceptions| unsafe { exceptions.have(a, b) })
    }

    /// Visits the other rows that a version of the row is similar to, until `visit` returns false: all, or with
    /// `is_added` those that came since the round before.
    ///
    /// # Safety
    /// The row is one of a table under the guard's root, the version is the row's, and a snapshot is active.
    pub unsafe fn for_each_similar<'t>(
        &'t self,
        row: &Row<'_>,
        version: &RowVersion<'_>,
        is_added: bool,
        visit: &mut dyn FnMut(SimilarRow<'t>) -> bool,
    ) {
        let mut goes_on = true;
        let mut known = None;
        for (number, table) in self.tables.iter().enumerate() {
            if is_added && table.added() == 0 || !table.table.span.meets(version.span) {
                continue;
            }
            known.take_if(|(like, _)| *like != table.like);
            let (_, search) = known.get_or_insert_with(|| (table.like, table.search(version)));
            let checked = (row.source.table.oid() == table.table.oid).then_some(CheckedRow {
                tid: row.tid,
                is_indexed: row.is_indexed,
            });
            let from = if is_added { table.from() } else { 0 };
            table.for_each_live(search, checked, from, &mut |slot, pending| {
                // SAFETY: the slot holds a row of the table.
                if let Some(similarity) = unsafe { version.similarity(&table.table.columns, slot) }
                {
                    goes_on = visit(SimilarRow {
                        number,
                        table,
                        slot,
                        similarity,
                        pending,
                    });
                }
                goes_on
            });
            if !goes_on {
                return;
            }
        }
    }
}

/// The row found, as a rejection describes it.
pub struct Description {
    /// Both rows, their similarity, and the origin of the row found.
    pub detail: CString,
    /// The value by which a program finds the row.
    pub key: Option<CString>,
}

/// Returns the description of a row found, with its `origin`; None if the role may not see it.
///
/// # Safety
/// The slots hold rows of their tables.
pub unsafe fn describe(
    row: &Row<'_>,
    similar: &SimilarRow<'_>,
    origin: &str,
) -> Option<Description> {
    let (table, similarity) = (&similar.table.table, similar.similarity);
    if table.hides_rows() {
        return None;
    }
    // SAFETY: vouched for by the caller; the row is one of its table.
    unsafe {
        let theirs = table.columns.primary_key(similar.slot)?;
        let ours = row.source.columns.primary_key(row.slot);
        let mut detail = match &ours {
            Some(key) => [&b"Row "[..], key.as_bytes()].concat(),
            None => b"The row".to_vec(),
        };
        detail.extend_from_slice(format!(" {similarity} row ").as_bytes());
        detail.extend_from_slice(theirs.as_bytes());
        if row.source.table.oid() != table.oid {
            let table = server_text(&names::relation(table.oid));
            detail.extend_from_slice(b" of table ");
            detail.extend_from_slice(table.to_bytes());
        }
        detail.extend_from_slice(origin.as_bytes());
        detail.push(b'.');
        Some(Description {
            detail: CString::new(detail).ok()?,
            key: table.columns.key_value(similar.slot),
        })
    }
}

impl GuardColumns {
    /// Returns whether two versions of a row have the same values, bit for bit, in all columns that decide
    /// whether rows are near each other. An UPDATE stores a long document anew even where it sets the same one.
    ///
    /// # Safety
    /// The slots hold rows of a table with these columns.
    pub unsafe fn are_same(
        &self,
        old: *mut pg_sys::TupleTableSlot,
        new: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: vouched for by the caller.
        unsafe {
            self.counts(old) == self.counts(new)
                && self
                    .window
                    .is_none_or(|window| window.around(old) == window.around(new))
                && self
                    .scope
                    .iter()
                    .all(|column| column.same(get(old, column.number), get(new, column.number)))
                && have_same_bits(old, new, &[self.value])
        }
    }
}
