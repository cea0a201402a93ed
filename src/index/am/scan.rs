//! Scans: the candidates of one `<@` condition, or every row.

use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, ROWS_PER_PAGE, Rows};
use super::segment::{SegmentPages, Stop, groups};
use crate::index::classes::{self, CONTAINED, Class, Parameters, Search};
use crate::pg::error::{check_interrupts, hold_interrupts, or_out_of_memory, raise};
use neardup::postings::{self, LogQuery};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::Cell;

/// The state of a scan.
struct Scan<'a> {
    class: Box<dyn Class>,
    /// What is left to be returned; None before the first row is asked for.
    left: Option<Left<'a>>,
}

/// Rows that are left to be returned.
struct Left<'a> {
    table: Rows<'a>,
    rows: Remaining,
    /// The places of some of them, in reverse.
    tids: Vec<pg_sys::ItemPointerData>,
}

pub(super) enum Remaining {
    /// Ascending row numbers, and how many of them have been looked up.
    Some(Vec<u64>, usize),
    /// All rows from a page of the row table on, up to before a row.
    All { page: u64, end: u64 },
}

impl Left<'_> {
    /// Looks up the next rows; false if there are none.
    fn fill(&mut self) -> bool {
        self.tids.clear();
        while self.tids.is_empty() {
            check_interrupts();
            let place = match &self.rows {
                Remaining::Some(rows, next) => match rows.get(*next) {
                    Some(row) => rows::page_of(*row),
                    None => return false,
                },
                Remaining::All { page, end } if page * ROWS_PER_PAGE < *end => *page,
                Remaining::All { .. } => return false,
            };
            let page = self.table.page(place);
            let payload = page.as_ref().map_or(&[][..], |page| page.payload());
            let first = place * ROWS_PER_PAGE;
            match &mut self.rows {
                Remaining::Some(rows, next) => {
                    let here = rows[*next..].partition_point(|row| rows::page_of(*row) == place);
                    for row in &rows[*next..*next + here] {
                        let entry = rows::entries(payload).nth((row - first) as usize);
                        self.tids
                            .extend(entry.filter(|e| !e.is_blank()).map(|e| e.tid));
                    }
                    *next += here;
                }
                Remaining::All { page, end } => {
                    let known = (*end - first).min(ROWS_PER_PAGE) as usize;
                    let entries = rows::entries(payload).take(known);
                    self.tids
                        .extend(entries.filter(|e| !e.is_blank()).map(|e| e.tid));
                    *page += 1;
                }
            }
        }
        self.tids.reverse();
        true
    }
}

/// The index's `ambeginscan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn begin_scan(
    relation: pg_sys::Relation,
    keys: i32,
    orders: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: PostgreSQL calls this with an open index of this access method; the state lives as
    // long as the memory context of the scan.
    unsafe {
        let scan = pg_sys::RelationGetIndexScan(relation, keys, orders);
        let state = Scan {
            class: classes::of_column(relation, 1),
            left: None,
        };
        (*scan).opaque = PgMemoryContexts::CurrentMemoryContext
            .leak_and_drop_on_delete(state)
            .cast();
        scan
    }
}

/// The index's `amrescan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn rescan(
    scan: pg_sys::IndexScanDesc,
    keys: pg_sys::ScanKey,
    _key_count: i32,
    _orders: pg_sys::ScanKey,
    _order_count: i32,
) {
    // SAFETY: PostgreSQL calls this with a scan that `begin_scan` made, and its keys.
    unsafe {
        let scan = &mut *scan;
        state(scan).left = None;
        let count = scan.numberOfKeys as usize;
        if !keys.is_null() && count > 0 {
            scan.keyData.copy_from(keys, count);
        }
    }
}

/// # Safety
/// The scan was made by [`begin_scan`].
unsafe fn state<'s>(scan: &mut pg_sys::IndexScanDescData) -> &'s mut Scan<'s> {
    // SAFETY: vouched for by the caller.
    unsafe { &mut *scan.opaque.cast() }
}

/// The index's `amgettuple`.
#[pg_guard]
pub unsafe extern "C-unwind" fn get_tuple(
    scan: pg_sys::IndexScanDesc,
    _direction: pg_sys::ScanDirection::Type,
) -> bool {
    // SAFETY: PostgreSQL calls this with a scan that `begin_scan` made.
    unsafe {
        let scan = &mut *scan;
        if scan.xs_want_itup {
            raise(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "a neardup index does not hold the values of its rows",
                "SET enable_indexonlyscan = off",
            );
        }
        let state = state(scan);
        let left = state.left.get_or_insert_with(|| start(scan, &*state.class));
        if left.tids.is_empty() && !left.fill() {
            return false;
        }
        let Some(tid) = left.tids.pop() else {
            return false;
        };
        scan.xs_heaptid = tid;
        scan.xs_recheck = true;
        true
    }
}

/// The index's `amgetbitmap`.
#[pg_guard]
pub unsafe extern "C-unwind" fn get_bitmap(
    scan: pg_sys::IndexScanDesc,
    bitmap: *mut pg_sys::TIDBitmap,
) -> i64 {
    // SAFETY: PostgreSQL calls this with a scan that `begin_scan` made.
    unsafe {
        let scan = &mut *scan;
        let state = state(scan);
        let mut left = start(scan, &*state.class);
        let mut count = 0;
        while left.fill() {
            let len = left.tids.len() as i32;
            pg_sys::tbm_add_tuples(bitmap, left.tids.as_mut_ptr(), len, true);
            count += i64::from(len);
        }
        count
    }
}

