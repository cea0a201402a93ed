//! Scans. A scan returns the candidates of one condition, or every row, unordered or ordered by distance.

use super::candidates::SearchCandidates;
use super::fetch::Fetch;
use super::find::{Remaining, find};
use super::meta::Meta;
use super::order::Ordered;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use crate::index::ball::NewBall;
use crate::index::classes::{KeySearch, RowKeys, ValueParameters};
use crate::minhash::incomparable::is_first_meeting;
use crate::pg::error::{check_interrupts, tell, unsupported};
use crate::pg::relation;
use pgrx::PgRelation;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::prelude::*;

/// The state of a scan.
struct Scan<'a> {
    row_keys: RowKeys,
    /// The memory context of the scan.
    context: pg_sys::MemoryContext,
    left: RowsLeft<'a>,
}

impl Scan<'_> {
    /// Releases the memory and the buffers of the scan. After an ERROR, its memory context and resource owner release
    /// them.
    fn close(&mut self) {
        match std::mem::replace(&mut self.left, RowsLeft::Start) {
            RowsLeft::Ordered(ordered) => ordered.close(),
            RowsLeft::Unordered(Left {
                conflicts: Some(conflicts),
                ..
            }) => conflicts.fetch.close(),
            _ => {}
        }
    }
}

/// The rows still to be returned.
enum RowsLeft<'a> {
    /// All rows: the first one has not been requested yet.
    Start,
    Unordered(Left<'a>),
    Ordered(Ordered<'a>),
}

/// Rows still to be returned, unordered.
struct Left<'a> {
    /// NULL in a bitmap scan.
    heap: pg_sys::Relation,
    table: RowTable<'a>,
    rows: Remaining,
    /// The places of the next rows, in reverse order.
    tids: Vec<pg_sys::ItemPointerData>,
    conflicts: Option<Conflicts>,
}

/// Decides which rows conflict with a constraint, using separate memory for each row.
struct Conflicts {
    fetch: Fetch,
    decide: Box<dyn Fn(pg_sys::Datum) -> bool>,
}

impl Left<'_> {
    /// Returns the place of the next row.
    fn next(&mut self, row_keys: &RowKeys) -> Option<pg_sys::ItemPointerData> {
        loop {
            if self.tids.is_empty() && !self.fill() {
                return None;
            }
            let tid = self.tids.pop()?;
            let Some(Conflicts { fetch, decide }) = &mut self.conflicts else {
                return Some(tid);
            };
            let conflicts = fetch.row(tid, |values, is_null| {
                row_keys.compared(values, is_null).is_some_and(&mut *decide)
            });
            if conflicts == Some(true) {
                return Some(tid);
            }
        }
    }

    /// Looks up the next rows. Returns false if there are none.
    fn fill(&mut self) -> bool {
        self.tids.clear();
        while self.tids.is_empty() {
            check_interrupts();
            let tids = &mut self.tids;
            let mut add = |_, entry: RowEntry| tids.push(entry.tid);
            if !self.rows.look_up(&mut self.table, &mut add) {
                return false;
            }
        }
        self.ask_ahead();
        self.tids.reverse();
        true
    }

    /// Asks the storage for the rows that will be returned next, unless PostgreSQL does that itself.
    fn ask_ahead(&self) {
        let block = |tid: &pg_sys::ItemPointerData| rows::block_of(tid);
        let same = |a: &pg_sys::ItemPointerData, b: &pg_sys::ItemPointerData| block(a) == block(b);
        let blocks = self.tids.chunk_by(same).map(|here| block(&here[0]));
        let heap = self.heap;
        if !heap.is_null() && self.tids.len() > 1 {
            // SAFETY: the table is open while its index is scanned.
            unsafe {
                relation::ask_ahead(heap, blocks, |block| {
                    let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
                    pg_sys::PrefetchBuffer(heap, fork, block).initiated_io
                });
            }
        }
    }
}

/// Implements `ambeginscan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn begin_scan(
    relation: pg_sys::Relation,
    keys: i32,
    orders: i32,
) -> pg_sys::IndexScanDesc {
    // PostgreSQL calls this with an open index of this access method. The state lives as long as the scan's memory
    // context.
    let scan = pg_sys::RelationGetIndexScan(relation, keys, orders);
    let state = Scan {
        row_keys: RowKeys::of_index(relation),
        context: pg_sys::CurrentMemoryContext,
        left: RowsLeft::Start,
    };
    (*scan).opaque = PgMemoryContexts::CurrentMemoryContext
        .leak_and_drop_on_delete(state)
        .cast();
    if orders > 0 {
        let count = orders as usize;
        (*scan).xs_orderbyvals = pg_sys::palloc0(count * size_of::<pg_sys::Datum>()).cast();
        (*scan).xs_orderbynulls = pg_sys::palloc0(count).cast();
    }
    scan
}

