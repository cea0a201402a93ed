//! Reads indexes for the planner, and makes the searches for the constants of a plan. For a plan, at most [`PAGES`]
//! pages of all indexes of a table are read, each only once.
#![allow(unsafe_op_in_unsafe_fn, reason = "every operation on the planner's nodes is unsafe")]
#![allow(clippy::disallowed_methods, reason = "one entry per index or table of a query")]

use super::log;
use super::meta::Meta;
use super::page::{Index, PageType};
use super::rows::{page_of, share_directory};
use super::segment::{SearchPages, by_size, rows_of};
use super::stop::Stop;
use crate::index::classes::{KeySearch, RowKeys};
use crate::index::kind::Kind;
use crate::index::planned_column::PlannedColumn;
use crate::pg::error::OrRaise;
use crate::pg::relation::Relation;
use crate::pg::varlena::Varlena;
use neardup::bands::{RowSize, ShingleKeys};
use neardup::memory::{collected, copied};
use neardup::postings::{Estimate, Needed, RowSizes, SegmentGroup};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::{PgList, pg_sys};
use std::cell::Cell;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::rc::Rc;

/// Maximum number of pages of a table's indexes read for a plan.
const PAGES: usize = 16;

/// Maximum number of groups of segments searched for a plan.
const GROUPS: usize = 4;

/// Number of pages read for the sizes of rows: two pages of the row table, and two pages that lead there.
const SIZES: usize = 4;

/// Rows with a lower probability of having enough keys are not looked at.
const UNLIKELY: f64 = 0.05;

/// Number of pages read for the keys of levels, as a multiple of the pages on the way to one key.
const TO_LEVELS: usize = 2;

/// Minimum number of leaves read from each group except the largest. These groups contain recent sets of similar rows.
const LEAVES: usize = 2;

/// The metapages read for a plan, and the counts made for it.
struct PlanPages {
    of: *mut pg_sys::PlannerGlobal,
    metas: HashMap<pg_sys::Oid, Rc<Meta>>,
    /// The searches for the last operand.
    searched: Option<Searched>,
    /// For each table, the only search for which pages other than metapages have been read.
    counted: HashMap<pg_sys::Oid, Counted>,
}

/// The estimated number of rows that a search finds.
pub struct Counted {
    index: pg_sys::Oid,
    search: Rc<KeySearch>,
    /// Rows that match, or None if a page has been reused.
    matching: Option<f64>,
    /// Documents compared only because they are sampled, whatever they share with the query.
    pub sampled: f64,
}

/// The searches of indexes for an operator with this strategy and right operand, which is a ball or a constraint key.
struct Searched {
    strategy: u16,
    operand: Vec<u8>,
    searches: HashMap<pg_sys::Oid, Rc<KeySearch>>,
}

thread_local! {
    /// The pages of the last plan, which lie in the plan's memory. NULL once that is released.
    static PLAN: Cell<*mut PlanPages> = const { Cell::new(null_mut()) };
}

impl Drop for PlanPages {
    fn drop(&mut self) {
        if std::ptr::eq(PLAN.get(), self) {
            PLAN.set(null_mut());
        }
    }
}

/// Returns the metapages and counts of a plan.
///
/// # Safety
/// The planner's structures are valid. The result is not used after another call.
unsafe fn plan<'p>(root: *mut pg_sys::PlannerInfo) -> &'p mut PlanPages {
    let of = (*root).glob;
    if PLAN.get().as_ref().is_none_or(|known| known.of != of) {
        let pages = PlanPages {
            of,
            metas: HashMap::new(),
            searched: None,
            counted: HashMap::new(),
        };
        let mut context = PgMemoryContexts::For((*root).planner_cxt);
        PLAN.set(context.leak_and_drop_on_delete(pages));
    }
    &mut *PLAN.get()
}

/// Opens and returns the index of `info`.
///
/// # Safety
/// `info` is the planner's description of an index, and the planner holds a lock on the index.
unsafe fn open(info: *const pg_sys::IndexOptInfo) -> Relation {
    Relation::open_locked((*info).indexoid)
}

