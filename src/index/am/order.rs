//! Ordered scans: rows in the exact order of their distance from a query, nearest first.
//!
//! Candidates come from the keys: one that shares few keys is known to be far. A candidate is read from the table once
//! no nearer row is left. If the rows read so far do not fit in work_mem, all other candidates are read, too, and
//! sorted. The remaining rows, the tail, are farther than the index's own bound. When the first of them is needed, all
//! of them are read and sorted.

use super::candidates::{FoundRow, SearchCandidates};
use super::fetch::Fetch;
use super::find::{Remaining, find};
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use crate::index::ball::{NewBall, Within};
use crate::index::classes::{KeySearch, RowKeys};
use crate::pg::prelude::*;
use crate::pg::sort::PairSort;
use pgrx::PgRelation;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};

/// The distance of a row that has none, because its value is NULL or not comparable. This distance is greater than all
/// others. When the row is returned, the operator itself decides between NULL and an error.
const NONE: f64 = f64::INFINITY;

/// A sort of rows, given by number or place, by distance. The keys are the bits of distances, which have the same
/// order, because no distance is negative.
struct RowSort {
    sort: PairSort,
    /// The row with the smallest distance, once all have been sorted.
    next: Option<(f64, u64)>,
}

impl RowSort {
    fn begin() -> Self {
        // SAFETY: reads a setting of the backend.
        let memory = unsafe { pg_sys::work_mem };
        let sort = PairSort::begin(pg_sys::INT8OID, 2, memory);
        Self { sort, next: None }
    }

    fn put(&mut self, distance: f64, row: u64) {
        self.sort.put(distance.to_bits().into(), row as i64);
    }

    fn sorted(mut self) -> Self {
        self.sort.sort();
        self.take();
        self
    }

    /// Takes the row with the smallest distance, or returns None after the last row.
    fn take(&mut self) -> Option<(f64, u64)> {
        let after = self.sort.next();
        let after = after.map(|(bits, row)| (f64::from_bits(bits.value() as u64), row as u64));
        std::mem::replace(&mut self.next, after)
    }
}

/// The rows still to be returned, in order.
pub struct Ordered<'a> {
    /// The query, with the bound that the index has keys for.
    ball: NewBall,
    fetch: Fetch,
    table: RowTable<'a>,
    candidates: SearchCandidates,
    /// Unread candidates, by the minimum distance that they can have.
    unread: RowSort,
    /// Rows that have been read, each as the bits of its distance and its place. The bits have the same order as the
    /// distances, because no distance is negative.
    known: BinaryHeap<Reverse<(u64, u64)>>,
    /// Replaces `known` once all candidates have been read.
    read: Option<RowSort>,
    /// The minimum distance of the tail. None once the tail has been read, or if no row of the tail matches.
    tail: Option<f64>,
}

impl<'a> Ordered<'a> {
    /// Begins with the candidates of `search`, which is for the scan's condition. If that is [`KeySearch::Everything`],
    /// begins with the candidates of `nearest`, which is for rows near the center of `ball`. Calls `look` with the
    /// metapage first.
    pub fn start(
        index: Index<'a>,
        keys: &RowKeys,
        search: KeySearch,
        (ball, nearest): (NewBall, KeySearch),
        look: &dyn Fn(&Meta),
        fetch: Fetch,
    ) -> Self {
        let keys_of = |search: &KeySearch| match search {
            KeySearch::Keys { keys, .. } => keys.clone(),
            _ => Vec::new(),
        };
        // The number of keys that candidates share bounds their distances from below.
        let has_bounds = search == KeySearch::Everything || keys_of(&search) == keys_of(&nearest);
        let (search, mut tail) = match (search, &nearest) {
            (KeySearch::Everything, KeySearch::Keys { needed, .. }) => {
                let least = keys.least_distance(&ball.read(), needed.least() - 1);
                (nearest, Some(least))
            }
            (KeySearch::Everything, _) => (KeySearch::Nothing, Some(0.0)),
            (search, _) => (search, None),
        };
        let (meta, rows) = find(index, &search, 0, true, look);
        let mut candidates = match rows {
            Remaining::Some(candidates, _) => candidates,
            Remaining::All { end, .. } => {
                if end > 0 {
                    tail = Some(0.0);
                }
                SearchCandidates::new()
            }
        };
        let (mut sort, mut least, mut place) = (RowSort::begin(), HashMap::new(), 0);
        while let Some(FoundRow { row, shared }) = candidates.get(place) {
            check_interrupts();
            place += 1;
            let least = least.entry(shared).or_insert_with(|| match has_bounds {
                true => keys.least_distance(&ball.read(), shared as usize),
                false => 0.0,
            });
            sort.put(*least, row);
        }
        Self {
            ball,
            fetch,
            table: RowTable::new(index, &meta),
            candidates,
            unread: sort.sorted(),
            known: BinaryHeap::new(),
            read: None,
            tail,
        }
    }