/// Implements `amrescan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn rescan(
    scan: pg_sys::IndexScanDesc,
    keys: pg_sys::ScanKey,
    _key_count: i32,
    orders: pg_sys::ScanKey,
    _order_count: i32,
) {
    // PostgreSQL calls this with a scan that `begin_scan` made, and with its keys and orders.
    let scan = &mut *scan;
    state(scan).close();
    let (key_count, order_count) = (scan.numberOfKeys, scan.numberOfOrderBys);
    if !keys.is_null() && key_count > 0 {
        scan.keyData.copy_from(keys, key_count as usize);
    }
    if !orders.is_null() && order_count > 0 {
        scan.orderByData.copy_from(orders, order_count as usize);
    }
}

/// # Safety
/// `scan` was made by [`begin_scan`].
unsafe fn state<'s>(scan: &mut pg_sys::IndexScanDescData) -> &'s mut Scan<'s> {
    &mut *scan.opaque.cast()
}

/// Implements `amgettuple`.
#[pg_guard]
pub unsafe extern "C-unwind" fn get_tuple(
    scan: pg_sys::IndexScanDesc,
    _direction: pg_sys::ScanDirection::Type,
) -> bool {
    // PostgreSQL calls this with a scan that `begin_scan` made.
    let scan = &mut *scan;
    if scan.xs_want_itup {
        unsupported(
            "a neardup index does not hold the values of its rows",
            "SET enable_indexonlyscan = off",
        );
    }
    let state = state(scan);
    scan.xs_recheck = true;
    let before = pg_sys::MemoryContextSwitchTo(state.context);
    if let RowsLeft::Start = state.left {
        state.left = start(scan, &state.row_keys);
    }
    let next = match &mut state.left {
        RowsLeft::Ordered(ordered) => ordered.next(&state.row_keys, conditions(scan)),
        RowsLeft::Unordered(left) => left.next(&state.row_keys).map(|tid| (tid, None)),
        RowsLeft::Start => None,
    };
    pg_sys::MemoryContextSwitchTo(before);
    let Some((tid, distance)) = next else {
        return false;
    };
    scan.xs_heaptid = tid;
    report_distance(scan, distance);
    true
}

/// Reports a row's distance to the executor. If ORDER BY has more distances, the index reports the minimum, 0, for
/// these and leaves them to the executor.
///
/// # Safety
/// `scan` was made by [`begin_scan`].
unsafe fn report_distance(scan: &mut pg_sys::IndexScanDescData, distance: Option<pg_sys::Datum>) {
    let count = scan.numberOfOrderBys as usize;
    if count == 0 {
        return;
    }
    scan.xs_recheckorderby = count > 1;
    // Both arrays have an element for each order. The other elements stay 0.
    *scan.xs_orderbynulls = distance.is_none();
    *scan.xs_orderbyvals = distance.unwrap_or(pg_sys::Datum::null());
}

/// Implements `amgetbitmap`.
#[pg_guard]
pub unsafe extern "C-unwind" fn get_bitmap(
    scan: pg_sys::IndexScanDesc,
    bitmap: *mut pg_sys::TIDBitmap,
) -> i64 {
    // PostgreSQL calls this with a scan that `begin_scan` made.
    let scan = &mut *scan;
    let state = state(scan);
    let RowsLeft::Unordered(mut left) = start(scan, &state.row_keys) else {
        return 0;
    };
    let mut count = 0;
    while left.fill() {
        let len = left.tids.len() as i32;
        pg_sys::tbm_add_tuples(bitmap, left.tids.as_mut_ptr(), len, true);
        count += i64::from(len);
    }
    count
}

/// Implements `amendscan`. The state is freed with its memory context.
#[pg_guard]
pub unsafe extern "C-unwind" fn end_scan(scan: pg_sys::IndexScanDesc) {
    // SAFETY: PostgreSQL calls this with a scan that `begin_scan` made.
    unsafe { state(&mut *scan).close() };
}

/// Returns the conditions of a scan.
///
/// # Safety
/// `scan` was made by [`begin_scan`], and its keys are set.
unsafe fn conditions(scan: &mut pg_sys::IndexScanDescData) -> &mut [pg_sys::ScanKeyData] {
    match scan.numberOfKeys {
        0 => &mut [],
        count => std::slice::from_raw_parts_mut(scan.keyData, count as usize),
    }
}

