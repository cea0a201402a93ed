//! Searches that are known before the scans that ask for them: their candidates are found together,
//! which takes a fraction of the time of one search after the other.

use super::ahead::PageReader;
use super::candidates::{self, FoundRow};
use super::fetch::Versions;
use super::find::with_meta;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::RowTable;
use super::segment::{Stop, groups};
use crate::index::classes::KeySearch;
use crate::pg::error::OrRaise;
use crate::pg::settings::work_mem_bytes;
use crate::pg::statement::Snapshot;
use neardup::memory::{Grow, collected, with_room};
use neardup::postings::Queries;
use pgrx::pg_sys;
use std::cell::Cell;

/// The most keys of queries that are searched together.
const MOST_KEYS: usize = 1 << 19;

/// Candidates of a search up to which those that the snapshot does not see are left out.
pub const FEW: usize = 32;

/// Candidates that have been found ahead under a snapshot. Until this is dropped, scans with the same search
/// return them. Rows that the snapshot does not see may be missing.
pub struct Foreseen {
    /// Candidates that work_mem still has room for.
    room: Cell<usize>,
}

impl Foreseen {
    pub fn new() -> Self {
        let room = Cell::new(work_mem_bytes() / size_of::<FoundRow>());
        Self { room }
    }

    /// Finds the candidates of searches of an index, and returns the number of each: up to
    /// [`FEW`], only rows that the snapshot sees. Searches that meet keys of many rows, or whose candidates
    /// work_mem does not hold, are left to their scans: None.
    ///
    /// # Safety
    /// The relation is an open index of this access method, whose table is locked.
    pub unsafe fn find(
        &self,
        relation: pg_sys::Relation,
        searches: &[KeySearch],
        snapshot: &Snapshot,
    ) -> Vec<Option<usize>> {
        // SAFETY: vouched for by the caller. The lock is the one that a scan takes in serializable transactions.
        unsafe {
            let snapshot = snapshot.as_ptr();
            pg_sys::ffi::pg_guard_ffi_boundary(|| PredicateLockRelation(relation, snapshot));
        }
        // SAFETY: vouched for by the caller.
        let (index, oid) = unsafe { (Index::new(relation), (*relation).rd_id) };
        let mut counts = with_room(searches.len()).or_raise();
        let mut left = searches;
        while !left.is_empty() {
            let mut keys = 0;
            let fits = left.iter().take_while(|search| {
                keys += known_keys(search).map_or(0, |(of_search, _)| of_search.len());
                keys <= MOST_KEYS
            });
            let (batch, rest) = left.split_at(fits.count().max(1));
            let (meta, mut found) = find_together(index, batch, &self.room);
            // SAFETY: vouched for by the caller.
            unsafe { keep_seen(index, &meta, snapshot, &mut found) };
            counts.extend(found.iter().map(|rows| rows.as_ref().map(Vec::len)));
            candidates::keep(oid, batch, found);
            left = rest;
        }
        counts
    }
}

/// Returns the keys of a search and how many of them a row needs; None if the number depends on the row, or
/// if there are no keys.
fn known_keys(search: &KeySearch) -> Option<(&[u32], usize)> {
    match search {
        KeySearch::Keys { keys, needed } if !needed.depends_on_row() => {
            Some((keys, needed.least()))
        }
        _ => None,
    }
}

impl Drop for Foreseen {
    fn drop(&mut self) {
        candidates::forget();
    }
}

/// Returns the candidates of each search, ascending; None where its keys are not known, or are those
/// of many rows.
fn find_together(
    index: Index,
    searches: &[KeySearch],
    room: &Cell<usize>,
) -> (Meta, Vec<Option<Vec<FoundRow>>>) {
    let mut queries = Queries::default();
    for search in searches {
        let (keys, needed) = known_keys(search).unwrap_or_default();
        queries.add(keys, needed).or_raise();
    }
    queries.sort();
    let before = room.get();
    let (meta, mut found) = with_meta(index, &mut |meta| {
        room.set(before);
        search(&index, meta, &mut queries, searches, room)
    });
    for (query, rows) in found.iter_mut().enumerate() {
        if queries.is_crowded(query) || known_keys(&searches[query]).is_none() {
            *rows = None;
        } else if let Some(rows) = rows {
            rows.sort_unstable_by_key(|found| found.row);
        }
    }
    (meta, found)
}

/// Leaves out candidates that a snapshot does not see, of searches that have few.
///
/// # Safety
/// The index's table is locked.
unsafe fn keep_seen(
    index: Index,
    meta: &Meta,
    snapshot: &Snapshot,
    found: &mut [Option<Vec<FoundRow>>],
) {
    let few = || found.iter().flatten().filter(|rows| rows.len() <= FEW);
    let mut seen = collected(few().flatten().map(|found| found.row)).or_raise();
    // Rows that were inserted together lie together.
    seen.sort_unstable();
    seen.dedup();
    let mut table = RowTable::new(index, meta);
    let heap = index.table();
    // SAFETY: the table is open.
    let mut versions = unsafe { Versions::open(heap.as_ptr(), snapshot.as_ptr()) };
    seen.retain(|row| {
        let entry = table.live_entry(*row);
        entry.is_some_and(|entry| versions.seen(entry.tid).is_some())
    });
    versions.close();
    for rows in found.iter_mut().flatten().filter(|rows| rows.len() <= FEW) {
        rows.retain(|found| seen.binary_search(&found.row).is_ok());
    }
}

unsafe extern "C-unwind" {
    /// Notes that a serializable transaction has read of a relation; nothing in others.
    fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
}

fn search(
    index: &Index,
    meta: &Meta,
    queries: &mut Queries,
    searches: &[KeySearch],
    room: &Cell<usize>,
) -> Result<Vec<Option<Vec<FoundRow>>>, Stop> {
    let mut found = collected(searches.iter().map(|_| Some(Vec::new())))?;
    let mut add = |query: usize, row, shared| {
        if let Some(rows) = &mut found[query] {
            let Some(left) = room.get().checked_sub(1) else {
                room.set(rows.len());
                found[query] = None;
                return Ok(());
            };
            rows.try_push(FoundRow { row, shared })?;
            room.set(left);
        }
        Ok(())
    };
    log::for_each_page(index, meta, |start, log| {
        let mut add = |query, place, shared| add(query, start + u64::from(place), shared);
        queries.search_log(&log, &mut add)
    })?;
    let mut pages = PageReader::new(*index);
    for group in groups(index, meta) {
        queries.search(&mut pages, &group.group(), &mut add)?;
    }
    Ok(found)
}