    /// Returns the next row's place and its distance, or None after the last row. The distance is None if the row has
    /// none.
    ///
    /// # Safety
    /// `keys` and `conditions` belong to the scan for which this value was made.
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
                let result = known.map(|distance| self.ball.read().distance_datum(distance));
                return Some((rows::tid_of(tid), result));
            }
            let is_candidate = unread == Some(least?);
            if is_candidate
                && let Some((_, row)) = self.unread.take()
                && let Some((distance, tid)) = self.look_at(keys, row)
            {
                self.known.try_reserve(1).or_raise();
                self.known.push(Reverse((distance.to_bits(), tid)));
            }
            let most = work_mem_bytes() / size_of::<(u64, u64)>();
            if !is_candidate || self.known.len() > most {
                let mut sort = RowSort::begin();
                self.read_candidates(keys, &mut sort);
                if !is_candidate {
                    self.read_tail(keys, conditions, &mut sort);
                }
                self.read = Some(sort.sorted());
            }
        }
    }

    /// Takes the nearest of the rows that have been read. Returns None if none of them is within `distance`.
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

    /// Reads all remaining candidates, and puts all rows that have been read into `sort`.
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

    /// Returns the distance and the place of a candidate, or None if the candidate is dead or not visible.
    fn look_at(&mut self, keys: &RowKeys, row: u64) -> Option<(f64, u64)> {
        let entry = self.table.live_entry(row)?;
        let center = self.ball.read();
        let distance = self.fetch.row(entry.tid, |values, is_null| {
            distance(&center, keys.compared(values, is_null))
        })?;
        Some((distance, rows::number_of(&entry.tid)))
    }

    /// Reads all rows that are not candidates, and puts the rows that [`RowKeys::is_within`] accepts for `conditions`
    /// into `sort`.
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
        let (meta, center) = (Meta::read(&self.table.index), self.ball.read());
        let mut others = Vec::new();
        for place in self.table.places(&meta) {
            check_interrupts();
            self.table.read_page(place, &mut others);
            others.retain(|(row, _)| !self.candidates.take_until(*row));
            let mut relation = PgRelation::from_pg(self.table.index.as_ptr());
            relation.count_index_tuples(others.len() as i64);
            for (_, RowEntry { tid, .. }) in &others {
                self.table.ensure_in_table(tid);
                let distance = self.fetch.row(*tid, |values, is_null| {
                    let is_within = keys.is_within(conditions, values, is_null);
                    is_within.then(|| distance(&center, keys.compared(values, is_null)))
                });
                if let Some(distance) = distance.flatten() {
                    sort.put(distance, rows::number_of(tid));
                }
            }
        }
    }

    /// Releases the sorts and the buffers of the table.
    pub fn close(self) {
        self.unread.sort.end();
        if let Some(read) = self.read {
            read.sort.end();
        }
        self.fetch.close();
    }
}

fn distance(center: &Within<'_>, value: Option<pg_sys::Datum>) -> f64 {
    // SAFETY: the value belongs to the compared column, and so does the center.
    let distance = value.and_then(|value| unsafe { center.distance(value) });
    distance.unwrap_or(NONE)
}
