//! Rust's memory: from the system, and from a bounded reserve when the system has no more.
//!
//! Memory in proportion to the input is asked for in ways that can fail (`neardup::memory`). What
//! remains are small allocations, for which Rust ends the process, and with it every session of
//! the server. These come from the reserve instead; its use makes the next check for interrupts
//! an ERROR. PostgreSQL, which copies an ERROR before the frames of this library have freed
//! anything, has the ballast until then.

use pgrx::pg_sys;
use reserve::Allocator;
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::new(System);

/// Returns whether the reserve had to help since the last call, or since the transaction began.
pub fn was_short() -> bool {
    ALLOCATOR.was_short()
}

/// Makes the end of a transaction forget that memory was short in it: a statement that needed no
/// further check is done, and the next one must not pay for it. Called once when a session loads
/// the library.
pub fn install() {
    ALLOCATOR.hold_ballast();
    // SAFETY: the callback lives as long as the library, which is never unloaded.
    unsafe { pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut()) };
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    _event: pg_sys::XactEvent::Type,
    _arg: *mut std::ffi::c_void,
) {
    was_short();
}
