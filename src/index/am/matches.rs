//! Measures how many rows match a row of the index. The planner uses this for a value that is not known yet. Measured
//! when the index is built, by VACUUM and ANALYZE, and when the index has doubled.

use super::fetch::Fetch;
use super::hold;
use super::meta::{Mean, Meta, SHARES};
use super::page::Index;
use super::rows::RowTable;
use super::segment::{SearchPages, by_size, rows_of};
use super::stop::Stop;
use crate::index::classes::RowKeys;
use crate::pg::catalog::cached;
use crate::pg::error::vacuum_delay;
use crate::pg::relation::Relation;
use neardup::bands::ShingleKeys;
use neardup::hash::split_mix;
use neardup::postings::Estimate;
use pgrx::pg_sys;
use std::collections::HashSet;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Maximum number of rows in a sample.
const ROWS: usize = 256;

/// Maximum number of row numbers drawn for a sample; the rows of some are dead.
const DRAWN: u64 = 4096;

/// A sample is complete once it has read this number of bytes, about a second of cutting documents.
const BYTES: usize = 64 << 20;

/// Number of pages read to estimate the matches of one row, over all searched groups.
const PAGES: f64 = 16.0;

/// Minimum number of leaves read from each group.
const LEAVES: usize = 2;

/// Groups with a smaller share of all rows are not searched, and are assumed to be like the searched ones.
const SEARCHED: f64 = 1.0 / 16.0;

/// Returns whether this inserting session should measure: whether the index has twice as many rows in segments as when
/// it was last measured, and no expressions, whose functions would run with this session's rights on other users' rows.
/// If so, no other session will, not even after this one is canceled, which would otherwise happen at every insert.
pub fn claim(index: &Index) -> bool {
    // SAFETY: the index is open.
    let expressions = unsafe { pg_sys::RelationGetIndexExpressions(index.as_ptr()) };
    let is_due = |meta: &Meta| {
        !meta.segments().is_empty() && meta.log_start >= meta.matches.end.saturating_mul(2)
    };
    if !expressions.is_null() || !is_due(&Meta::read(index)) {
        return false;
    }
    let (mut page, mut meta) = Meta::lock(index);
    let is_first = is_due(&meta);
    if is_first {
        meta.matches.end = meta.log_start;
        meta.store(index, &mut page);
    }
    is_first
}

/// Returns whether the expressions of the index, if any, call only functions in C. VACUUM and ANALYZE must not call
/// others: they may fail under its search_path or in a parallel worker, and VACUUM would then fail each time.
pub fn calls_only_c(index: &Index) -> bool {
    const CACHE: i32 = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
    let (expressions, mut is_null) = (pg_sys::Anum_pg_index_indexprs as i16, false);
    // SAFETY: the index is open; the expressions are of its catalog row. RelationGetIndexExpressions would inline SQL
    // functions, and fail like them.
    unsafe {
        let row = (*index.as_ptr()).rd_indextuple;
        let stored = pg_sys::SysCacheGetAttr(CACHE, row, expressions, &mut is_null);
        is_null || {
            let stored = pg_sys::text_to_cstring(stored.cast_mut_ptr::<pg_sys::text>());
            !calls_another(pg_sys::stringToNode(stored).cast(), null_mut())
        }
    }
}

/// Returns whether a part of an expression calls a function that is not in C. A cast to a domain may, to check it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn calls_another(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    !node.is_null()
        && ((*node).type_ == pg_sys::NodeTag::T_CoerceToDomain
            || pg_sys::check_functions_in_node(node, Some(is_not_in_c), context)
            || pg_sys::expression_tree_walker(node, Some(calls_another), context))
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn is_not_in_c(function: pg_sys::Oid, _context: *mut c_void) -> bool {
    const C: [u32; 2] = [pg_sys::INTERNALlanguageId, pg_sys::ClanguageId];
    let cache = pg_sys::SysCacheIdentifier::PROCOID;
    let language = cached(cache, pg_sys::Anum_pg_proc_prolang, [function.into()]);
    language.is_none_or(|language| !C.contains(&language.to_u32()))
}