/// Returns the indexes of this access method on the table of `info`.
///
/// # Safety
/// `info` is the planner's description of an index.
unsafe fn on_table(info: *const pg_sys::IndexOptInfo) -> Vec<pg_sys::Oid> {
    let indexes = PgList::<pg_sys::IndexOptInfo>::from_pg((*(*info).rel).indexlist);
    let ours = indexes.iter_ptr().filter(|index| super::is_ours(*index));
    ours.map(|index| (*index).indexoid).collect()
}

/// Returns the metapage of an index. Returns None for a hypothetical index, and for all but the first [`PAGES`] indexes
/// of a table.
///
/// # Safety
/// `info` is the planner's description of an index of this access method, and the planner holds a lock on the index.
pub unsafe fn meta(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
) -> Option<Rc<Meta>> {
    let oid = (*info).indexoid;
    if let Some(known) = plan(root).metas.get(&oid) {
        return Some(Rc::clone(known));
    }
    let is_read = !(*info).hypothetical && on_table(info).iter().take(PAGES).any(|own| *own == oid);
    let meta = is_read.then(|| Rc::new(Meta::read(&Index::new(open(info).as_ptr()))))?;
    plan(root).metas.insert(oid, Rc::clone(&meta));
    Some(meta)
}

/// Returns the search of an index for a condition on its compared column, given by the operator's `strategy` and right
/// `operand`. Remembers the searches for the last operand.
///
/// # Safety
/// The same as for [`meta`]; `operand` is of the operator's right-hand type.
pub unsafe fn search(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
    strategy: u16,
    operand: pg_sys::Datum,
) -> Rc<KeySearch> {
    let bytes = Varlena::from_raw(operand);
    let searched = &mut plan(root).searched;
    searched.take_if(|of| of.strategy != strategy || of.operand[..] != *bytes);
    let of_operand = searched.get_or_insert_with(|| Searched {
        strategy,
        operand: copied(&bytes).or_raise(),
        searches: HashMap::new(),
    });
    let search = of_operand.searches.entry((*info).indexoid);
    let make = || Rc::new(RowKeys::of_index(open(info).as_ptr()).search_for(strategy, operand));
    Rc::clone(search.or_insert_with(make))
}

/// Returns the estimated number of rows that match a condition on the index's column, given by the operator's
/// `strategy` and right `operand`. Returns None if keys do not answer the condition, a page has been reused, or the
/// table's pages have been read for another condition.
///
/// # Safety
/// The same as for [`search`]; the index's only column is of the operand's kind.
pub unsafe fn count(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
    strategy: u16,
    operand: pg_sys::Datum,
) -> Option<f64> {
    let meta = meta(root, info)?;
    let search = search(root, info, strategy, operand);
    let KeySearch::Keys { keys, needed } = &*search else {
        return (*search == KeySearch::Nothing).then_some(0.0);
    };
    let counted_now = || {
        let most_pages = PAGES.saturating_sub(on_table(info).len());
        let (opened, query) = (open(info), (&keys[..], needed));
        let index = Index::new(opened.as_ptr());
        let groups = by_size(&index, &meta);
        let (matching, sampled) = match PlannedColumn::of(info.cast_mut()).kind() {
            Some(Kind::Documents) => documents(&index, &meta, &groups, query, most_pages),
            _ => (rows(&index, &meta, &groups, query, false, most_pages), 0.0),
        };
        Counted {
            index: (*info).indexoid,
            search: Rc::clone(&search),
            matching,
            sampled,
        }
    };
    let known = plan(root).counted.entry(table_of(root, info));
    known.or_insert_with(counted_now);
    counted(root, info, &search)?.matching
}

