//! Reads indexes for the planner, and makes the searches for the constants of a plan. For a plan, at most [`PAGES`]
//! pages of all indexes of a table are read, each only once.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "every operation on the planner's nodes is unsafe"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "one entry per index or table of a query"
)]

use super::log;
use super::meta::Meta;
use super::page::{Index, PageType};
use super::rows::page_of;
use super::segment::{SearchPages, by_size, rows_of};
use super::stop::Stop;
use crate::index::classes::{KeySearch, RowKeys};
use crate::index::kind::Kind;
use crate::index::planned_column::PlannedColumn;
use crate::pg::error::OrRaise;
use crate::pg::varlena::Varlena;
use neardup::bands::{RowSize, ShingleKeys};
use neardup::memory::{collected, copied};
use neardup::postings::{Estimate, Likelihood, Needed, RowSizes};
use pgrx::{PgList, pg_sys};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::rc::Rc;

/// Maximum number of pages of a table's indexes read for a plan.
const PAGES: usize = 16;

/// Maximum number of groups of segments searched for a plan.
const GROUPS: usize = 4;

/// Maximum number of pages of the row table from which sizes are read, and maximum number of pages on the way to them.
const SIZES: usize = 2;
const TO_SIZES: usize = 2;

/// Rows with a lower probability of having enough keys are not looked at.
const UNLIKELY: f64 = 0.05;

/// Number of pages read for the keys of levels, as a multiple of the pages on the way to one key.
const TO_LEVELS: usize = 2;

/// Minimum number of leaves read from each group but the largest. Recent sets of similar rows are there.
const LEAVES: usize = 2;

/// The metapages read for a plan, and the counts made for it.
struct PlanPages {
    of: *mut pg_sys::PlannerGlobal,
    metas: HashMap<pg_sys::Oid, Rc<Meta>>,
    /// The searches for the last operand.
    searched: Option<Searched>,
    /// For each table, the index and the search for which pages other than metapages have been read, and what was
    /// counted. There is only one search per table.
    counted: HashMap<pg_sys::Oid, (pg_sys::Oid, Rc<KeySearch>, Counted)>,
}

/// The estimated number of rows that a search finds.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// Rows that match.
    matching: Option<f64>,
    /// Documents compared only because they are sampled, whatever they share with the query.
    sampled: f64,
}

/// The searches of indexes for an operator with this strategy and right operand, which is a ball or a constraint key.
struct Searched {
    strategy: u16,
    operand: Vec<u8>,
    searches: HashMap<pg_sys::Oid, Rc<KeySearch>>,
}

thread_local! {
    static PLAN: RefCell<Option<PlanPages>> = const { RefCell::new(None) };
}

/// Forgets a plan whose memory is released.
unsafe extern "C-unwind" fn forget(plan: *mut c_void) {
    PLAN.with_borrow_mut(|known| {
        known.take_if(|known| known.of == plan.cast());
    });
}

/// Calls `look` with the metapages and counts of a plan.
///
/// # Safety
/// The planner's structures are valid.
unsafe fn with_plan<R>(
    root: *mut pg_sys::PlannerInfo,
    look: impl FnOnce(&mut PlanPages) -> R,
) -> R {
    let of = (*root).glob;
    let is_known = PLAN.with_borrow(|known| known.as_ref().is_some_and(|known| known.of == of));
    if !is_known {
        // The callback lives as long as the plan's memory.
        let context = (*root).planner_cxt;
        let size = size_of::<pg_sys::MemoryContextCallback>();
        let callback =
            pg_sys::MemoryContextAllocZero(context, size).cast::<pg_sys::MemoryContextCallback>();
        (*callback).func = Some(forget);
        (*callback).arg = of.cast();
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
    PLAN.with_borrow_mut(|known| {
        let of_this = known.take().filter(|known| known.of == of);
        look(known.insert(of_this.unwrap_or_else(|| PlanPages {
            of,
            metas: HashMap::new(),
            searched: None,
            counted: HashMap::new(),
        })))
    })
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
    let known = with_plan(root, |plan| plan.metas.get(&oid).cloned());
    if known.is_some() || (*info).hypothetical {
        return known;
    }
    on_table(info).iter().take(PAGES).find(|own| **own == oid)?;
    let relation = pg_sys::index_open(oid, pg_sys::NoLock as i32);
    let meta = Rc::new(Meta::read(&Index::new(relation)));
    pg_sys::index_close(relation, pg_sys::NoLock as i32);
    with_plan(root, |plan| plan.metas.insert(oid, Rc::clone(&meta)));
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
    let oid = (*info).indexoid;
    let known = with_plan(root, |plan| {
        let is_same = |of: &Searched| of.strategy == strategy && of.operand[..] == *bytes;
        if !plan.searched.as_ref().is_some_and(is_same) {
            plan.searched = Some(Searched {
                strategy,
                operand: copied(&bytes).or_raise(),
                searches: HashMap::new(),
            });
        }
        plan.searched.as_ref()?.searches.get(&oid).cloned()
    });
    if let Some(search) = known {
        return search;
    }
    let relation = pg_sys::index_open(oid, pg_sys::NoLock as i32);
    let search = Rc::new(RowKeys::of_index(relation).search_for(strategy, operand));
    pg_sys::index_close(relation, pg_sys::NoLock as i32);
    with_plan(root, |plan| {
        if let Some(of) = &mut plan.searched {
            of.searches.insert(oid, Rc::clone(&search));
        }
    });
    search
}

/// Returns the estimated number of rows that match a condition on the index's column, given by the operator's
/// `strategy` and right `operand`. Returns None if the keys do not find them, a page has been reused, or the table's
/// pages have been read for another condition.
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
    match &*search {
        KeySearch::Nothing => Some(0.0),
        KeySearch::Everything => None,
        KeySearch::Keys { keys, needed } => {
            let count = |most_pages| {
                let of_documents =
                    PlannedColumn::of(info.cast_mut()).kind() == Some(Kind::Documents);
                let relation = pg_sys::index_open((*info).indexoid, pg_sys::NoLock as i32);
                let index = Index::new(relation);
                let counted = match of_documents {
                    true => documents(&index, &meta, (keys, needed), most_pages),
                    false => Counted {
                        matching: rows(&index, &meta, (keys, needed), false, most_pages),
                        sampled: 0.0,
                    },
                };
                pg_sys::index_close(relation, pg_sys::NoLock as i32);
                counted
            };
            once(root, info, &search, count).matching
        }
    }
}