/// Finds the rows that a scan will return.
///
/// # Safety
/// `scan` was made by [`begin_scan`], and its keys and orders are set.
unsafe fn start<'s>(scan: &mut pg_sys::IndexScanDescData, row_keys: &RowKeys) -> RowsLeft<'s> {
    PgRelation::from_pg(scan.indexRelation).count_index_scan();
    #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
    if let Some(instrument) = scan.instrument.as_mut() {
        instrument.nsearches += 1;
    }
    let (heap, relation, snapshot) = (scan.heapRelation, scan.indexRelation, scan.xs_snapshot);
    let (orders, order_count) = (scan.orderByData, scan.numberOfOrderBys);
    let is_check = is_constraint_check(scan);
    let index = Index::new(relation);
    let conditions = conditions(scan);
    let (search, parameters) = row_keys.search(conditions);
    let parameters = parameters.filter(|_| !is_check);
    let look = |meta: &Meta| {
        if let Some(parameters) = &parameters {
            warn_of_parameters(&index, meta, row_keys, parameters);
        }
    };
    if order_count > 0
        && let Some((ball, nearest)) = row_keys.order(&*orders, conditions)
    {
        let fetch = Fetch::open(heap, relation, snapshot);
        let ordered = start_ordered(index, row_keys, search, &look, ball, nearest, fetch);
        return RowsLeft::Ordered(ordered);
    }
    let (meta, rows) = find(index, &search, 0, false, &look);
    let decide = match is_check {
        true => row_keys.decide(conditions),
        false => None,
    };
    RowsLeft::Unordered(Left {
        heap,
        table: RowTable::new(index, &meta),
        rows,
        tids: Vec::new(),
        conflicts: decide.map(|decide| Conflicts {
            fetch: Fetch::open(heap, relation, snapshot),
            decide,
        }),
    })
}

/// Begins an ordered scan with the candidates that `search` finds for the scan's condition. If keys cannot answer it,
/// begins with the candidates that `nearest` finds near the query of the order.
fn start_ordered<'s>(
    index: Index<'s>,
    row_keys: &RowKeys,
    search: KeySearch,
    look: &dyn Fn(&Meta),
    ball: NewBall,
    nearest: KeySearch,
    fetch: Fetch,
) -> Ordered<'s> {
    let keys_of = |search: &KeySearch| match search {
        KeySearch::Keys { keys, .. } => keys.clone(),
        _ => Vec::new(),
    };
    let has_bounds = search == KeySearch::Everything || keys_of(&search) == keys_of(&nearest);
    let (search, tail) = match (search, &nearest) {
        (KeySearch::Everything, KeySearch::Keys { needed, .. }) => {
            let least = row_keys.least_distance(&ball.read(), needed.least() - 1);
            (nearest, Some(least))
        }
        (KeySearch::Everything, _) => (KeySearch::Nothing, Some(0.0)),
        (search, _) => (search, None),
    };
    let (meta, rows) = find(index, &search, 0, true, look);
    let candidates = match rows {
        Remaining::Some(candidates, _) => candidates,
        Remaining::All { .. } => SearchCandidates::new(),
    };
    let table = RowTable::new(index, &meta);
    Ordered::new(row_keys, ball, fetch, table, candidates, has_bounds, tail)
}

/// Returns whether a scan looks for rows that an exclusion constraint forbids.
fn is_constraint_check(scan: &pg_sys::IndexScanDescData) -> bool {
    // SAFETY: a scan's snapshot is NULL, or valid while the scan runs.
    unsafe {
        !scan.xs_snapshot.is_null()
            && (*scan.xs_snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY
    }
}

/// Warns that no indexed value has the parameters of the query, once per session and pair of parameters.
fn warn_of_parameters(
    index: &Index,
    meta: &Meta,
    row_keys: &RowKeys,
    parameters: &ValueParameters,
) {
    if let Some(known) = meta.parameters()
        && let Some(first) = known.first()
        && !known.contains(parameters)
        && is_first_meeting(*first, *parameters)
    {
        let known: Vec<String> = known.iter().map(|known| row_keys.describe(known)).collect();
        tell(
            PgLogLevel::WARNING,
            &format!(
                "index \"{}\" has no row with the parameters of the query",
                index.name()
            ),
            &format!(
                "The query has {}, the rows have {}.",
                row_keys.describe(parameters),
                known.join(", ")
            ),
        );
    }
}
