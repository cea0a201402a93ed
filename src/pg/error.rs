//! Reports errors of the algorithms as PostgreSQL errors, with SQLSTATE and HINT.

use super::memory;
use super::report::convert_next;
use neardup::Error;
use neardup::minhash::signature::{BINARY_FORM, TEXT_FORM};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};
use std::backtrace::Backtrace;
use std::env;

/// Ends the statement with an ERROR.
pub fn raise(code: PgSqlErrorCode, message: &str, hint: &str) -> ! {
    convert_next(message, hint);
    report(code, message, hint).report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Ends the statement with an ERROR `invalid_parameter_value`.
pub fn invalid(message: &str, hint: &str) -> ! {
    let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
    raise(code, message, hint)
}

/// Ends the statement with an ERROR `datatype_mismatch`.
pub fn wrong_type(message: &str, hint: &str) -> ! {
    raise(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message, hint)
}

/// Ends the statement with an ERROR `feature_not_supported`.
pub fn unsupported(message: &str, hint: &str) -> ! {
    let code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
    raise(code, message, hint)
}

/// Ends the statement with an ERROR `object_not_in_prerequisite_state`.
pub fn not_ready(message: &str, hint: &str) -> ! {
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    raise(code, message, hint)
}

/// Ends the statement with an ERROR `program_limit_exceeded`.
pub fn too_large(message: &str, hint: &str) -> ! {
    let code = PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    raise(code, message, hint)
}

/// Ends the statement with an ERROR `data_corrupted`.
pub fn corrupted(message: &str) -> ! {
    raise(PgSqlErrorCode::ERRCODE_DATA_CORRUPTED, message, "")
}

/// Ends the statement with an ERROR `internal_error`.
pub fn internal(message: &str) -> ! {
    raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message, "")
}

/// Ends the statement with an ERROR `out_of_memory`.
pub fn out_of_memory() -> ! {
    let code = PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY;
    raise(code, "out of memory", "Work on fewer rows at once.")
}

fn report(code: PgSqlErrorCode, message: &str, hint: &str) -> ErrorReport {
    let report = ErrorReport::new(code, String::from(message), "pg_neardup");
    match hint.is_empty() {
        true => report,
        false => report.set_hint(hint),
    }
}

/// Unwraps a result, or raises an ERROR.
pub trait OrRaise<T> {
    /// Returns the value, or raises the error. Malformed stored bytes raise `data_corrupted`.
    fn or_raise(self) -> T;
    /// Returns the value, or raises the error. A malformed text or binary form of a value raises `code`.
    fn or_raise_as(self, code: PgSqlErrorCode) -> T;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> T {
        self.or_raise_as(PgSqlErrorCode::ERRCODE_DATA_CORRUPTED)
    }

    fn or_raise_as(self, code: PgSqlErrorCode) -> T {
        self.unwrap_or_else(|error| match error.into() {
            Error::Invalid { message, hint } | Error::Incomparable { message, hint } => {
                invalid(&message, &hint)
            }
            Error::TooLarge { message, hint } => too_large(&message, &hint),
            Error::OutOfMemory => out_of_memory(),
            error @ Error::Corrupt(_) => raise(
                code,
                &error.to_string(),
                &match code {
                    PgSqlErrorCode::ERRCODE_DATA_CORRUPTED => {
                        "The stored value was not written by pg_neardup; recompute it from the document.".into()
                    }
                    PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION => {
                        format!("To compare with a document, sign it: minhash('some text'). {TEXT_FORM}")
                    }
                    _ => String::from(BINARY_FORM),
                },
            ),
        })
    }
}

/// Lets a pending cancel or timeout end the statement, or an ERROR `out_of_memory` if memory ran short.
pub fn check_interrupts() {
    if memory::was_short() {
        out_of_memory();
    }
    pgrx::check_for_interrupts!();
}

/// Lets VACUUM sleep as its settings require, and lets it be canceled.
pub fn vacuum_delay() {
    // SAFETY: VACUUM may be delayed or canceled here: no page is locked.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        pgrx::pg_sys::vacuum_delay_point();
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        pgrx::pg_sys::vacuum_delay_point(false);
    }
}

/// Calls `send`, which sends a NOTICE or a WARNING, with interrupts held. Without this, sending would process a pending
/// cancel, by a jump over the frames of this library. Now the cancel waits for the next check.
pub fn hold_interrupts(send: impl FnOnce()) {
    // SAFETY: the counter belongs to this backend, and is restored; `send` raises no ERROR.
    unsafe { pgrx::pg_sys::InterruptHoldoffCount += 1 };
    send();
    // SAFETY: as above.
    unsafe { pgrx::pg_sys::InterruptHoldoffCount -= 1 };
}

/// Sends a NOTICE or a WARNING, with a hint unless `hint` is empty.
pub fn tell(level: PgLogLevel, message: &str, hint: &str) {
    let code = match level {
        PgLogLevel::WARNING => PgSqlErrorCode::ERRCODE_WARNING,
        _ => PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
    };
    // SAFETY: the callback pushed for this report is popped after it.
    unsafe {
        let callbacks = pg_sys::error_context_stack;
        convert_next(message, hint);
        hold_interrupts(|| report(code, message, hint).report(level));
        pg_sys::error_context_stack = callbacks;
    }
}

/// Keeps backtraces out of errors even if RUST_BACKTRACE is set in the server's environment. pgrx would send them to
/// clients as DETAIL, and making one may take more memory than is left.
///
/// The standard library reads these variables only once, and this library has a copy of its own, so the environment is
/// restored before this returns.
pub fn disable_backtraces() {
    const VARIABLE: &str = "RUST_LIB_BACKTRACE";
    let before = env::var_os(VARIABLE);
    // SAFETY: a library is loaded by the only thread of a backend.
    unsafe { env::set_var(VARIABLE, "0") };
    let _ = Backtrace::capture();
    // SAFETY: as above.
    unsafe {
        match before {
            Some(value) => env::set_var(VARIABLE, value),
            None => env::remove_var(VARIABLE),
        }
    }
}
