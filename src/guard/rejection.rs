//! The rejection of a row, raised from the frame that PostgreSQL called: only there nothing has to be
//! dropped, and only PostgreSQL's own call fills in table, schema and constraint.

use crate::guard::check::Description;
use crate::guard::row::Source;
use crate::pg::report::{errdetail, errmsg};
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::{null, null_mut};

/// Nothing in it needs to be dropped; strings are PostgreSQL's, of the transaction.
#[derive(Clone, Copy)]
pub struct Rejection {
    table: pg_sys::Relation,
    trigger: *const c_char,
    detail: *const c_char,
    /// The value by which a program finds the row that is there.
    key: *const c_char,
}

impl Rejection {
    /// Returns the rejection of a row by the trigger of its table, which stays open until the ERROR.
    pub fn new(source: &Source, description: Option<&Description>) -> Self {
        let copy = |text: &CStr| {
            // SAFETY: the string is NUL-terminated.
            let copy = unsafe {
                pg_sys::MemoryContextStrdup(pg_sys::CurTransactionContext, text.as_ptr())
            };
            copy.cast_const()
        };
        Self {
            // SAFETY: the transaction has written a row of the table, and so has it locked.
            table: unsafe { pg_sys::table_open(source.table.oid(), pg_sys::NoLock as i32) },
            trigger: copy(&source.name),
            detail: description.map_or(null(), |description| copy(&description.detail)),
            key: description
                .and_then(|description| description.key.as_deref())
                .map_or(null(), copy),
        }
    }
}

unsafe extern "C-unwind" {
    fn errstart(level: c_int, domain: *const c_char) -> bool;
    fn errcode(code: c_int) -> c_int;
    fn errtableconstraint(table: pg_sys::Relation, constraint: *const c_char) -> c_int;
    fn err_generic_string(field: c_int, value: *const c_char) -> c_int;
    fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
}

/// Raises the ERROR of a rejection.
///
/// # Safety
/// The table is open; nothing in the frames up to PostgreSQL's needs to be dropped.
pub unsafe fn raise(rejection: &Rejection) {
    // SAFETY: vouched for by the caller; the formats fit the arguments.
    unsafe {
        let table = (*(*rejection.table).rd_rel).relname.data.as_ptr();
        errstart(pgrx::PgLogLevel::ERROR as c_int, null_mut());
        errcode(pg_sys::errcodes::PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION as c_int);
        errmsg(
            c"near-duplicate row rejected by \"%s\" on table \"%s\"".as_ptr(),
            rejection.trigger,
            table,
        );
        if !rejection.detail.is_null() {
            errdetail(c"%s".as_ptr(), rejection.detail);
        }
        errtableconstraint(rejection.table, rejection.trigger);
        if !rejection.key.is_null() {
            // No other field holds a value that programs can read.
            err_generic_string(pg_sys::PG_DIAG_COLUMN_NAME as c_int, rejection.key);
        }
        errfinish(
            c"guard".as_ptr(),
            line!() as c_int,
            c"near_dup_guard".as_ptr(),
        );
    }
}
