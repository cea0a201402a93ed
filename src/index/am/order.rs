//! Ordered scans: rows in the order of their distance from a query, exactly, the nearest first.
//!
//! Candidates come from the keys: one that shares few of them is known to be far. A candidate is read
//! from the table when nothing nearer is left; where work_mem does not hold those that have been read,
//! all others are read, too, and sorted. The other rows, the tail, are farther than the index's own bound:
//! the first of them to be asked for has all of them read and sorted.

use super::candidates::Approaching;
use super::fetch::Fetch;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use super::statistics::count_rows;
use crate::index::classes::{DistanceOrder, RowKeys};
use crate::pg::error::{check_interrupts, or_out_of_memory};
use crate::pg::settings::work_mem_bytes;
use crate::pg::sort::DistanceSort;
use pgrx::pg_sys;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The distance of a row that has none, NULL, or values that do not compare: beyond all others. The
/// operator itself says which when the row is returned.
const NONE: f64 = f64::INFINITY;

/// A row whose distance is known, by the distance's bits: distances are not negative, and in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    bits: u64,
    tid: u64,
}

impl Known {
    fn new(distance: f64, tid: u64) -> Self {
        let bits = distance.to_bits();
        Self { bits, tid }
    }

    fn distance(self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// Rows that are sorted when the first of them is asked for.
enum SortedRows {
    /// There are none, or none that match.
    Empty,
    /// None of them is nearer than this.
    Unread(f64),
    /// The next of them, and the others.
    Read(Known, DistanceSort),
}

impl SortedRows {
    /// Returns the rest of a sort.
    fn of(mut sort: DistanceSort) -> Self {
        match sort.next() {
            Some((distance, tid)) => Self::Read(Known::new(distance, tid as u64), sort),
            None => {
                sort.end();
                Self::Empty
            }
        }
    }

    /// Returns a distance that no row is below; None if there are none.
    fn least(&self) -> Option<f64> {
        match self {
            Self::Empty => None,
            Self::Unread(least) => Some(*least),
            Self::Read(first, _) => Some(first.distance()),
        }
    }

    fn end(self) {
        if let Self::Read(_, sort) = self {
            sort.end();
        }
    }
}

/// Rows that are left to be returned, in order.
pub struct Ordered<'a> {
    index: Index<'a>,
    order: Box<dyn DistanceOrder>,
    fetch: Fetch,
    table: RowTable<'a>,
    known: BinaryHeap<Reverse<Known>>,
    candidates: Approaching,
    /// Candidates that have been read.
    read: SortedRows,
    /// Rows that are no candidates.
    tail: SortedRows,
    /// Rows of the tail that have been read.
    beyond: u64,
}

impl<'a> Ordered<'a> {
    /// Takes the candidates. `tail` is the least distance of all other rows; None if they do not match.
    pub fn new(
        index: Index<'a>,
        order: Box<dyn DistanceOrder>,
        fetch: Fetch,
        table: RowTable<'a>,
        candidates: Approaching,
        tail: Option<f64>,
    ) -> Self {
        Self {
            index,
            order,
            fetch,
            table,
            known: BinaryHeap::new(),
            candidates,
            read: SortedRows::Empty,
            tail: tail.map_or(SortedRows::Empty, SortedRows::Unread),
            beyond: 0,
        }
    }

    /// Returns the next row's place and its distance, NULL if it has none.
    ///
    /// # Safety
    /// The scan is the one that this was made for.
    pub unsafe fn next(
        &mut self,
        keys: &RowKeys,
        conditions: &mut [pg_sys::ScanKeyData],
    ) -> Option<(pg_sys::ItemPointerData, Option<pg_sys::Datum>)> {
        loop {
            check_interrupts();
            let all = [
                self.candidates.least(),
                self.read.least(),
                self.tail.least(),
            ];
            let least = all.into_iter().flatten().min_by(f64::total_cmp);
            if let Some(Reverse(nearest)) = self.known.peek()
                && least.is_none_or(|least| nearest.distance() <= least)
            {
                let found = *nearest;
                self.known.pop();
                return Some(self.returned(found));
            }
            let least = least?;
            if self.candidates.least() == Some(least) {
                self.take_candidate(keys);
                continue;
            }
            let sorted = match self.read.least() == Some(least) {
                true => &mut self.read,
                false => &mut self.tail,
            };
            match std::mem::replace(sorted, SortedRows::Empty) {
                SortedRows::Empty => {}
                SortedRows::Unread(_) => {
                    // SAFETY: vouched for by the caller.
                    self.tail = SortedRows::of(unsafe { self.read_tail(keys, conditions) });
                }
                SortedRows::Read(first, sort) => {
                    *sorted = SortedRows::of(sort);
                    self.keep(first);
                }
            }
        }
    }

