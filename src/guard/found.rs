//! Rows found to be similar to a row of the statement.

use crate::guard::row::Similarity;
use crate::guard::search::Pending;
use crate::guard::table::SearchedTable;
use crate::pg::prelude::*;
use crate::pg::slot::{RowPlace, Slot, is_own};

/// A row that is similar to another one.
pub struct SimilarRow<'t> {
    pub table: &'t SearchedTable,
    pub slot: *mut pg_sys::TupleTableSlot,
    pub similarity: Similarity,
    /// The transaction in progress, if any, that inserted the row or is deleting it.
    pub pending: Option<Pending>,
}

/// An earlier row that a row is noted with.
#[derive(Clone, Copy)]
pub struct EarlierRow {
    pub place: RowPlace,
    pub similarity: f64,
}

impl EarlierRow {
    /// Adds the row to `others`, which are sorted by descending similarity, and keeps at most `most` of them.
    pub fn add_to(self, others: &mut Vec<Self>, most: usize) {
        let place = others.partition_point(|other| other.similarity >= self.similarity);
        if place < most {
            others.truncate(most - 1);
            others.try_push(self).or_raise();
            others[place..].rotate_right(1);
        }
    }

    /// Returns the row with its table, or None if the row no longer exists.
    ///
    /// # Safety
    /// The row was found in one of `tables`.
    pub unsafe fn fetch<'t>(
        &self,
        tables: &'t [SearchedTable],
    ) -> Option<(&'t SearchedTable, Slot)> {
        let mut tables = tables.iter();
        let searched = tables.find(|table| table.oid().to_u32() == self.place.0)?;
        let slot = Slot::new(searched.table.as_ptr());
        let is_there = slot.fetch(searched.table.as_ptr(), self.place.1);
        is_there.then_some((searched, slot))
    }

    /// Locks the row FOR SHARE, unless the running transaction wrote it. Returns whether it is unchanged since it was
    /// found.
    ///
    /// # Safety
    /// The same as for [`Self::fetch`].
    pub unsafe fn lock(&self, tables: &[SearchedTable]) -> bool {
        self.fetch(tables).is_some_and(|(searched, slot)| {
            is_own(slot.as_ptr()) || slot.lock(searched.table.as_ptr(), self.place.1)
        })
    }
}
