//! Reads rows of the table, as a snapshot sees them.

use super::hold;
use crate::pg::error::tell;
use crate::pg::nodes;
use crate::pg::slot::{Versions, get};
use crate::pg::value::Layout;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// A reader of the values that rows have in the columns of an index.
pub struct Fetch {
    versions: Versions,
    info: *mut pg_sys::IndexInfo,
    state: *mut pg_sys::EState,
    /// The memory for expressions, which is reset after each row.
    context: *mut pg_sys::ExprContext,
    /// The columns of the table that the index reads.
    columns: Vec<i16>,
    /// Number of bytes of variable length that [`Self::row_that_stays`] has read.
    pub bytes: usize,
}

impl Fetch {
    /// # Safety
    /// `table`, `index`, `snapshot` and the current memory context remain valid until [`Self::close`] or an ERROR.
    pub unsafe fn open(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
    ) -> Self {
        // Table and index are open.
        let state = pg_sys::CreateExecutorState();
        let before = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
        let info = pg_sys::BuildIndexInfo(index);
        let mut columns = nodes::columns((*info).ii_Expressions.cast());
        columns.extend((*info).ii_IndexAttrNumbers);
        columns.retain(|&column| column > 0);
        pg_sys::MemoryContextSwitchTo(before);
        Self {
            columns,
            versions: Versions::open(table, snapshot),
            info,
            state,
            context: pg_sys::MakePerTupleExprContext(state),
            bytes: 0,
        }
    }

    /// Calls `look` with the values of the row at `tid`, which are valid during the call, and returns its result.
    /// Returns None if the snapshot does not see the row.
    pub fn row<R>(
        &mut self,
        tid: pg_sys::ItemPointerData,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> Option<R> {
        let slot = self.versions.seen(tid)?;
        Some(self.look_at(slot, look))
    }

    /// Does the same as [`Self::row`], but also returns None if values of the index's columns cannot be read. Chunks of
    /// them may have been removed from the TOAST table before, which the snapshot of a VACUUM does not prevent. If the row
    /// is still visible, they are lost, which a WARNING reports.
    pub fn row_that_stays<R>(
        &mut self,
        tid: pg_sys::ItemPointerData,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> Option<R> {
        let slot = self.versions.seen(tid)?;
        hold::point("fetch_sees_row");
        // SAFETY: the slot has a row of the table.
        let fetched = unsafe { fetch_values(slot, &self.columns, self.memory()) };
        let Err(lack) = fetched.map(|bytes| self.bytes += bytes) else {
            return Some(self.look_at(slot, look));
        };
        // Nobody removes the values of a row that is still visible.
        if self.versions.seen(tid).is_some() {
            let message = format!("the estimate of an index leaves out a row: {lack}");
            let hint = "The table is damaged; restore the row from a backup.";
            tell(PgLogLevel::WARNING, &message, hint);
        }
        None
    }

    /// Returns the memory for one row.
    fn memory(&self) -> pg_sys::MemoryContext {
        // SAFETY: the state is there until `close`.
        unsafe { (*self.context).ecxt_per_tuple_memory }
    }

    fn look_at<R>(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> R,
    ) -> R {
        let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
        let mut is_null = [true; pg_sys::INDEX_MAX_KEYS as usize];
        // SAFETY: everything is open; the arrays have room for every column.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(self.memory());
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
            pg_sys::MemoryContextReset(self.memory());
            seen
        }
    }

    /// Releases the memory and the buffers of the table.
    pub fn close(self) {
        self.versions.close();
        // SAFETY: it is not used again.
        unsafe { pg_sys::FreeExecutorState(self.state) };
    }
}

/// Replaces values of `columns` in a slot with whole ones, which are in `memory` if they are copies, and returns the
/// number of their bytes, or the message of PostgreSQL's ERROR if they are damaged or lack chunks. This error is
/// raised between the reads of two chunks or after them, where no page is locked or being read, so only open relations
/// and pins must be released. Rethrows any other error.
///
/// # Safety
/// The slot has a row with these columns.
unsafe fn fetch_values(
    slot: *mut pg_sys::TupleTableSlot,
    columns: &[i16],
    memory: pg_sys::MemoryContext,
) -> Result<usize, String> {
    // The owner is a child of the current one, which releases it if an error is rethrown.
    let (outer, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
    let own = pg_sys::ResourceOwnerCreate(outer, c"pg_neardup".as_ptr());
    pg_sys::CurrentResourceOwner = own;
    pg_sys::CurrentMemoryContext = memory;
    let copy = || {
        let mut bytes = 0;
        for &column in columns {
            let layout = Layout::of(pg_sys::SPI_gettypeid(
                (*slot).tts_tupleDescriptor,
                column.into(),
            ));
            let Some(value) = get(slot, column).filter(|_| layout.length == -1) else {
                continue;
            };
            // The slot has deformed the row as far as this column.
            let place = (*slot).tts_values.add(column as usize - 1);
            let whole = pg_sys::pg_detoast_datum(value.cast_mut_ptr());
            bytes += pgrx::varlena::varsize_any(whole);
            *place = pg_sys::Datum::from(whole);
        }
        Ok(bytes)
    };
    let done = PgTryBuilder::new(AssertUnwindSafe(copy))
        .catch_when(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            |error| match of_one_value(&error) {
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

/// Returns the message of an error that reports damage of one value, or None for other errors. PostgreSQL does not
/// translate these messages.
#[allow(clippy::disallowed_methods, reason = "the text of a message")]
fn of_one_value(error: &CaughtError) -> Option<String> {
    let CaughtError::PostgresError(report) = error else {
        return None;
    };
    let message = report.message();
    let is_of_value = ["missing chunk", "unexpected chunk", "compressed "]
        .iter()
        .any(|start| message.starts_with(start));
    is_of_value.then(|| message.to_owned())
}
