//! Reports with text outside ASCII. pgrx sends UTF-8, but PostgreSQL takes it for the database's encoding. An error
//! context callback, which PostgreSQL calls before it sends the report, replaces the texts with converted ones.

use crate::pg::conversion::{before_nul, convert, first_lacking, is_converted};
use pgrx::pg_sys;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// A callback and the texts that it reports. It lives in PostgreSQL's memory, because the report of an ERROR is sent
/// after the Rust frames are gone.
struct Report {
    callback: pg_sys::ErrorContextCallback,
    message: *mut c_char,
    /// NULL for a report without a hint.
    hint: *mut c_char,
}

/// Makes PostgreSQL send the next report with these texts in the database's encoding. If the encoding lacks a character
/// of a text, all characters outside ASCII in that text become `?`.
pub fn convert_next(message: &str, hint: &str) {
    if !is_converted() || (message.is_ascii() && hint.is_ascii()) {
        return;
    }
    let (message, hint) = (converted(message), converted(hint));
    // SAFETY: the allocation has the size of the report, and lives as long as the transaction. Whoever catches the
    // error, or sends the message, restores the stack.
    unsafe {
        let current = pg_sys::MemoryContextSwitchTo(pg_sys::CurTransactionContext);
        let report = pg_sys::palloc(size_of::<Report>()).cast::<Report>();
        report.write(Report {
            callback: pg_sys::ErrorContextCallback {
                previous: pg_sys::error_context_stack,
                callback: Some(replace),
                arg: report.cast(),
            },
            message: pg_sys::pstrdup(message.as_ptr()),
            hint: match hint.is_empty() {
                true => null_mut(),
                false => pg_sys::pstrdup(hint.as_ptr()),
            },
        });
        pg_sys::MemoryContextSwitchTo(current);
        pg_sys::error_context_stack = &raw mut (*report).callback;
    }
}

fn converted(text: &str) -> CString {
    let replaced =
        first_lacking(text.as_bytes()).map(|_| text.replace(|c: char| !c.is_ascii(), "?"));
    let text = replaced.as_deref().unwrap_or(text).as_bytes();
    // Without memory for the conversion, the text stays as it is.
    let converted = convert(text, pg_sys::pg_any_to_server).ok().flatten();
    before_nul(converted.as_deref().unwrap_or(text))
}

unsafe extern "C-unwind" {
    pub fn errmsg(format: *const c_char, ...) -> c_int;
    pub fn errhint(format: *const c_char, ...) -> c_int;
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn replace(report: *mut c_void) {
    let report = &*report.cast::<Report>();
    errmsg(c"%s".as_ptr(), report.message);
    if !report.hint.is_null() {
        errhint(c"%s".as_ptr(), report.hint);
    }
}
