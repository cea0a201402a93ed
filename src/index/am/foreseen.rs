//! Searches that are known before the scans that ask for them: their candidates are found together,
//! which takes a fraction of the time of one search after the other.

use super::find::{Found, with_meta};
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::segment::{SegmentPages, Stop, groups};
use crate::index::classes::Search;
use crate::pg::error::or_out_of_memory;
use neardup::postings::{Needed, Queries};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;

/// The most keys of queries that are searched together.
const MOST_KEYS: usize = 1 << 18;

/// Candidates by the keys of their search.
type ByKeys = HashMap<Vec<u32>, (Needed, Vec<Found>)>;

thread_local! {
    /// Of each index; a backend has one thread that scans.
    static FOUND: RefCell<HashMap<pg_sys::Oid, ByKeys>> = RefCell::default();
}

/// Candidates that have been found ahead. Until this is dropped, scans with such a search return
/// them: rows that a snapshot taken before does not show may be missing.
pub struct Foreseen(());

impl Foreseen {
    pub fn new() -> Self {
        Self(())
    }

    /// Finds the candidates of searches of an index. Searches that meet keys of many rows are left to
    /// their scans.
    ///
    /// # Safety
    /// The relation is an open index of this access method.
    pub unsafe fn find(&mut self, relation: pg_sys::Relation, searches: &[Search]) {
        // SAFETY: vouched for by the caller.
        let (index, oid) = unsafe { (Index::new(relation), (*relation).rd_id) };
        let with_keys = searches.iter().filter_map(|search| match search {
            Search::Keys { keys, needed } if !needed.depends_on_row() => Some((keys, *needed)),
            _ => None,
        });
        let (mut batch, mut keys) = (Vec::new(), 0);
        for search in with_keys {
            if keys + search.0.len() > MOST_KEYS {
                keep(oid, &batch, find_together(index, &batch));
                (batch, keys) = (Vec::new(), 0);
            }
            keys += search.0.len();
            or_out_of_memory(batch.try_reserve(1));
            batch.push(search);
        }
        keep(oid, &batch, find_together(index, &batch));
    }
}

impl Drop for Foreseen {
    fn drop(&mut self) {
        FOUND.with_borrow_mut(HashMap::clear);
    }
}

/// Returns the candidates of a search of an index, ascending, if they have been found ahead.
pub fn foreseen(index: &Index, keys: &[u32], needed: &Needed) -> Option<Vec<Found>> {
    FOUND.with_borrow(|found| {
        let (of, rows) = found.get(&index.oid())?.get(keys)?;
        (of == needed).then(|| {
            let mut copy = Vec::new();
            or_out_of_memory(copy.try_reserve_exact(rows.len()));
            copy.extend_from_slice(rows);
            copy
        })
    })
}

/// Keeps the candidates of searches; None where there are too many.
fn keep(index: pg_sys::Oid, searches: &[(&Vec<u32>, Needed)], found: Vec<Option<Vec<Found>>>) {
    FOUND.with_borrow_mut(|all| {
        let by_keys = all.entry(index).or_default();
        or_out_of_memory(by_keys.try_reserve(searches.len()));
        for ((keys, needed), rows) in searches.iter().zip(found) {
            if let Some(rows) = rows {
                let mut own = Vec::new();
                or_out_of_memory(own.try_reserve_exact(keys.len()));
                own.extend_from_slice(keys);
                by_keys.insert(own, (*needed, rows));
            }
        }
    });
}

/// Returns the candidates of each search, ascending; None where its keys are those of many rows.
fn find_together(index: Index, searches: &[(&Vec<u32>, Needed)]) -> Vec<Option<Vec<Found>>> {
    let mut queries = Queries::default();
    for (keys, needed) in searches {
        or_out_of_memory(queries.add(keys, needed.least()));
    }
    queries.sort();
    let (_, mut found) = with_meta(index, &mut |meta| {
        search(&index, meta, &mut queries, searches)
    });
    for (query, rows) in found.iter_mut().enumerate() {
        if queries.is_crowded(query) {
            *rows = None;
        } else if let Some(rows) = rows {
            rows.sort_unstable_by_key(|found| found.row);
        }
    }
    found
}

fn search(
    index: &Index,
    meta: &Meta,
    queries: &mut Queries,
    searches: &[(&Vec<u32>, Needed)],
) -> Result<Vec<Option<Vec<Found>>>, Stop> {
    let mut found = Vec::new();
    found.try_reserve_exact(searches.len())?;
    found.extend(searches.iter().map(|_| Some(Vec::new())));
    let mut add = |query: usize, row, shared| {
        if let Some(rows) = &mut found[query] {
            rows.try_reserve(1)?;
            rows.push(Found { row, shared });
        }
        Ok(())
    };
    let mut searched = Ok(());
    log::for_each_page(index, meta, |start, log| {
        let mut add = |query, place, shared| add(query, start + u64::from(place), shared);
        if searched.is_ok() {
            searched = queries.search_log(&log, &mut add);
        }
        Ok(())
    })?;
    searched?;
    let mut pages = SegmentPages::new(*index);
    for group in groups(index, meta) {
        queries.search(&mut pages, &group.group(), &mut add)?;
    }
    Ok(found)
}