/// Returns the estimated number of documents that a condition on the index's column compares only because they are
/// sampled, whatever they share with `operand`. Returns 0 unless [`count`] has counted them.
///
/// # Safety
/// The same as for [`search`].
pub unsafe fn sampled(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
    strategy: u16,
    operand: pg_sys::Datum,
) -> f64 {
    let search = search(root, info, strategy, operand);
    let counted = counted(root, info, &search).flatten();
    counted.unwrap_or_default().sampled
}

/// Returns the count for `search`. Returns None if nothing has been counted on the index's table, and Some(None) if
/// another index or search has been.
///
/// # Safety
/// `info` is the planner's description of an index.
unsafe fn counted(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
    search: &KeySearch,
) -> Option<Option<Counted>> {
    let (table, index) = (table_of(root, info), (*info).indexoid);
    with_plan(root, |plan| {
        let (of_index, of, counted) = plan.counted.get(&table)?;
        Some((*of_index == index && **of == *search).then_some(*counted))
    })
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

/// Returns the count for `search`. Calls `count` with the number of pages of a table's indexes that may still be read,
/// but only for one search per table. For other searches, returns an empty count.
unsafe fn once(
    root: *mut pg_sys::PlannerInfo,
    info: *const pg_sys::IndexOptInfo,
    search: &Rc<KeySearch>,
    count: impl FnOnce(usize) -> Counted,
) -> Counted {
    // SAFETY: the planner's structures are valid.
    unsafe {
        if let Some(known) = counted(root, info, search) {
            return known.unwrap_or_default();
        }
        let counted = count(PAGES.saturating_sub(on_table(info).len()));
        let entry = ((*info).indexoid, Rc::clone(search), counted);
        let table = table_of(root, info);
        with_plan(root, |plan| plan.counted.insert(table, entry));
        counted
    }
}

/// Estimates the number of documents that match, and the number of documents compared only because they are sampled.
fn documents(
    index: &Index,
    meta: &Meta,
    (keys, needed): (&[u32], &Needed),
    most_pages: usize,
) -> Counted {
    // Documents that have enough of the query's keys are often too large to match.
    let is_by_size = matches!(needed, Needed::Resembling { .. });
    let is_of_level = |key: &u32| ShingleKeys::is_of_level(*key);
    let of_shingles = keys.iter().filter(|key| !is_of_level(key)).copied();
    let of_shingles = collected(of_shingles).or_raise();
    let mut repeated = collected(keys.iter().filter(|key| is_of_level(key)).copied()).or_raise();
    repeated.sort_unstable();
    // Documents of other levels also need keys of shingles.
    let levels = repeated
        .chunk_by(|a, b| a == b)
        .filter(|same| same.len() >= needed.least());
    let levels = collected(levels.map(|same| same[0])).or_raise();
    let (sampled, read) = match levels.is_empty() {
        true => (None, 0),
        false => of_levels(index, meta, &levels, most_pages / 2),
    };
    let pages = most_pages - read;
    Counted {
        matching: rows(index, meta, (&of_shingles, needed), is_by_size, pages),
        sampled: sampled.unwrap_or(0.0),
    }
}

/// Estimates the number of documents of `levels` from the largest group of segments. Also returns the number of pages
/// that may have been read.
fn of_levels(
    index: &Index,
    meta: &Meta,
    levels: &[u32],
    most_pages: usize,
) -> (Option<f64>, usize) {
    let groups = by_size(index, meta);
    let Some(largest) = groups.first() else {
        return (None, 0);
    };
    let pages = (TO_LEVELS * (largest.depth() + 1)).min(most_pages);
    let share = 1.0 / levels.len() as f64;
    let mut reader = SearchPages::new(*index, meta);
    let estimate = Estimate::new(&mut reader, largest, levels, pages, share).ok();
    let all = meta.rows_in_log() + rows_of(&groups);
    // Each document has one level, so there are as many documents as postings.
    let in_all = |estimate: Estimate| estimate.rows(0.0, 0.0) * all / largest.rows().max(1.0);
    let found = estimate.map(in_all);
    (found, pages)
}

/// Estimates the number of rows that have as many of `keys` as `needed` requires, from the log and the largest groups
/// of segments. The pages to read are divided in proportion to rows, but each part gets at least a few.
fn rows(
    index: &Index,
    meta: &Meta,
    (keys, needed): (&[u32], &Needed),
    is_by_size: bool,
    most_pages: usize,
) -> Option<f64> {
    let groups = by_size(index, meta);
    let in_log = meta.rows_in_log();
    let (all, largest) = (
        in_log + rows_of(&groups),
        &groups[..groups.len().min(GROUPS)],
    );
    let pages_of = |rows: f64| most_pages as f64 * rows / (in_log + rows_of(largest)).max(1.0);
    let (mut found, mut seen, mut left) = (0.0, 0.0, most_pages);
    let mut found_in_log = 0.0;
    let of_log = (pages_of(in_log).round() as usize).max(1);
    let of_log = of_log.min(meta.log().len()).min(most_pages);
    if of_log > 0 {
        found_in_log = in_log_pages(index, meta, keys, needed, of_log).ok()?;
        seen += in_log;
        left -= of_log;
    }
    let own = meta.keys_per_row();
    if is_by_size {
        left = left.saturating_sub(SIZES + TO_SIZES);
    }
    let share = match is_by_size {
        true => needed.least() as f64 / keys.len().max(1) as f64,
        false => needed.share(keys.len(), own),
    };
    let greatest = needed.greatest_share(keys.len(), own);
    let mut fitting = 1.0;
    // The largest group gets the remaining pages, which are at least half of all.
    for (place, group) in largest.iter().enumerate().rev() {
        let in_proportion = (pages_of(group.rows()) as usize).max(group.depth() + LEAVES);
        let pages = if place == 0 {
            left
        } else {
            in_proportion.min(left.saturating_sub(most_pages / 2))
        };
        if pages <= group.depth() {
            continue;
        }
        let mut reader = SearchPages::new(*index, meta);
        let estimate = Estimate::new(&mut reader, group, keys, pages, share).ok()?;
        seen += group.rows();
        left -= pages;
        if !is_by_size {
            found += estimate.rows(share, greatest);
            continue;
        }
        let likelihood = Likelihood::new(&estimate, keys.len()).ok()?;
        found += likelihood.rows(&estimate, needed.least());
        if place == 0 {
            let mut pages = SearchPages::new(*index, meta);
            fitting = of_fitting_size(&mut pages, &estimate, &likelihood, needed).ok()?;
        }
    }
    (seen > 0.0).then(|| (found_in_log + found * fitting) * all / seen)
}

/// Returns the share of rows that have enough keys for their own size, among the rows that have enough for the smallest
/// match. Looks at the rows on a few pages of the row table.
fn of_fitting_size(
    pages: &mut SearchPages,
    estimate: &Estimate,
    likelihood: &Likelihood,
    needed: &Needed,
) -> Result<f64, Stop> {
    let least = needed.least();
    let rows = estimate.sharing(|shared| likelihood.of(shared, least) >= UNLIKELY);
    let rows: Vec<(u64, u32)> = rows.collect();
    // Pages are chosen in proportion to the likely matches on them.
    let weight = |&(_, shared): &(u64, u32)| likelihood.of(shared, least);
    let of_page = rows.iter().map(weight).sum::<f64>() / SIZES as f64;
    let (mut chosen, mut left) = (Vec::new(), of_page / 2.0);
    for row in &rows {
        left -= weight(row);
        if left <= 0.0 {
            left += of_page;
            chosen.push(page_of(row.0));
        }
    }
    let on_chosen = rows
        .iter()
        .filter(|(row, _)| chosen.contains(&page_of(*row)));
    let (numbers, shared): (Vec<u64>, Vec<u32>) = on_chosen.copied().unzip();
    let (mut enough, mut fitting) = (0.0, 0.0);
    pages.sizes(&numbers, &mut |place, size| {
        enough += likelihood.of(shared[place], least);
        if let Some(of_row) = needed.of_row(size) {
            fitting += likelihood.of(shared[place], of_row);
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
            let shared = query.shared(row);
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
