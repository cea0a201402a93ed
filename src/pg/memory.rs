//! Rust's memory: from the system, and from a bounded reserve when the system has no more.
//!
//! Memory in proportion to the input is asked for in ways that can fail (`neardup::memory`). What
//! remains are small allocations, for which Rust ends the process, and with it every session of
//! the server. These come from the reserve instead; its use makes the next check for interrupts
//! an ERROR. PostgreSQL, which copies an ERROR before the frames of this library have freed
//! anything, has the ballast until then.

use pgrx::{PgSqlErrorCode, pg_sys};
use reserve::Allocator;
use std::alloc::System;
use std::cell::UnsafeCell;
use std::ffi::c_void;

#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::new(System);

/// Returns whether the reserve had to help since the last call, or since the transaction began.
pub fn was_short() -> bool {
    ALLOCATOR.was_short()
}

/// Makes the end of a transaction forget that memory was short in it: a statement that needed no
/// further check is done, and the next one must not pay for it. Gives the ballast back when
/// PostgreSQL itself has no memory. Called once when a session loads the library.
pub fn install() {
    ALLOCATOR.hold_ballast();
    watch_errors();
    // SAFETY: the callback lives as long as the library, which is never unloaded.
    unsafe { pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut()) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(_event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    was_short();
    watch_errors();
}

/// The last entry of the stack of error contexts, below the entries of running statements.
struct Watch(UnsafeCell<pg_sys::ErrorContextCallback>);

/// SAFETY: the stack belongs to the backend's only thread that calls PostgreSQL.
unsafe impl Sync for Watch {}

static WATCH: Watch = Watch(UnsafeCell::new(pg_sys::ErrorContextCallback {
    previous: std::ptr::null_mut(),
    callback: Some(at_error),
    arg: std::ptr::null_mut(),
}));

/// Puts the watch below all entries of the stack of error contexts, unless it is there. PostgreSQL
/// empties the stack when a statement fails.
fn watch_errors() {
    // SAFETY: entries live until their owner takes them off; the watch lives for ever, and is the
    // last, so that whoever takes the entry above it off leaves it in place.
    unsafe {
        let mut end = &raw mut pg_sys::error_context_stack;
        while !(*end).is_null() {
            if *end == WATCH.0.get() {
                return;
            }
            end = &raw mut (**end).previous;
        }
        *end = WATCH.0.get();
    }
}

/// Gives the ballast back when an error says that PostgreSQL has no memory: pgrx copies each error,
/// and an error while it does so comes back to the same place until the server's stack of errors is
/// full, which is a PANIC.
unsafe extern "C-unwind" fn at_error(_arg: *mut c_void) {
    // SAFETY: PostgreSQL calls it while it prepares a report.
    if unsafe { pg_sys::geterrcode() } == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        ALLOCATOR.release_ballast();
    }
}
