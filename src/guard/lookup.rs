//! Looking through an index for rows that others have not committed yet, as a unique index does.

use crate::pg::relation::Relation;
use pgrx::pg_sys;

/// A row found, and what is known of the transactions behind it.
pub struct Found {
    pub slot: *mut pg_sys::TupleTableSlot,
    pub pending: Option<Pending>,
}

/// A transaction in progress that inserted, changed or deleted a row.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    transaction: pg_sys::TransactionId,
    speculative_token: u32,
}

impl Pending {
    /// Waits until the transaction has ended, or the speculative insertion is decided.
    ///
    /// # Errors
    /// ERROR on a deadlock, a timeout or a cancel.
    pub fn wait(&self, table: pg_sys::Relation) {
        // SAFETY: the table is open; without a row number none is named in messages.
        unsafe {
            if self.speculative_token != 0 {
                pg_sys::SpeculativeInsertionWait(self.transaction, self.speculative_token);
            } else {
                pg_sys::XactLockTableWait(
                    self.transaction,
                    table,
                    std::ptr::null_mut(),
                    pg_sys::XLTW_Oper::XLTW_None,
                );
            }
        }
    }
}

/// Returns a snapshot that sees rows of transactions in progress, and says which these are.
fn dirty_snapshot() -> pg_sys::SnapshotData {
    pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
        ..Default::default()
    }
}

/// Visits every live row, committed or not, that the index column finds by `<@ ball`, until `visit`
/// says stop (false). Rows have to be checked: the index finds too many.
///
/// # Safety
/// The index is one of our GIN operator classes on the table, `operator` its `<@`.
pub unsafe fn for_each_candidate(
    table: &Relation,
    index: &Relation,
    column: i16,
    operator: pg_sys::Oid,
    ball: pg_sys::Datum,
    visit: &mut dyn FnMut(&Found) -> bool,
) {
    let mut snapshot = dirty_snapshot();
    // SAFETY: vouched for by the caller; everything is ended below or, after an ERROR, with the
    // statement.
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyEntryInitialize(
            &mut key,
            0,
            column,
            1,
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::get_opcode(operator),
            ball,
        );
        let scan = pg_sys::index_beginscan_bitmap(
            index.as_ptr(),
            &mut snapshot,
            #[cfg(feature = "pg18")]
            std::ptr::null_mut(),
            1,
        );
        pg_sys::index_rescan(scan, &mut key, 1, std::ptr::null_mut(), 0);
        let bitmap = pg_sys::tbm_create(
            crate::pg::query::work_mem_bytes() as _,
            std::ptr::null_mut(),
        );
        pg_sys::index_getbitmap(scan, bitmap);
        pg_sys::index_endscan(scan);
        let rows = row_numbers(bitmap);
        pg_sys::tbm_free(bitmap);

        let fetch = pg_sys::table_index_fetch_begin(table.as_ptr());
        let slot = pg_sys::table_slot_create(table.as_ptr(), std::ptr::null_mut());
        for row in rows {
            if !visit_row(fetch, row, &mut snapshot, slot, visit) {
                break;
            }
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::table_index_fetch_end(fetch);
    }
}

/// Visits the live versions of the row behind an index entry.
///
/// # Safety
/// The fetch and the slot are of one open table.
unsafe fn visit_row(
    fetch: *mut pg_sys::IndexFetchTableData,
    mut row: pg_sys::ItemPointerData,
    snapshot: &mut pg_sys::SnapshotData,
    slot: *mut pg_sys::TupleTableSlot,
    visit: &mut dyn FnMut(&Found) -> bool,
) -> bool {
    let (mut again, mut all_dead) = (false, false);
    loop {
        // SAFETY: vouched for by the caller.
        let found = unsafe {
            pg_sys::table_index_fetch_tuple(
                fetch,
                &mut row,
                snapshot,
                slot,
                &mut again,
                &mut all_dead,
            )
        };
        if !found {
            return true;
        }
        let in_progress = [snapshot.xmin, snapshot.xmax]
            .into_iter()
            .find(|&transaction| transaction != pg_sys::InvalidTransactionId);
        let pending = in_progress.map(|transaction| Pending {
            transaction,
            speculative_token: snapshot.speculativeToken,
        });
        if !visit(&Found { slot, pending }) {
            return false;
        }
        if !again {
            return true;
        }
    }
}

/// Numbers of line pointers on a page, for pages of which the bitmap only knows that they matter.
const MAX_OFFSETS: usize = (pg_sys::BLCKSZ as usize - PAGE_HEADER) / (TUPLE_HEADER + LINE_POINTER);
const PAGE_HEADER: usize = 24;
const TUPLE_HEADER: usize = 24;
const LINE_POINTER: usize = 4;

fn push(rows: &mut Vec<pg_sys::ItemPointerData>, block: u32, offsets: &[u16]) {
    rows.extend(offsets.iter().map(|&offset| {
        let mut row = pg_sys::ItemPointerData::default();
        pgrx::itemptr::item_pointer_set_all(&mut row, block, offset);
        row
    }));
}

fn all_offsets() -> Vec<u16> {
    (1..=MAX_OFFSETS as u16).collect()
}

/// # Safety
/// The bitmap is valid.
#[cfg(not(feature = "pg18"))]
unsafe fn row_numbers(bitmap: *mut pg_sys::TIDBitmap) -> Vec<pg_sys::ItemPointerData> {
    let mut rows = Vec::new();
    // SAFETY: vouched for by the caller; a result lives until the next one.
    unsafe {
        let iterator = pg_sys::tbm_begin_iterate(bitmap);
        while let Some(page) = pg_sys::tbm_iterate(iterator).as_ref() {
            match usize::try_from(page.ntuples) {
                Ok(count) => push(&mut rows, page.blockno, page.offsets.as_slice(count)),
                Err(_) => push(&mut rows, page.blockno, &all_offsets()),
            }
        }
        pg_sys::tbm_end_iterate(iterator);
    }
    rows
}

/// # Safety
/// The bitmap is valid.
#[cfg(feature = "pg18")]
unsafe fn row_numbers(bitmap: *mut pg_sys::TIDBitmap) -> Vec<pg_sys::ItemPointerData> {
    let mut rows = Vec::new();
    // SAFETY: vouched for by the caller; a result is valid until the next one.
    unsafe {
        let iterator = pg_sys::tbm_begin_private_iterate(bitmap);
        let mut page = pg_sys::TBMIterateResult::default();
        while pg_sys::tbm_private_iterate(iterator, &mut page) {
            if page.lossy {
                push(&mut rows, page.blockno, &all_offsets());
                continue;
            }
            let mut offsets = [0; MAX_OFFSETS];
            let count =
                pg_sys::tbm_extract_page_tuple(&mut page, offsets.as_mut_ptr(), MAX_OFFSETS as u32);
            push(&mut rows, page.blockno, &offsets[..count as usize]);
        }
        pg_sys::tbm_end_private_iterate(iterator);
    }
    rows
}
