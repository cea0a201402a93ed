//! Errors inside a query that a function of this library runs: their position in the query and their context.
//!
//! An ERROR that passes through Rust keeps only its message, detail and hint. The rest of its report is noted when
//! PostgreSQL raises it, and added when it is raised again at the boundary of this library. Both times PostgreSQL calls
//! the error context callback of this module.

use crate::pg::encoding::is_converted;
use crate::pg::report::{errdetail, errhint, errmsg};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};

/// A phase of a query. Errors raised during it belong to the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryPhase {
    /// SPI names the query in the error's context.
    Planning,
    /// SPI does not name it.
    Fetching,
}

/// Reports errors of a query in full until it is dropped.
pub struct QueryErrors(NonNull<ReportState>);

/// Lives in PostgreSQL's memory, since it outlasts the Rust frames.
struct ReportState {
    callback: pg_sys::ErrorContextCallback,
    memory: pg_sys::MemoryContext,
    query: *const c_char,
    phase: Option<QueryPhase>,
    /// The report of the error that ended a phase; during a phase, that of the last error or message.
    noted: *mut pg_sys::ErrorData,
}

impl QueryErrors {
    /// # Safety
    /// The query is NUL-terminated and lives as long as the current memory context.
    pub unsafe fn begin(query: *const c_char) -> Self {
        // SAFETY: the allocation has the size of the state, and outlives the call of the function.
        unsafe {
            let memory = pg_sys::CurrentMemoryContext;
            let state = pg_sys::palloc(size_of::<ReportState>()).cast::<ReportState>();
            state.write(ReportState {
                callback: pg_sys::ErrorContextCallback {
                    previous: pg_sys::error_context_stack,
                    callback: Some(report),
                    arg: state.cast(),
                },
                memory,
                query,
                phase: None,
                noted: null_mut(),
            });
            pg_sys::error_context_stack = &raw mut (*state).callback;
            Self(NonNull::new(state).expect("allocated memory has an address"))
        }
    }

    /// Returns the result of `work`, a phase of the query.
    pub fn during<T>(&self, phase: QueryPhase, work: impl FnOnce() -> T) -> T {
        let state = self.0.as_ptr();
        // SAFETY: the state lives as long as the call of the function.
        unsafe { (*state).phase = Some(phase) };
        let _ended = AtEnd(state);
        work()
    }
}

impl Drop for QueryErrors {
    fn drop(&mut self) {
        // An error on its way is still to be raised again. What catches it resets the stack.
        if !std::thread::panicking() {
            // SAFETY: the state was pushed last, and lives as long as the call of the function.
            unsafe { pg_sys::error_context_stack = (*self.0.as_ptr()).callback.previous };
        }
    }
}

/// Ends a phase, even if by an error.
struct AtEnd(*mut ReportState);

impl Drop for AtEnd {
    fn drop(&mut self) {
        // SAFETY: the state lives as long as the call of the function.
        unsafe {
            (*self.0).phase = None;
            // What was noted of messages, and of errors that the query caught, does not belong to a later error.
            if !std::thread::panicking() {
                (*self.0).noted = null_mut();
            }
        }
    }
}

unsafe extern "C-unwind" {
    fn errcontext_msg(format: *const c_char, ...) -> c_int;
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn report(state: *mut c_void) {
    // SAFETY: PostgreSQL calls it with the state, within the report of an error; what was noted
    // lives as long as the state.
    unsafe {
        let state = &mut *state.cast::<ReportState>();
        match state.phase {
            Some(phase) => note(state, phase),
            None => {
                if let Some(noted) = state.noted.as_ref() {
                    add(noted);
                }
            }
        }
    }
}

/// Notes the report of an error, and names the query unless SPI does.
///
/// # Safety
/// An error is being reported.
unsafe fn note(state: &mut ReportState, phase: QueryPhase) {
    // SAFETY: vouched for by the caller; strings are NUL-terminated.
    unsafe {
        let position = pg_sys::geterrposition();
        if position > 0 {
            pg_sys::errposition(0);
            pg_sys::internalerrposition(position);
            pg_sys::internalerrquery(state.query);
        } else if phase == QueryPhase::Fetching {
            pg_sys::set_errcontext_domain(null_mut());
            errcontext_msg(c"SQL statement \"%s\"".as_ptr(), state.query);
        }
        // If memory is short, the copy would raise another error.
        if pg_sys::geterrcode() != PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int {
            let current = pg_sys::MemoryContextSwitchTo(state.memory);
            state.noted = pg_sys::CopyErrorData();
            pg_sys::MemoryContextSwitchTo(current);
        }
    }
}

/// Adds the noted parts of an error to its report, and restores its texts, which pgrx takes for UTF-8.
///
/// # Safety
/// An error is being reported.
unsafe fn add(noted: &pg_sys::ErrorData) {
    // SAFETY: vouched for by the caller; strings are NUL-terminated or NULL.
    unsafe {
        if is_converted() {
            let texts = [noted.message, noted.detail, noted.hint];
            for (text, put) in texts.into_iter().zip([errmsg, errdetail, errhint]) {
                if !text.is_null() {
                    put(c"%s".as_ptr(), text);
                }
            }
        }
        if !noted.internalquery.is_null() {
            pg_sys::internalerrquery(noted.internalquery);
            pg_sys::internalerrposition(noted.internalpos);
        }
        if !noted.context.is_null() {
            let context: &CStr = CStr::from_ptr(noted.context);
            pg_sys::set_errcontext_domain(null_mut());
            errcontext_msg(c"%s".as_ptr(), context.as_ptr());
        }
    }
}
