//! Scans. A scan returns the candidates of one condition, or every row, unordered or ordered by distance.

use super::fetch::Fetch;
use super::find::{Remaining, find};
use super::meta::Meta;
use super::order::Ordered;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use crate::index::classes::{RowKeys, ValueParameters};
use crate::minhash::incomparable::is_first_meeting;
use crate::pg::error::{check_interrupts, tell, unsupported};
use crate::pg::prefetch;
use crate::pg::temporary_file::drop_after_error;
use crate::pg::value::new_context;
use pgrx::PgRelation;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::prelude::*;

/// The state of a scan.
struct Scan<'a> {
    row_keys: RowKeys,
    /// The memory of one search, within the memory of the scan.
    context: pg_sys::MemoryContext,
    left: RowsLeft<'a>,
}

impl Scan<'_> {
    /// Releases the memory, the buffers and the files of a search.
    fn close(&mut self) {
        match std::mem::replace(&mut self.left, RowsLeft::Start) {
            RowsLeft::Ordered(ordered) => ordered.close(),
            RowsLeft::Unordered(Left {
                conflicts: Some(conflicts),
                ..
            }) => conflicts.fetch.close(),
            _ => {}
        }
        // SAFETY: nothing that is still in use is in this memory.
        unsafe { pg_sys::MemoryContextReset(self.context) };
    }
}

impl Drop for Scan<'_> {
    /// Drops the state after an ERROR; otherwise the end of the scan has closed it. The resource owner releases buffers
    /// and files, perhaps before the memory.
    fn drop(&mut self) {
        drop_after_error(std::mem::replace(&mut self.left, RowsLeft::Start));
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
    /// The table, or NULL in a bitmap scan.
    heap: pg_sys::Relation,
    table: RowTable<'a>,
    rows: Remaining,
    /// The places of the next rows, in reverse order.
    tids: Vec<pg_sys::ItemPointerData>,
    conflicts: Option<Conflicts>,
}

/// A test of rows against a constraint. The memory that it takes for a row is freed before the next row.
struct Conflicts {
    fetch: Fetch,
    decide: Box<dyn Fn(pg_sys::Datum) -> bool>,
}

impl Left<'_> {
    /// Returns the place of the next row, or None after the last row.
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

    /// Requests from storage the table's blocks with the rows that will be returned next. Does nothing in a bitmap
    /// scan, where PostgreSQL does this itself.
    fn ask_ahead(&self) {
        let block = |tid: &pg_sys::ItemPointerData| rows::block_of(tid);
        let same = |a: &pg_sys::ItemPointerData, b: &pg_sys::ItemPointerData| block(a) == block(b);
        let blocks = self.tids.chunk_by(same).map(|here| block(&here[0]));
        let heap = self.heap;
        if !heap.is_null() && self.tids.len() > 1 {
            // SAFETY: the table is open while its index is scanned.
            unsafe {
                prefetch::ask_ahead(heap, blocks, |block| {
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
    // PostgreSQL calls this with an open index of this access method. The scan has memory of its own, because a
    // constraint begins and ends one for each row of a statement.
    let scan = pg_sys::RelationGetIndexScan(relation, keys, orders);
    let name = c"pg_neardup scan";
    let before = pg_sys::MemoryContextSwitchTo(new_context(name));
    let state = Scan {
        row_keys: RowKeys::of_index(relation),
        context: new_context(name),
        left: RowsLeft::Start,
    };
    let mut context = PgMemoryContexts::CurrentMemoryContext;
    (*scan).opaque = context.leak_and_drop_on_delete(state).cast();
    if orders > 0 {
        let count = orders as usize;
        (*scan).xs_orderbyvals = pg_sys::palloc0(count * size_of::<pg_sys::Datum>()).cast();
        (*scan).xs_orderbynulls = pg_sys::palloc0(count).cast();
    }
    pg_sys::MemoryContextSwitchTo(before);
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
    ensure_young_snapshot(scan);
    let Some((tid, distance)) = next else {
        return false;
    };
    scan.xs_heaptid = tid;
    if scan.numberOfOrderBys > 0 {
        // If ORDER BY has more distances, the index reports the minimum, 0, for these and leaves them to the executor.
        scan.xs_recheckorderby = scan.numberOfOrderBys > 1;
        // Both arrays have an element for each order. The other elements stay 0.
        *scan.xs_orderbynulls = distance.is_none();
        *scan.xs_orderbyvals = distance.unwrap_or(pg_sys::Datum::null());
    }
    true
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
    ensure_young_snapshot(scan);
    count
}

/// Raises PostgreSQL's ERROR if old_snapshot_threshold lets VACUUM remove rows that the snapshot of a scan sees. The
/// pages of the index do not show which rows they have lost, so every old snapshot is rejected.
///
/// # Safety
/// `scan` was made by [`begin_scan`].
unsafe fn ensure_young_snapshot(scan: &pg_sys::IndexScanDescData) {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    if pg_sys::old_snapshot_threshold >= 0
        && let Some(snapshot) = scan.xs_snapshot.as_ref()
        && snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
    {
        pg_sys::TestForOldSnapshot_impl(scan.xs_snapshot, scan.indexRelation);
    }
    let _ = scan;
}

/// Implements `amendscan`. Frees the memory of the scan, and the state with it.
#[pg_guard]
pub unsafe extern "C-unwind" fn end_scan(scan: pg_sys::IndexScanDesc) {
    // PostgreSQL calls this with a scan that `begin_scan` made.
    let state = state(&mut *scan);
    state.close();
    pg_sys::MemoryContextDelete((*state.context).parent);
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

/// Finds the candidates of a scan, and returns the rows still to be returned.
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
    // A constraint looks for the rows that it forbids.
    let dirty = pg_sys::SnapshotType::SNAPSHOT_DIRTY;
    let is_check = snapshot
        .as_ref()
        .is_some_and(|of| of.snapshot_type == dirty);
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
        && let Some(nearest) = row_keys.order(&*orders, conditions)
    {
        let fetch = Fetch::open(heap, relation, snapshot);
        let ordered = Ordered::start(index, row_keys, search, nearest, &look, fetch);
        return RowsLeft::Ordered(ordered);
    }
    let (meta, rows) = find(index, &search, 0, false, &look);
    let decide = is_check.then(|| row_keys.decide(conditions)).flatten();
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
        let (name, wanted) = (index.name(), row_keys.describe(parameters));
        let present = known.join(", ");
        tell(
            PgLogLevel::WARNING,
            &format!("index \"{name}\" has no row with the parameters of the query"),
            &format!("The query has {wanted}, the rows have {present}."),
        );
    }
}