/// Returns the count that [`count`] made for `search`, or None if [`count`] has made none.
///
/// # Safety
/// The same as for [`search`](fn@search).
pub unsafe fn counted<'p>(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
    search: &KeySearch,
) -> Option<&'p Counted> {
    let counted = plan(root).counted.get(&table_of(root, info))?;
    (counted.index == (*info).indexoid && *counted.search == *search).then_some(counted)
}

/// Returns the table of an index.
///
/// # Safety
/// `info` is the planner's description of an index.
unsafe fn table_of(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
) -> pg_sys::Oid {
    let rel = (*(*info).rel).relid as usize;
    (**(*root).simple_rte_array.add(rel)).relid
}

/// Estimates the number of documents that match, and the number of documents compared only because they are sampled.
fn documents(
    index: &Index,
    meta: &Meta,
    groups: &[SegmentGroup],
    (keys, needed): (&[u32], &Needed),
    most_pages: usize,
) -> (Option<f64>, f64) {
    let is_of_level = |key: &u32| ShingleKeys::is_of_level(*key);
    let of_shingles = collected(keys.iter().copied().filter(|key| !is_of_level(key))).or_raise();
    let mut levels = collected(keys.iter().copied().filter(is_of_level)).or_raise();
    levels.sort_unstable();
    // Documents of other levels also need keys of shingles.
    let alone = levels.chunk_by(|a, b| a == b);
    let alone = alone.filter(|same| same.len() >= needed.least());
    let alone = collected(alone.map(|same| same[0])).or_raise();
    let (sampled, pages) = match groups.first() {
        Some(largest) if !alone.is_empty() => {
            let pages = (TO_LEVELS * (largest.depth() + 1)).min(most_pages / 2);
            let mut reader = SearchPages::new(*index, meta);
            let estimate = Estimate::new(&mut reader, largest, &alone, pages);
            // Each document has one level, so there are as many documents as postings.
            let found = estimate.map_or(0.0, |estimate| estimate.rows(0.0, 0.0));
            let all = meta.rows_in_log() + rows_of(groups);
            (found * all / largest.rows().max(1.0), pages)
        }
        _ => (0.0, 0),
    };
    // Documents that have enough of the query's keys are often too large to match.
    let is_by_size = matches!(needed, Needed::Resembling { .. });
    let query = (&of_shingles[..], needed);
    let matching = rows(index, meta, groups, query, is_by_size, most_pages - pages);
    (matching, sampled)
}

/// Estimates the number of rows that have as many of `keys` as `needed` requires, from the log and the largest groups
/// of segments. Divides the pages to read in proportion to rows, but each part gets at least a few. Returns None if a
/// page cannot be read, or if too few pages are left for any part.
fn rows(
    index: &Index,
    meta: &Meta,
    groups: &[SegmentGroup],
    (keys, needed): (&[u32], &Needed),
    is_by_size: bool,
    most_pages: usize,
) -> Option<f64> {
    let in_log = meta.rows_in_log();
    let largest = &groups[..groups.len().min(GROUPS)];
    let pages_of = |rows: f64| most_pages as f64 * rows / (in_log + rows_of(largest)).max(1.0);
    let (mut found_in_log, mut seen, mut left) = (0.0, 0.0, most_pages);
    let of_log = (pages_of(in_log).round() as usize).max(1);
    let of_log = of_log.min(meta.log().len()).min(most_pages);
    if of_log > 0 {
        found_in_log = in_log_pages(index, meta, keys, needed, of_log).ok()?;
        seen += in_log;
        left -= of_log;
    }
    if is_by_size {
        left = left.saturating_sub(SIZES);
    }
    let own = meta.keys_per_row();
    let share = needed.share(keys.len(), own);
    let greatest = needed.greatest_share(keys.len(), own);
    let (mut found, mut fitting) = (0.0, 1.0);
    // The largest group gets the remaining pages, which are at least half of all.
    for (place, group) in largest.iter().enumerate().rev() {
        let in_proportion = (pages_of(group.rows()) as usize).max(group.depth() + LEAVES);
        let pages = match place {
            0 => left,
            _ => in_proportion.min(left.saturating_sub(most_pages / 2)),
        };
        if pages <= group.depth() {
            continue;
        }
        let mut reader = SearchPages::new(*index, meta);
        let estimate = Estimate::new(&mut reader, group, keys, pages).ok()?;
        seen += group.rows();
        left -= pages;
        found += match is_by_size {
            true => estimate.likely_rows(needed.least(), keys.len()).or_raise(),
            false => estimate.rows(share, greatest),
        };
        if is_by_size && place == 0 {
            fitting = of_fitting_size(&mut reader, &estimate, keys.len(), needed).ok()?;
        }
    }
    let all = in_log + rows_of(groups);
    // The rows whose sizes are looked at may all be others than the one that the value came from.
    let fitting = (found * fitting).max(found.min(1.0));
    (seen > 0.0).then(|| (found_in_log + fitting) * all / seen)
}

