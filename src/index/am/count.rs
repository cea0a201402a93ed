//! Counts the rows of a table in a ball, for the planner: those that share enough keys are counted,
//! and some of them are looked at.

use super::fetch::Versions;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::partial;
use super::rows::Rows;
use super::segment::{SegmentPages, Stop, groups};
use crate::index::classes::{RowKeys, Search};
use neardup::postings::{self, Needed};
use pgrx::pg_sys;

/// No more rows are counted: how many there are follows from the share of the index that has been
/// searched.
const MOST: u64 = 10_000;

/// Rows that are looked at.
const SAMPLE: usize = 16;

/// Times that a search is begun anew because pages have been reused meanwhile.
const TRIES: usize = 3;

/// Rows that share enough keys.
struct Candidates {
    count: f64,
    /// Some of them, evenly spread.
    sample: Vec<u64>,
}

/// Estimates the number of rows that match a condition on the index's column, of the operator with
/// this strategy and right operand. `is_inside` tells it of a single value. None if the keys
/// do not find them, or the index is damaged, which a scan will say.
///
/// # Safety
/// The index is of this access method, the planner holds a lock on it and on its table, and its only
/// column is of the operand's kind.
pub unsafe fn count(
    index: pg_sys::Oid,
    strategy: u16,
    operand: pg_sys::Datum,
    is_inside: &dyn Fn(pg_sys::Datum) -> bool,
) -> Option<f64> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let relation = pg_sys::index_open(index, pg_sys::NoLock as i32);
        let condition = pg_sys::ScanKeyData {
            sk_attno: 1,
            sk_strategy: strategy,
            sk_argument: operand,
            ..Default::default()
        };
        let (search, _) = RowKeys::of_index(relation).search(&[condition]);
        let found = match search {
            Search::Nothing => Some(0.0),
            Search::Everything => None,
            Search::Keys { keys, needed } => {
                let index = Index::new(relation);
                candidates(&index, &keys, &needed)
                    .map(|found| found.count * share_inside(&index, &found.sample, is_inside))
            }
        };
        pg_sys::index_close(relation, pg_sys::NoLock as i32);
        found
    }
}

fn candidates(index: &Index, keys: &[u32], needed: &Needed) -> Option<Candidates> {
    (0..TRIES)
        .map(|_| search(index, keys, needed))
        .find(|tried| !matches!(tried, Err(Stop::Restart)))?
        .ok()
}

fn search(index: &Index, keys: &[u32], needed: &Needed) -> Result<Candidates, Stop> {
    let meta = Meta::read(index);
    if needed.depends_on_row() {
        let (count, likely) = partial::estimate(index, &meta, keys, needed)?;
        let mut spread = Spread::default();
        likely.into_iter().for_each(|row| spread.add(row));
        let sample = spread.sample;
        return Ok(Candidates { count, sample });
    }
    let mut spread = Spread::default();
    let (query, needed) = (needed.log_query(keys)?, needed.least());
    log::search(index, &meta, &query, needed, &mut |row, _| spread.add(row))?;
    let groups = groups(index, &meta);
    let ends = |group: &postings::Group| {
        let lo = group.inputs.first().map_or(0, |segment| segment.lo);
        (lo, group.inputs.last().map_or(lo, |segment| segment.hi))
    };
    let all: u64 = groups
        .iter()
        .map(|group| ends(&group.group()))
        .map(|(lo, hi)| hi - lo)
        .sum();
    let mut searched = 0;
    let mut pages = SegmentPages::new(*index);
    for group in &groups {
        let group = group.group();
        let (lo, hi) = ends(&group);
        let mut last = lo;
        let found = postings::search(&mut pages, &group, keys, needed, &mut |row, _| {
            last = row;
            spread.add(row);
            match spread.count < MOST {
                true => Ok(()),
                false => Err(Stop::Enough),
            }
        });
        match found {
            Ok(()) => searched += hi - lo,
            Err(Stop::Enough) => {
                searched += last + 1 - lo;
                let share = searched as f64 / all.max(searched) as f64;
                return Ok(spread.candidates(1.0 / share));
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(spread.candidates(1.0))
}

/// Every n-th of the rows that are added, n doubling with their number.
#[derive(Default)]
struct Spread {
    count: u64,
    sample: Vec<u64>,
    doublings: u32,
}

impl Spread {
    fn add(&mut self, row: u64) {
        if self.count.is_multiple_of(1 << self.doublings) {
            if self.sample.len() == SAMPLE {
                let mut place = 0;
                self.sample.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.doublings += 1;
            }
            self.sample.push(row);
        }
        self.count += 1;
    }

    fn candidates(self, factor: f64) -> Candidates {
        Candidates {
            count: self.count as f64 * factor,
            sample: self.sample,
        }
    }
}

/// Returns the share of some rows that are in the ball, and seen by the query; 1 where the index is
/// one of an expression, which the planner had better not compute.
///
/// # Safety
/// The planner holds a lock on the index's table.
unsafe fn share_inside(
    index: &Index,
    sample: &[u64],
    is_inside: &dyn Fn(pg_sys::Datum) -> bool,
) -> f64 {
    // SAFETY: vouched for by the caller; an index has a column.
    unsafe {
        let description = &*(*index.as_ptr()).rd_index;
        let attribute = description.indkey.values.as_slice(1)[0];
        if attribute <= 0 || sample.is_empty() || !pg_sys::ActiveSnapshotSet() {
            return 1.0;
        }
        let meta = Meta::read(index);
        let mut table = Rows::new(*index, &meta);
        let heap = pg_sys::table_open(description.indrelid, pg_sys::NoLock as i32);
        let mut versions = Versions::open(heap, pg_sys::GetActiveSnapshot());
        let mut inside = 0;
        for &row in sample {
            let Some(entry) = table.live_entry(row) else {
                continue;
            };
            if let Some(slot) = versions.seen(entry.tid) {
                let mut is_null = false;
                let value = pg_sys::slot_getattr(slot, i32::from(attribute), &mut is_null);
                inside += usize::from(!is_null && is_inside(value));
            }
        }
        versions.close();
        pg_sys::table_close(heap, pg_sys::NoLock as i32);
        inside as f64 / sample.len() as f64
    }
}
