//! Reading a query given as text, row by row, in an order that depends on nothing but the query.

use crate::pg::catalog::type_name;
use crate::pg::error::raise;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::marker::PhantomData;

/// Rows fetched at once.
const BATCH: i64 = 256;

/// work_mem in bytes.
pub fn work_mem_bytes() -> usize {
    // SAFETY: reads a setting of this backend.
    unsafe { pg_sys::work_mem as usize * 1024 }
}

/// A column of a query's result.
#[derive(Debug, Clone, Copy)]
pub struct Column(pg_sys::Oid);

impl Column {
    /// Returns the type, without domains over it.
    pub fn base_type(&self) -> pg_sys::Oid {
        // SAFETY: plain catalog lookup.
        unsafe { pg_sys::getBaseType(self.0) }
    }

    pub fn type_name(&self) -> String {
        type_name(self.0)
    }

    /// # Errors
    /// ERROR `datatype_mismatch` if the column is not of that type, or of a domain over it.
    pub fn check_type(&self, expected: pg_sys::Oid, position: &str, what: &str) {
        if self.0 != expected && self.base_type() != expected {
            raise(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                &format!(
                    "the {position} column of the query is of type {} instead of {}",
                    self.type_name(),
                    type_name(expected)
                ),
                &format!(
                    "The {position} column is the {what}; cast it to {}.",
                    type_name(expected)
                ),
            );
        }
    }
}

/// A query that is being read.
pub struct Query {
    portal: pg_sys::Portal,
    guc_level: i32,
}

impl Query {
    /// Starts the query in `text`, a datum of type text. No parallel plan, and no scan that begins
    /// where another one happens to be: rows come in the same order every time.
    pub fn open(text: pg_sys::Datum) -> Self {
        // SAFETY: the datum is of type text; the connection is closed in `for_each`, or by
        // PostgreSQL after an ERROR, which takes back the setting too.
        unsafe {
            let query = pg_sys::text_to_cstring(text.cast_mut_ptr());
            let guc_level = pg_sys::NewGUCNestLevel();
            pg_sys::set_config_option(
                c"synchronize_seqscans".as_ptr(),
                c"off".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
            if pg_sys::SPI_connect() != pg_sys::SPI_OK_CONNECT as i32 {
                raise(
                    PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                    "SPI_connect failed",
                    "",
                );
            }
            let portal = pg_sys::SPI_cursor_open_with_args(
                std::ptr::null(),
                query,
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null(),
                false,
                pg_sys::CURSOR_OPT_NO_SCROLL as i32,
            );
            Self { portal, guc_level }
        }
    }

    pub fn columns(&self) -> Vec<Column> {
        // SAFETY: the portal is open, and one that returns rows.
        unsafe {
            let descriptor = (*self.portal).tupDesc;
            (1..=(*descriptor).natts)
                .map(|number| Column(pg_sys::SPI_gettypeid(descriptor, number)))
                .collect()
        }
    }

    /// Visits every row, and ends the query.
    pub fn for_each(self, visit: &mut dyn FnMut(&Row<'_>)) {
        loop {
            // SAFETY: the portal is open; table and tuples live until they are freed below.
            unsafe {
                pg_sys::SPI_cursor_fetch(self.portal, true, BATCH as _);
                let (table, rows) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize);
                for number in 0..rows {
                    visit(&Row {
                        tuple: *(*table).vals.add(number),
                        descriptor: (*table).tupdesc,
                        lifetime: PhantomData,
                    });
                }
                pg_sys::SPI_freetuptable(table);
                if rows == 0 {
                    break;
                }
            }
        }
        // SAFETY: the portal is open; the connection and the level are those of `open`.
        unsafe {
            pg_sys::SPI_cursor_close(self.portal);
            pg_sys::SPI_finish();
            pg_sys::AtEOXact_GUC(true, self.guc_level);
        }
    }
}

/// A row while it is visited.
pub struct Row<'a> {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
    lifetime: PhantomData<&'a ()>,
}

impl Row<'_> {
    /// Returns the value of a column, counted from 0; None for NULL.
    pub fn get(&self, column: i32) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the tuple has that descriptor.
        let datum =
            unsafe { pg_sys::SPI_getbinval(self.tuple, self.descriptor, column + 1, &mut is_null) };
        (!is_null).then_some(datum)
    }
}
