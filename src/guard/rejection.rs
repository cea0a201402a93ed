//! The rejection of a row: an ERROR that names the table, schema and constraint. It is raised in the function that
//! PostgreSQL called, where nothing has to be dropped.

use crate::guard::found::SimilarRow;
use crate::guard::row::Row;
use crate::pg::prelude::*;
use crate::pg::slot::row_place;
use crate::pg::statement::server_text;
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

/// A rejected row. Nothing in it needs to be dropped: strings are allocated in the transaction's memory context.
pub type Rejection = pg_sys::ErrorData;

/// Returns the rejection of `row` because of `similar`. If the same statement wrote both (`has_companion`), reports the
/// later one as the rejected row. Describes the other row if the role may see it.
///
/// # Safety
/// The slots hold rows of their tables.
pub unsafe fn rejection(row: &Row<'_>, similar: &SimilarRow<'_>, has_companion: bool) -> Rejection {
    let copy =
        |text: &CStr| pg_sys::MemoryContextStrdup(pg_sys::CurTransactionContext, text.as_ptr());
    let table = &row.source.table;
    let is_first = has_companion
        && table.oid() == similar.table.oid()
        && row_place(row.slot) < row_place(similar.slot);
    let there = if is_first { row.slot } else { similar.slot };
    let detail = detail(row, similar, has_companion, is_first);
    let key = detail
        .as_ref()
        .and_then(|_| similar.table.columns.key_value(there));
    let optional = |text: Option<&CStr>| text.map_or(null_mut(), copy);
    let hint = has_companion.then_some(c"Write only one row of each group: load the rows into another table first, in which near_dup_distinct and near_dup_clusters find the groups.");
    let name = CStr::from_ptr((*(*table.as_ptr()).rd_rel).relname.data.as_ptr());
    let message = [
        c"near-duplicate row rejected by \"",
        &row.source.name,
        c"\" on table \"",
        name,
        c"\"",
    ];
    let message = CString::new(message.map(CStr::to_bytes).concat()).expect("no part has a NUL");
    Rejection {
        elevel: pgrx::PgLogLevel::ERROR as i32,
        sqlerrcode: pgrx::PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION as i32,
        message: copy(&message),
        detail: optional(detail.as_deref()),
        hint: optional(hint),
        schema_name: copy(CStr::from_ptr(pg_sys::get_namespace_name(table.schema()))),
        table_name: copy(name),
        constraint_name: copy(&row.source.name),
        // No other field holds a value that programs can read.
        column_name: optional(key.as_deref()),
        filename: c"guard".as_ptr(),
        funcname: c"near_dup_guard".as_ptr(),
        ..Rejection::default()
    }
}

/// Returns a sentence about both rows and their similarity, or None if the role may not see the other row. It begins
/// with the found row if the checked row `is_first`.
///
/// # Safety
/// The same as for [`rejection`].
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
    let theirs = table.columns.primary_key(similar.slot)?;
    let ours = row.source.columns.primary_key(row.slot);
    let (first, second) = match ours {
        Some(ours) if is_first => (Some(theirs), ours),
        ours => (ours, theirs),
    };
    let middle = format!(" {similarity} row ");
    let of_table = (row.source.table.oid() != table.oid())
        .then(|| server_text(&format!(" of table {}", names::relation(table.oid()))));
    let sentence = [
        first.as_ref().map_or(&b"The row"[..], |_| b"Row "),
        first.as_deref().map_or(b"", CStr::to_bytes),
        middle.as_bytes(),
        second.as_bytes(),
        of_table.as_deref().map_or(b"", CStr::to_bytes),
        match has_companion {
            true => b", which the same statement writes.",
            false => b".",
        },
    ];
    CString::new(sentence.concat()).ok()
}
