//! Rows of the table, as a scan's snapshot sees them.

use super::hold;
use crate::pg::error::tell;
use crate::pg::slot::Versions;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// Reads the values that a row has in the columns of an index.
pub struct Fetch {
    versions: Versions,
    info: *mut pg_sys::IndexInfo,
    state: *mut pg_sys::EState,
    /// For each row anew: the memory of expressions.
    context: *mut pg_sys::ExprContext,
}

impl Fetch {
    /// # Safety
    /// Table, index and snapshot are there until [`Self::close`], or an ERROR; so is the current memory
    /// context.
    pub unsafe fn open(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
    ) -> Self {
        // Table and index are open.
        let state = pg_sys::CreateExecutorState();
        Self {
            versions: Versions::open(table, snapshot),
            info: pg_sys::BuildIndexInfo(index),
            state,
            context: pg_sys::MakePerTupleExprContext(state),
        }
    }

    /// Calls `look` with the values of a row, valid during the call; None if the snapshot does not
    /// see the row.
    pub fn row<R>(
        &mut self,
        tid: pg_sys::ItemPointerData,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> Option<R> {
        let slot = self.versions.seen(tid)?;
        Some(self.look_at(slot, look))
    }

    /// Does [`Self::row`]; returns None also if values of the row are removed before they are read, as
    /// they may be under a snapshot of VACUUM, and, with a WARNING, if they are lost.
    pub fn row_that_stays<R>(
        &mut self,
        tid: pg_sys::ItemPointerData,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> Option<R> {
        let slot = self.versions.seen(tid)?;
        hold::point("fetch_sees_row");
        // SAFETY: the slot has a row; the copy takes its place.
        unsafe {
            let (mut is_copy, descriptor) = (false, (*slot).tts_tupleDescriptor);
            let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, &mut is_copy);
            let fetched = match flattened(tuple, descriptor) {
                Ok(fetched) => fetched,
                Err(lack) => {
                    // The values of a row that is still there are removed by nobody.
                    if self.versions.seen(tid).is_some() {
                        let message = format!("the estimate of an index leaves out a row: {lack}");
                        let hint = "The TOAST table is damaged; restore the row from a backup.";
                        tell(PgLogLevel::WARNING, &message, hint);
                    }
                    return None;
                }
            };
            pg_sys::ExecForceStoreHeapTuple(fetched, slot, true);
        }
        Some(self.look_at(slot, look))
    }

    fn look_at<R>(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> R {
        let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
        let mut is_null = [true; pg_sys::INDEX_MAX_KEYS as usize];
        // SAFETY: all is open; the arrays have room for every column.
        unsafe {
            pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            let before = pg_sys::MemoryContextSwitchTo((*self.context).ecxt_per_tuple_memory);
            (*self.context).ecxt_scantuple = slot;
            let (values, is_null) = (&mut values, &mut is_null);
            pg_sys::FormIndexDatum(
                self.info,
                slot,
                self.state,
                values.as_mut_ptr(),
                is_null.as_mut_ptr(),
            );
            let columns = (*self.info).ii_NumIndexAttrs as usize;
            let seen = look(&values[..columns], &is_null[..columns]);
            pg_sys::MemoryContextSwitchTo(before);
            seen
        }
    }

    /// Releases its memory and its rows of the table.
    pub fn close(self) {
        self.versions.close();
        // SAFETY: it is not used again.
        unsafe { pg_sys::FreeExecutorState(self.state) };
    }
}

/// Returns a copy of a row with the values that its TOAST table has; the message of PostgreSQL's ERROR if it lacks
/// chunks of them. That error is raised between the reads of two chunks, where no page is locked or being read: what
/// has been opened and pinned is all that is to be released. Any other error goes on.
///
/// # Safety
/// The row is valid and has this descriptor.
unsafe fn flattened(
    row: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
) -> Result<pg_sys::HeapTuple, String> {
    // The owner is a child of the current one, which releases it if an error goes on.
    let (outer, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
    let own = pg_sys::ResourceOwnerCreate(outer, c"pg_neardup".as_ptr());
    pg_sys::CurrentResourceOwner = own;
    let copy = || pg_sys::ffi::pg_guard_ffi_boundary(|| toast_flatten_tuple(row, descriptor));
    let done = PgTryBuilder::new(AssertUnwindSafe(|| Ok(copy())))
        .catch_when(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            |error| match lacking_chunks(&error) {
                Some(message) => Err(message),
                None => error.rethrow(),
            },
        )
        .finally(|| {
            pg_sys::CurrentResourceOwner = outer;
            pg_sys::CurrentMemoryContext = context;
        })
        .execute();
    use pg_sys::ResourceReleasePhase::*;
    for phase in [
        RESOURCE_RELEASE_BEFORE_LOCKS,
        RESOURCE_RELEASE_LOCKS,
        RESOURCE_RELEASE_AFTER_LOCKS,
    ] {
        pg_sys::ResourceOwnerRelease(own, phase, done.is_ok(), false);
    }
    pg_sys::ResourceOwnerDelete(own);
    done
}

/// Returns the message of an error that says that chunks of a value are not there. PostgreSQL does not translate it.
#[allow(clippy::disallowed_methods, reason = "the text of a message")]
fn lacking_chunks(error: &CaughtError) -> Option<String> {
    let CaughtError::PostgresError(report) = error else {
        return None;
    };
    let message = report.message();
    let is_lack = ["missing chunk number", "unexpected chunk number"]
        .iter()
        .any(|start| message.starts_with(start));
    is_lack.then(|| message.to_owned())
}

unsafe extern "C-unwind" {
    /// Copies a row, with the values that its TOAST table has.
    fn toast_flatten_tuple(
        row: pg_sys::HeapTuple,
        descriptor: pg_sys::TupleDesc,
    ) -> pg_sys::HeapTuple;
}
