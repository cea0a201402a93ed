//! Reading a query given as text, row by row, in an order that depends on nothing but the query.

use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::query_errors::{QueryErrors, Work};
use crate::pg::statement::{server_text, text_datum, utf8};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CStr;
use std::marker::PhantomData;

/// Rows fetched at once.
const BATCH: i64 = 256;

/// Returns work_mem in bytes.
pub fn work_mem_bytes() -> usize {
    // SAFETY: reads a setting of this backend.
    unsafe { pg_sys::work_mem as usize * 1024 }
}

/// A column of a query's result, of a type that is not known yet.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    number: i32,
    column_type: pg_sys::Oid,
}

/// A column whose type has been checked. No value of a query is read without one.
#[derive(Debug, Clone, Copy)]
pub struct CheckedColumn(i32);

impl Column {
    pub fn type_name(&self) -> String {
        names::type_(self.column_type)
    }

    /// Returns the column if its type, without domains over it, is accepted.
    pub fn if_base_type(&self, accepts: impl FnOnce(pg_sys::Oid) -> bool) -> Option<CheckedColumn> {
        // SAFETY: plain catalog lookup.
        accepts(unsafe { pg_sys::getBaseType(self.column_type) })
            .then_some(CheckedColumn(self.number))
    }

    /// Returns the column if it is of that type, or of a domain over it.
    pub fn if_type(&self, expected: pg_sys::Oid) -> Option<CheckedColumn> {
        if self.column_type == expected {
            return Some(CheckedColumn(self.number));
        }
        self.if_base_type(|base_type| base_type == expected)
    }

    /// Returns the column, which is of that type, or of a domain over it.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` otherwise.
    pub fn of_type(&self, expected: pg_sys::Oid, position: &str, what: &str) -> CheckedColumn {
        self.if_type(expected)
            .unwrap_or_else(|| self.mismatch(expected, position, what))
    }

    /// Raises the error of a column of another type than the expected one.
    pub fn mismatch(&self, expected: pg_sys::Oid, position: &str, what: &str) -> ! {
        raise(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            &format!(
                "the {position} column of the query is of type {} instead of {}",
                self.type_name(),
                names::type_(expected)
            ),
            &format!(
                "The {position} column is the {what}; cast it to {}.",
                names::type_(expected)
            ),
        )
    }
}

/// A query that is being read.
pub struct Query {
    portal: pg_sys::Portal,
    guc_level: i32,
    errors: QueryErrors,
}

/// Returns the number of rows that the planner expects of a portal, and the bytes of each.
///
/// # Safety
/// The portal is open.
pub(super) unsafe fn estimate(portal: pg_sys::Portal) -> (f64, usize) {
    // SAFETY: vouched for by the caller; a portal that has a plan has a list of statements.
    unsafe {
        let statement = pg_sys::PortalGetPrimaryStmt(portal);
        match statement
            .as_ref()
            .and_then(|statement| statement.planTree.as_ref())
        {
            Some(plan) => (plan.plan_rows, plan.plan_width.max(0) as usize),
            None => (0.0, 0),
        }
    }
}

impl Query {
    /// Starts the query in `text`, a datum of type text. No parallel plan, and no scan that begins
    /// where another one happens to be: rows come in the same order every time.
    pub fn open(text: pg_sys::Datum) -> Self {
        // SAFETY: the datum is of type text; the connection is closed in `for_each`, or by
        // PostgreSQL after an ERROR, which takes back the setting too.
        unsafe {
            let query = pg_sys::text_to_cstring(text.cast_mut_ptr());
            let errors = QueryErrors::begin(query);
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
            let portal = errors.during(Work::Planning, || {
                pg_sys::SPI_cursor_open_with_args(
                    std::ptr::null(),
                    query,
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    std::ptr::null(),
                    false,
                    pg_sys::CURSOR_OPT_NO_SCROLL as i32,
                )
            });
            Self {
                portal,
                guc_level,
                errors,
            }
        }
    }

    /// Starts a query of the extension's own.
    pub fn of_sql(sql: &str) -> Self {
        Self::open(text_datum(server_text(sql).to_bytes()))
    }

    #[allow(clippy::disallowed_methods, reason = "at most 1600 columns")]
    pub fn columns(&self) -> Vec<Column> {
        // SAFETY: the portal is open, and one that returns rows.
        unsafe {
            let descriptor = (*self.portal).tupDesc;
            (1..=(*descriptor).natts)
                .map(|number| Column {
                    number,
                    column_type: pg_sys::SPI_gettypeid(descriptor, number),
                })
                .collect()
        }
    }

    /// Returns the number of rows that the planner expects, and the bytes of each.
    pub fn estimate(&self) -> (f64, usize) {
        // SAFETY: the portal is open.
        unsafe { estimate(self.portal) }
    }

    /// Returns the name of a column, by its place from 0.
    pub fn column_name(&self, place: usize) -> String {
        // SAFETY: the portal is open; the name of a column that is there is NUL-terminated.
        unsafe {
            let name = pg_sys::SPI_fname((*self.portal).tupDesc, place as i32 + 1);
            utf8(CStr::from_ptr(name))
        }
    }

    /// Visits every row, and ends the query.
    pub fn for_each(self, visit: &mut dyn FnMut(&Row<'_>)) {
        loop {
            // SAFETY: the portal is open; table and tuples live until they are freed below.
            unsafe {
                self.errors.during(Work::Fetching, || {
                    pg_sys::SPI_cursor_fetch(self.portal, true, BATCH as _);
                });
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
    /// Returns the value of a column of this query; None for NULL.
    pub fn get(&self, column: CheckedColumn) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the tuple has that descriptor.
        let datum =
            unsafe { pg_sys::SPI_getbinval(self.tuple, self.descriptor, column.0, &mut is_null) };
        (!is_null).then_some(datum)
    }
}
