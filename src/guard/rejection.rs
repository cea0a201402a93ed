//! The rejection of a row. It is raised in the function that PostgreSQL called, where nothing has to be dropped, and by
//! PostgreSQL's own functions, which fill in table, schema and constraint.

use crate::guard::looking::SimilarRow;
use crate::guard::row::Row;
use crate::guard::slot::tid;
use crate::pg::names;
use crate::pg::report::{errdetail, errhint, errmsg};
use crate::pg::statement::server_text;
use pgrx::pg_sys;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

/// A rejected row. Nothing in it needs to be dropped: strings are allocated in the transaction's memory context.
#[derive(Clone, Copy)]
pub struct Rejection {
    table: pg_sys::Relation,
    trigger: *const c_char,
    detail: *const c_char,
    /// The value by which programs find the existing row.
    key: *const c_char,
    /// True if the same statement wrote both rows.
    has_companion: bool,
}

impl Rejection {
    /// Returns the rejection of `row` because of `similar`. If one statement wrote both, the later one is reported as
    /// the rejected row. The other row is described if the role may see it.
    ///
    /// # Safety
    /// The slots hold rows of their tables.
    pub unsafe fn new(row: &Row<'_>, similar: &SimilarRow<'_>, has_companion: bool) -> Self {
        let copy = |text: &CStr| {
            let copy = pg_sys::MemoryContextStrdup(pg_sys::CurTransactionContext, text.as_ptr());
            copy.cast_const()
        };
        let (detail, key) = {
            let is_first = has_companion
                && row.source.table.oid() == similar.table.oid()
                && row.tid < tid(similar.slot);
            let there = if is_first { row.slot } else { similar.slot };
            let detail = detail(row, similar, has_companion, is_first);
            let key = detail
                .is_some()
                .then(|| similar.table.columns.key_value(there));
            (detail, key)
        };
        Self {
            // The transaction has written to the table, so it holds a lock. The table stays open until the ERROR.
            table: pg_sys::table_open(row.source.table.oid(), pg_sys::NoLock as i32),
            trigger: copy(&row.source.name),
            detail: detail.as_deref().map_or(null(), copy),
            key: key.flatten().as_deref().map_or(null(), copy),
            has_companion,
        }
    }
}

/// Returns a sentence about both rows and their similarity, or None if the role may not see the other row. It begins
/// with the row found if the checked row `is_first`.
///
/// # Safety
/// As for [`Rejection::new`].
unsafe fn detail(
    row: &Row<'_>,
    similar: &SimilarRow<'_>,
    has_companion: bool,
    is_first: bool,
) -> Option<CString> {
    let (table, similarity) = (similar.table, similar.similarity);
    if table.hides_rows() {
        return None;
    }
    let (theirs, ours) = (
        table.columns.primary_key(similar.slot)?,
        row.source.columns.primary_key(row.slot),
    );
    let (theirs, ours) = match ours {
        Some(ours) if is_first => (ours, Some(theirs)),
        ours => (theirs, ours),
    };
    let mut detail = match &ours {
        Some(key) => [&b"Row "[..], key.as_bytes()].concat(),
        None => b"The row".to_vec(),
    };
    detail.extend_from_slice(format!(" {similarity} row ").as_bytes());
    detail.extend_from_slice(theirs.as_bytes());
    if row.source.table.oid() != table.oid() {
        detail.extend_from_slice(b" of table ");
        detail.extend_from_slice(server_text(&names::relation(table.oid())).to_bytes());
    }
    detail.extend_from_slice(match has_companion {
        true => b", which the same statement writes.",
        false => b".",
    });
    CString::new(detail).ok()
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
/// The table is open. No caller has anything to drop, since the ERROR jumps over it.
pub unsafe fn raise(rejection: &Rejection) {
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
    if rejection.has_companion {
        errhint(c"Write one row of each group: near_dup_distinct and near_dup_clusters find them in a table that the rows are loaded into before.".as_ptr());
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
