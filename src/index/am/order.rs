//! Ordered scans: rows in the order of their distance from a query, exactly, the nearest first.
//!
//! Candidates come from the keys: one that shares few of them is known to be far. A candidate is read
//! from the table when nothing nearer is left; where work_mem does not hold those that have been read,
//! all others are read, too, and sorted. The other rows, the tail, are farther than the index's own bound:
//! the first of them to be asked for has all of them read and sorted.

use super::candidates::{FoundRow, SearchCandidates};
use super::fetch::Fetch;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use super::statistics::count;
use crate::index::classes::{DistanceOrder, RowKeys};
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::settings::work_mem_bytes;
use crate::pg::sort::PairSort;
use pgrx::pg_sys;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};

/// The distance of a row that has none, NULL, or values that do not compare: beyond all others. The
/// operator itself says which when the row is returned.
const NONE: f64 = f64::INFINITY;

/// Sorts rows, each with its number or its place, by a distance: by its bits, which are in the order of
/// distances as none is negative.
struct RowSort(PairSort);

impl RowSort {
    fn begin() -> Self {
        // SAFETY: reads a setting of the backend.
        let memory = unsafe { pg_sys::work_mem };
        Self(PairSort::begin(pg_sys::INT8OID, 2, memory))
    }

    fn put(&mut self, distance: f64, row: u64) {
        self.0.put(distance.to_bits().into(), row as i64);
    }
}

/// Rows, each with its number or its place, by a distance.
struct SortedRows {
    sort: PairSort,
    next: Option<(f64, u64)>,
}

impl SortedRows {
    fn of(RowSort(mut sort): RowSort) -> Self {
        sort.sort();
        let mut rows = Self { sort, next: None };
        rows.take();
        rows
    }

    /// Takes the row with the least distance.
    fn take(&mut self) -> Option<(f64, u64)> {
        let after = self.sort.next();
        let after = after.map(|(bits, row)| (f64::from_bits(bits.value() as u64), row as u64));
        std::mem::replace(&mut self.next, after)
    }
}

/// Rows that are left to be returned, in order.
pub struct Ordered<'a> {
    index: Index<'a>,
    order: Box<dyn DistanceOrder>,
    fetch: Fetch,
    table: RowTable<'a>,
    candidates: SearchCandidates,
    /// Candidates that have not been read, by the least distance that they can have.
    unread: SortedRows,
    /// The bits of distances, which are in the order of distances as none is negative, and places of rows that
    /// have been read.
    known: BinaryHeap<Reverse<(u64, u64)>>,
    /// Places of rows that have been read, in place of `known` once all candidates have been.
    read: Option<SortedRows>,
    /// The least distance of the tail; None once it has been read, or if it does not match.
    tail: Option<f64>,
}

impl<'a> Ordered<'a> {
    /// Takes the candidates; `has_bounds` if the order knows their least distances by how many keys they share.
    /// `tail` is the least distance of all other rows; None if they do not match.
    pub fn new(
        index: Index<'a>,
        order: Box<dyn DistanceOrder>,
        fetch: Fetch,
        table: RowTable<'a>,
        mut candidates: SearchCandidates,
        has_bounds: bool,
        tail: Option<f64>,
    ) -> Self {
        let (mut sort, mut least, mut place) = (RowSort::begin(), HashMap::new(), 0);
        while let Some(FoundRow { row, shared }) = candidates.get(place) {
            check_interrupts();
            place += 1;
            let least = least.entry(shared).or_insert_with(|| match has_bounds {
                true => order.least_distance(shared as usize),
                false => 0.0,
            });
            sort.put(*least, row);
        }
        Self {
            index,
            order,
            fetch,
            table,
            candidates,
            unread: SortedRows::of(sort),
            known: BinaryHeap::new(),
            read: None,
            tail,
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
            let unread = self.unread.next.map(|(least, _)| least);
            let least = [unread, self.tail].into_iter().flatten();
            let least = least.min_by(f64::total_cmp);
            if let Some((distance, tid)) = self.take_within(least.unwrap_or(NONE)) {
                let known = Some(distance).filter(|distance| *distance != NONE);
                let result = known.map(|distance| self.order.result(distance));
                return Some((rows::tid_of(tid), result));
            }
            let is_candidate = unread == Some(least?);
            if is_candidate {
                self.take_candidate(keys);
            }
            let most = work_mem_bytes() / size_of::<(u64, u64)>();
            if !is_candidate || self.known.len() > most {
                let mut sort = RowSort::begin();
                self.read_candidates(keys, &mut sort);
                if !is_candidate {
                    self.read_tail(keys, conditions, &mut sort);
                }
                self.read = Some(SortedRows::of(sort));
            }
        }
    }