    /// Reads the next candidate, or all that are left.
    fn take_candidate(&mut self, keys: &RowKeys) {
        let Some(row) = self.candidates.next() else {
            return;
        };
        if let Some(known) = self.look_at(keys, row) {
            self.keep(known);
        }
        if self.known.len() > work_mem_bytes() / size_of::<Known>() {
            let mut sort = DistanceSort::begin();
            let mut put = |known: Known| sort.put(known.distance(), known.tid as i64);
            let known = std::mem::take(&mut self.known);
            known.into_iter().for_each(|Reverse(known)| put(known));
            while let Some(row) = self.candidates.next() {
                self.look_at(keys, row).into_iter().for_each(&mut put);
            }
            sort.sort();
            self.read = SortedRows::of(sort);
        }
    }

    fn returned(&self, known: Known) -> (pg_sys::ItemPointerData, Option<pg_sys::Datum>) {
        let distance = Some(known.distance()).filter(|distance| *distance != NONE);
        let distance = distance.map(|distance| self.order.result(distance));
        (rows::tid_of(known.tid), distance)
    }

    fn keep(&mut self, known: Known) {
        or_out_of_memory(self.known.try_reserve(1));
        self.known.push(Reverse(known));
    }

    /// Reads a candidate from the table; None if it is not visible.
    fn look_at(&mut self, keys: &RowKeys, row: u64) -> Option<Known> {
        let entry = self.table.live_entry(row)?;
        self.table.ensure_in_table(&entry.tid);
        let order = &*self.order;
        let distance = self.fetch.row(entry.tid, |values, is_null| {
            distance(order, keys.compared(values, is_null))
        })?;
        Some(Known::new(distance, rows::number_of(&entry.tid)))
    }

    /// Reads and sorts all rows that are no candidates, as far as they are in the scope that is asked
    /// for.
    ///
    /// # Safety
    /// As of [`Self::next`].
    unsafe fn read_tail(
        &mut self,
        keys: &RowKeys,
        conditions: &mut [pg_sys::ScanKeyData],
    ) -> DistanceSort {
        let mut sort = DistanceSort::begin();
        let meta = super::meta::Meta::read(&self.index);
        let mut others = Vec::new();
        for place in self.table.places(&meta) {
            check_interrupts();
            self.table.read_page(place, &mut others);
            others.retain(|(row, _)| !self.candidates.contains(*row));
            // SAFETY: the scan is going on.
            unsafe { count_rows(self.index.as_ptr(), others.len()) };
            self.beyond += others.len() as u64;
            for (_, RowEntry { tid, .. }) in &others {
                self.table.ensure_in_table(tid);
                let order = &*self.order;
                let distance = self.fetch.row(*tid, |values, is_null| {
                    // SAFETY: vouched for by the caller.
                    let is_within = unsafe { keys.is_within(conditions, values, is_null) };
                    is_within.then(|| distance(order, keys.compared(values, is_null)))
                });
                if let Some(distance) = distance.flatten() {
                    sort.put(distance, rows::number_of(tid) as i64);
                }
            }
        }
        sort.sort();
        sort
    }

    /// Returns the number of rows read that are no candidates.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Releases its sorts and its rows of the table.
    pub fn close(self) {
        self.read.end();
        self.tail.end();
        self.fetch.close();
    }
}

fn distance(order: &dyn DistanceOrder, value: Option<pg_sys::Datum>) -> f64 {
    // SAFETY: the value belongs to the compared column, as the order does.
    let distance = value.and_then(|value| unsafe { order.distance(value) });
    distance.unwrap_or(NONE)
}
