//! Searches that are known before the scans that ask for them: their candidates are found together,
//! which takes a fraction of the time of one search after the other.

use super::candidates::{self, Found};
use super::find::with_meta;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::segment::{SegmentPages, Stop, groups};
use crate::index::classes::Search;
use crate::pg::error::or_out_of_memory;
use neardup::postings::{Needed, Queries};
use pgrx::pg_sys;

/// The most keys of queries that are searched together.
const MOST_KEYS: usize = 1 << 18;

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
                candidates::keep(oid, &batch, find_together(index, &batch));
                (batch, keys) = (Vec::new(), 0);
            }
            keys += search.0.len();
            or_out_of_memory(batch.try_reserve(1));
            batch.push(search);
        }
        candidates::keep(oid, &batch, find_together(index, &batch));
    }
}

impl Drop for Foreseen {
    fn drop(&mut self) {
        candidates::forget();
    }
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
