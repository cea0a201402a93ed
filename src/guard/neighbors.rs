//! The earlier rows that a row which passes is near to: see `notes`.

use crate::guard::check::{Guard, Near, Round, Verdict};
use crate::guard::row::Place;
use crate::guard::row::Row;
use crate::guard::search::OpenTable;
use crate::guard::slot::{Slot, Tid, is_own, tid};
use crate::guard::version::RowVersion;
use crate::pg::error::OrRaise;
use neardup::memory::{Grow, collected};

/// An earlier row near one that passes.
#[derive(Clone, Copy)]
pub struct Neighbor {
    /// The number of its table among the tables that the guard searches.
    pub table: usize,
    pub tid: Tid,
    pub similarity: f64,
}

impl Neighbor {
    /// Adds the row to `others`, which come with the most similar first; keeps at most `most` of them.
    fn add_to(self, others: &mut Vec<Self>, most: usize) {
        let place = others.partition_point(|other| other.similarity >= self.similarity);
        if place < most {
            others.truncate(most - 1);
            others.try_push(self).or_raise();
            others[place..].rotate_right(1);
        }
    }

    /// Locks the row FOR SHARE. Returns whether it is as it was found.
    ///
    /// # Safety
    /// The row was found in one of these tables.
    pub unsafe fn lock(&self, tables: &[OpenTable]) -> bool {
        let table = tables[self.table].relation();
        // SAFETY: vouched for by the caller.
        unsafe {
            let slot = Slot::new(table);
            slot.fetch(table, self.tid) && is_own(slot.as_ptr()) || slot.lock(table, self.tid)
        }
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
            Ok(found) if is_own => self.0[found].2 < number,
            _ => true,
        }
    }
}

impl Row<'_> {
    /// Returns whether the row has to pass: false if nothing that the guard reads has changed, or if a later change
    /// of the row has it checked.
    unsafe fn has_to_pass(&self) -> bool {
        // SAFETY: the slots hold versions of the row.
        unsafe {
            let is_same = |a, b| self.source.columns.are_same_row(a, b);
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
        neighbors: &mut Vec<Neighbor>,
    ) -> Verdict {
        let is_full = round.is_full;
        if is_full {
            neighbors.clear();
        }
        let mut undecided = None;
        let mut has_another = false;
        // SAFETY: vouched for by the caller.
        unsafe {
            let version = RowVersion::new(&self.rule, &row.source.columns, row.slot);
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
                    };
                    neighbor.add_to(neighbors, most);
                }
                !has_another
            });
        }
        match has_another {
            true => Verdict::Again,
            false => undecided.map_or(Verdict::Clear, Verdict::Wait),
        }
    }
}