/// The index's `amendscan`: the state goes with its memory context.
#[pg_guard]
pub unsafe extern "C-unwind" fn end_scan(scan: pg_sys::IndexScanDesc) {
    // SAFETY: PostgreSQL calls this with a scan that `begin_scan` made.
    unsafe { state(&mut *scan).left = None };
}

/// Finds the rows that a scan is to return.
///
/// # Safety
/// The scan was made by [`begin_scan`], its keys set.
unsafe fn start<'s>(scan: &mut pg_sys::IndexScanDescData, class: &dyn Class) -> Left<'s> {
    // SAFETY: vouched for by the caller.
    unsafe {
        count_scan(scan.indexRelation);
        let index = Index::new(scan.indexRelation);
        let keys: &[pg_sys::ScanKeyData] = match scan.numberOfKeys {
            0 => &[],
            count => std::slice::from_raw_parts(scan.keyData, count as usize),
        };
        let conditions = Conditions::read(keys, class);
        loop {
            match conditions.find(index, class) {
                Ok((meta, rows)) => {
                    return Left {
                        table: Rows::new(index, &meta),
                        rows,
                        tids: Vec::new(),
                    };
                }
                Err(stop) => stop.raise(&index),
            }
            check_interrupts();
        }
    }
}

/// What a scan looks for: of several conditions the most selective; the others are rechecked.
pub(super) struct Conditions {
    search: Search,
    parameters: Option<Parameters>,
}

impl Conditions {
    /// # Safety
    /// The keys are those of a scan of the class.
    pub unsafe fn read(keys: &[pg_sys::ScanKeyData], class: &dyn Class) -> Self {
        let mut best = Self {
            search: Search::Everything,
            parameters: None,
        };
        for key in keys {
            if key.sk_flags & pg_sys::SK_ISNULL as i32 != 0 {
                best.search = Search::Nothing;
                return best;
            }
            debug_assert_eq!(key.sk_strategy, CONTAINED);
            // SAFETY: vouched for by the caller.
            let (search, parameters) = unsafe { class.search(key.sk_argument) };
            if search.is_narrower_than(&best.search) {
                best = Self {
                    search,
                    parameters: Some(parameters),
                };
            }
        }
        best
    }

    pub fn find(&self, index: Index, class: &dyn Class) -> Result<(Meta, Remaining), Stop> {
        let meta = Meta::read(&index);
        if let Some(parameters) = &self.parameters {
            warn_of_parameters(&index, &meta, class, parameters);
        }
        let rows = match &self.search {
            Search::Nothing => Remaining::Some(Vec::new(), 0),
            Search::Everything => Remaining::All {
                page: 0,
                end: log::end(&index, &meta),
            },
            Search::Keys { keys, needed } => {
                let mut rows = Vec::new();
                let query = or_out_of_memory(LogQuery::places(keys));
                log::search(&index, &meta, &query, *needed, &mut rows)?;
                let mut pages = SegmentPages(index);
                for group in groups(&index, &meta) {
                    postings::search(&mut pages, &group.group(), keys, *needed, &mut |row, _| {
                        rows.try_reserve(1)?;
                        rows.push(row);
                        Ok(())
                    })?;
                }
                rows.sort_unstable();
                Remaining::Some(rows, 0)
            }
        };
        Ok((meta, rows))
    }
}

/// Warns, once a statement, that no indexed value has the parameters of a query.
fn warn_of_parameters(index: &Index, meta: &Meta, class: &dyn Class, parameters: &Parameters) {
    thread_local! {
        static LAST: Cell<(pg_sys::TimestampTz, pg_sys::Oid)> =
            const { Cell::new((0, pg_sys::InvalidOid)) };
    }
    let Some(known) = meta.parameters() else {
        return;
    };
    if known.is_empty() || known.contains(parameters) {
        return;
    }
    // SAFETY: the relation is open; reads the backend's own state.
    let statement = unsafe {
        (
            pg_sys::GetCurrentStatementStartTimestamp(),
            (*index.as_ptr()).rd_id,
        )
    };
    if LAST.replace(statement) == statement {
        return;
    }
    let known: Vec<String> = known.iter().map(|known| class.describe(known)).collect();
    hold_interrupts(|| {
        let message = format!(
            "index \"{}\" has no row with the parameters of the query",
            index.name()
        );
        let query = class.describe(parameters);
        ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, "pg_neardup")
            .set_hint(format!(
                "The query has {query}, the rows have {}.",
                known.join(", ")
            ))
            .report(PgLogLevel::WARNING);
    });
}

/// Counts a scan in the statistics of the index: pgstat_count_index_scan.
///
/// # Safety
/// The relation is open.
pub(super) unsafe fn count_scan(relation: pg_sys::Relation) {
    // SAFETY: vouched for by the caller.
    unsafe {
        let relation = &mut *relation;
        if !relation.pgstat_enabled {
            return;
        }
        if relation.pgstat_info.is_null() {
            pg_sys::pgstat_assoc_relation(relation);
        }
        #[cfg(feature = "pg15")]
        let counts = &mut (*relation.pgstat_info).t_counts;
        #[cfg(not(feature = "pg15"))]
        let counts = &mut (*relation.pgstat_info).counts;
        #[cfg(feature = "pg15")]
        {
            counts.t_numscans += 1;
        }
        #[cfg(not(feature = "pg15"))]
        {
            counts.numscans += 1;
        }
    }
}