    /// Takes the nearest row that has been read, unless it is beyond a distance.
    fn take_within(&mut self, distance: f64) -> Option<(f64, u64)> {
        if let Some(read) = &mut self.read {
            read.next.filter(|(nearest, _)| *nearest <= distance)?;
            return read.take();
        }
        let nearest = self.known.peek_mut()?;
        let Reverse((bits, tid)) = *nearest;
        (f64::from_bits(bits) <= distance).then(|| {
            PeekMut::pop(nearest);
            (f64::from_bits(bits), tid)
        })
    }

    /// Reads the next candidate from the table.
    fn take_candidate(&mut self, keys: &RowKeys) {
        if let Some((_, row)) = self.unread.take()
            && let Some((distance, tid)) = self.look_at(keys, row)
        {
            self.known.try_reserve(1).or_raise();
            self.known.push(Reverse((distance.to_bits(), tid)));
        }
    }

    /// Reads all candidates that are left, and puts the rows that have been read into a sort.
    fn read_candidates(&mut self, keys: &RowKeys, sort: &mut RowSort) {
        for Reverse((bits, tid)) in std::mem::take(&mut self.known) {
            sort.put(f64::from_bits(bits), tid);
        }
        if let Some(mut read) = self.read.take() {
            while let Some((distance, tid)) = read.take() {
                sort.put(distance, tid);
            }
            read.sort.end();
        }
        while let Some((_, row)) = self.unread.take() {
            if let Some((distance, tid)) = self.look_at(keys, row) {
                sort.put(distance, tid);
            }
        }
    }

    /// Returns the distance and the place of a candidate; None if it is not visible.
    fn look_at(&mut self, keys: &RowKeys, row: u64) -> Option<(f64, u64)> {
        let entry = self.table.live_entry(row)?;
        let order = &*self.order;
        let distance = self.fetch.row(entry.tid, |values, is_null| {
            distance(order, keys.compared(values, is_null))
        })?;
        Some((distance, rows::number_of(&entry.tid)))
    }

    /// Reads all rows that are no candidates, as far as they are in the scope that is asked for.
    ///
    /// # Safety
    /// The same as for [`Self::next`].
    unsafe fn read_tail(
        &mut self,
        keys: &RowKeys,
        conditions: &mut [pg_sys::ScanKeyData],
        sort: &mut RowSort,
    ) {
        self.tail = None;
        let meta = Meta::read(&self.index);
        let mut others = Vec::new();
        for place in self.table.places(&meta) {
            check_interrupts();
            self.table.read_page(place, &mut others);
            others.retain(|(row, _)| !self.candidates.take_until(*row));
            // SAFETY: the scan is going on.
            unsafe { count(self.index.as_ptr(), 0, others.len() as i64) };
            for (_, RowEntry { tid, .. }) in &others {
                self.table.ensure_in_table(tid);
                let order = &*self.order;
                let distance = self.fetch.row(*tid, |values, is_null| {
                    let is_within = keys.is_within(conditions, values, is_null);
                    is_within.then(|| distance(order, keys.compared(values, is_null)))
                });
                if let Some(distance) = distance.flatten() {
                    sort.put(distance, rows::number_of(tid));
                }
            }
        }
    }

    /// Releases its sorts and its rows of the table.
    pub fn close(self) {
        self.unread.sort.end();
        if let Some(read) = self.read {
            read.sort.end();
        }
        self.fetch.close();
    }
}

fn distance(order: &dyn DistanceOrder, value: Option<pg_sys::Datum>) -> f64 {
    // SAFETY: the value belongs to the compared column, as the order does.
    let distance = value.and_then(|value| unsafe { order.distance(value) });
    distance.unwrap_or(NONE)
}