/// Returns the share of rows that have enough of the query's `keys` keys for their own size, among the rows that have
/// enough for the smallest match. Looks at the pages of the row table at both quartiles of the likely matches.
fn of_fitting_size(
    pages: &mut SearchPages,
    estimate: &Estimate,
    keys: usize,
    needed: &Needed,
) -> Result<f64, Stop> {
    let of_least = estimate.likelihoods(needed.least(), keys)?;
    let weight = |(_, shared): &(u64, usize)| of_least[*shared];
    let mut rows = copied(estimate.known())?;
    rows.retain(|row| weight(row) >= UNLIKELY);
    let all = rows.iter().map(weight).sum::<f64>();
    let row_at = |share: f64| {
        let mut left = share * all;
        let row = rows.iter().find(|row| {
            left -= weight(row);
            left <= 0.0
        });
        row.map(|(row, _)| *row)
    };
    let first = row_at(0.25);
    let second = row_at(0.75).filter(|row| first.is_some_and(|first| share_directory(first, *row)));
    let looked_at = [first.map(page_of), second.map(page_of)];
    rows.retain(|(row, _)| looked_at.contains(&Some(page_of(*row))));
    let numbers = collected(rows.iter().map(|(row, _)| *row))?;
    let (mut enough, mut fitting) = (0.0, 0.0);
    pages.sizes(&numbers, &mut |place, size| {
        enough += weight(&rows[place]);
        if let Some(of_row) = needed.of_row(size) {
            fitting += estimate.likelihood(rows[place].1, of_row, keys);
        }
    })?;
    Ok(if enough > 0.0 { fitting / enough } else { 1.0 })
}

/// Estimates how many rows of the log have enough of `keys`, from at most `most_pages` of its pages.
fn in_log_pages(
    index: &Index,
    meta: &Meta,
    keys: &[u32],
    needed: &Needed,
    most_pages: usize,
) -> Result<f64, Stop> {
    let query = needed.log_query(keys)?;
    let step = meta.log().len().div_ceil(most_pages).max(1);
    let mut found = 0u32;
    for &block in meta.log().iter().step_by(step) {
        let page = index.read(block);
        if !matches!(page.kind(), Some(PageType::Log | PageType::Tail)) {
            return Err(Stop::Restart(block));
        }
        for row in log::parse(index, &page).iter() {
            let row = row.map_err(Stop::at(block))?;
            let shared = query.shared(row, 0);
            found += u32::from(match needed {
                // A row of the log may have only the keys of a sample, so this is its minimum size.
                Needed::Resembling { levels: None, .. } => {
                    needed.is_reached(shared as usize, RowSize::new(0, row.len()))
                }
                _ => {
                    let share = needed.share(keys.len(), row.len() as f64);
                    f64::from(shared) >= (share * keys.len() as f64).round().max(1.0)
                }
            });
        }
    }
    // The first row found may be the only one: the row that the value came from.
    Ok(match found.checked_sub(1) {
        Some(others) => 1.0 + f64::from(others) * step as f64,
        None => 0.0,
    })
}
