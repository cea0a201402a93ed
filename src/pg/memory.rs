//! Rust's memory, from the system or, when the system has no more, from a bounded reserve.
//!
//! Memory in proportion to the input is requested in ways that can fail (`neardup::memory`). The remaining allocations
//! are small. If one of these failed, Rust would abort the process, and every session of the server would end with it.
//! So these allocations come from the reserve, and the next check for interrupts raises an ERROR. An ERROR is copied
//! before the frames of this library have freed anything. The ballast, which is released then, makes room for the copy.

use pgrx::{PgSqlErrorCode, pg_sys};
use reserve::Allocator;
use std::alloc::System;
use std::cell::UnsafeCell;
use std::ffi::c_void;

#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::new(System);

/// Returns whether the reserve was used since the last call or the beginning of the transaction.
pub fn was_short() -> bool {
    ALLOCATOR.was_short()
}

/// Makes the end of a transaction forget that memory was short: a statement that needed no further check is done, and
/// the next one must not fail because of it. Holds the ballast, until PostgreSQL itself runs out of memory. Called
/// once, when a session loads the library.
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

/// The bottom entry of the stack of error contexts, below the entries of running statements.
struct Watch(UnsafeCell<pg_sys::ErrorContextCallback>);

// SAFETY: the stack belongs to the backend's only thread that calls PostgreSQL.
unsafe impl Sync for Watch {}

static WATCH: Watch = Watch(UnsafeCell::new(pg_sys::ErrorContextCallback {
    previous: std::ptr::null_mut(),
    callback: Some(at_error),
    arg: std::ptr::null_mut(),
}));

/// Puts the watch at the bottom of the stack of error contexts, unless it is there. PostgreSQL empties the stack when a
/// statement fails.
fn watch_errors() {
    // SAFETY: entries live until their owner removes them. The watch lives forever and is at the bottom, so removing
    // the entry above it leaves it in place.
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

/// Releases the ballast when PostgreSQL reports that it is out of memory. pgrx copies each error. An error during the
/// copy leads back here, until the server's stack of errors is full, which is a PANIC.
unsafe extern "C-unwind" fn at_error(_arg: *mut c_void) {
    if pg_sys::geterrcode() == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        ALLOCATOR.release_ballast();
    }
}