/// Measures and stores how many rows match a row, using a sample whose size does not depend on the index's. Does
/// nothing without an active snapshot.
pub fn sample(index: &Index) {
    // SAFETY: reads the backend's state.
    if !unsafe { pg_sys::ActiveSnapshotSet() } {
        return;
    }
    let meta = Meta::read(index);
    let mut rows = Sampled::open(index, &meta);
    let means = means(index, &meta, &mut rows);
    rows.fetch.close();
    let mut matches = meta.matches;
    matches.end = meta.log_start;
    match means {
        Ok(means) => means.into_iter().for_each(|means| matches.set(means)),
        // It is due again.
        Err(Stop::Restart(_)) => matches.end = 0,
        Err(stop) => stop.raise(index),
    }
    if matches != meta.matches {
        let (mut page, mut meta) = Meta::lock(index);
        meta.matches = matches;
        meta.store(index, &mut page);
    }
}

/// Returns, for each of [`SHARES`], how many rows have at least this share of a row's keys, on average. Returns None if
/// no row of the sample is visible and has keys.
fn means(
    index: &Index,
    meta: &Meta,
    rows: &mut Sampled,
) -> Result<Option<[Mean; SHARES.len()]>, Stop> {
    let mut groups = by_size(index, meta);
    let all_rows = rows_of(&groups).max(1.0);
    groups.retain(|group| group.rows() >= SEARCHED * all_rows);
    let searched_rows = rows_of(&groups).max(1.0);
    let mut pages = SearchPages::new(*index, meta);
    hold::point("sample_draws_rows");
    let mut means = [Mean::default(); SHARES.len()];
    let mut seen = 0;
    let first = meta.segments().first().map_or(0, |segment| segment.lo);
    let all = meta.log_start.saturating_sub(first).max(1);
    let mut drawn = HashSet::new();
    // The same rows each time, so that an estimate changes only if the table does.
    for row in (0..DRAWN).map(|number| first + split_mix(number) % all) {
        vacuum_delay();
        if seen == ROWS || rows.fetch.bytes >= BYTES {
            break;
        }
        if !drawn.insert(row) {
            continue;
        }
        let Some(keys) = rows.keys(row).filter(|keys| !keys.is_empty()) else {
            continue;
        };
        seen += 1;
        let mut found = [0.0; SHARES.len()];
        for group in &groups {
            let most = (PAGES * group.rows() / searched_rows) as usize;
            let most = most.max(group.depth() + LEAVES);
            let estimate = Estimate::new(&mut pages, group, keys, most)?;
            for (found, share) in found.iter_mut().zip(SHARES) {
                *found += estimate.rows(share, 1.0);
            }
        }
        for (mean, found) in means.iter_mut().zip(found) {
            let others = (found - 1.0).max(0.0) * all_rows / searched_rows;
            mean.rows += others;
            mean.any += if others >= 0.5 { 1.0 } else { 0.0 };
        }
    }
    for mean in &mut means {
        mean.rows = 1.0 + mean.rows / seen as f64;
        mean.any /= seen as f64;
    }
    Ok((seen > 0).then_some(means))
}

/// A reader of the keys of sampled rows.
struct Sampled<'a> {
    table: RowTable<'a>,
    /// The index's table, open.
    _heap: Relation,
    fetch: Fetch,
    row_keys: RowKeys,
    keys: Vec<u32>,
}

impl<'a> Sampled<'a> {
    fn open(index: &Index<'a>, meta: &Meta) -> Self {
        let heap = index.table();
        // SAFETY: table and index are open. The snapshot sees committed changes, and the transaction's own.
        unsafe {
            let relation = index.as_ptr();
            let snapshot = (&raw const pg_sys::SnapshotSelfData).cast_mut();
            Self {
                table: RowTable::new(*index, meta),
                fetch: Fetch::open(heap.as_ptr(), relation, snapshot),
                _heap: heap,
                row_keys: RowKeys::of_index(relation),
                keys: Vec::new(),
            }
        }
    }

    /// Returns the keys of a row, without the keys of levels. Returns None if the row is dead or not visible, or if
    /// values of it are missing.
    fn keys(&mut self, row: u64) -> Option<&[u32]> {
        let entry = self.table.live_entry(row)?;
        let (row_keys, keys) = (&self.row_keys, &mut self.keys);
        keys.clear();
        self.fetch.row_that_stays(entry.tid, |values, is_null| {
            // SAFETY: the values belong to a row.
            unsafe { row_keys.keys(values, is_null, keys) };
        })?;
        if row_keys.documents().is_some() {
            // Documents of the same level may have nothing else in common.
            keys.retain(|key| !ShingleKeys::is_of_level(*key));
        }
        Some(keys)
    }
}
