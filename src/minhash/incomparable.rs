//! Warnings about conditions that can never hold, because they compare signatures made with different parameters.
#![allow(clippy::disallowed_methods, reason = "at most MOST pairs")]

use crate::pg::error::tell;
use neardup::minhash::Header;
use pgrx::{PgLogLevel, pg_sys};
use std::cell::{Cell, RefCell};

/// The parameters of a signature or a bit string, as bytes.
pub type ValueParameters = [u8; 16];

/// Maximum number of pairs of parameters that a session is warned about.
const MOST: usize = 8;

/// Returns false, since signatures with different parameters are never near, and warns about them once per session.
#[cold]
pub fn never_near(a: &Header, b: &Header) -> bool {
    if is_first_meeting(a.parameters(), b.parameters()) {
        tell(
            PgLogLevel::WARNING,
            "signatures made with different parameters are never near-duplicates",
            &format!(
                "One is {a}, the other {b} (unit:k:fold:slots x bits:seed id); make both with the same parameters."
            ),
        );
    }
    false
}

thread_local! {
    /// True while the extension evaluates conditions of its own.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A guard that suppresses the warnings while it lives.
pub struct Quiet;

impl Quiet {
    pub fn begin() -> Self {
        IS_QUIET.set(true);
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        IS_QUIET.set(false);
    }
}

/// Returns whether to warn the session about a pair of parameters: only the first time, for the first [`MOST`] pairs,
/// and not while [`Quiet`] lives. Never in a parallel worker, which lives for one query along with its leader.
pub fn is_first_meeting(a: ValueParameters, b: ValueParameters) -> bool {
    if IS_QUIET.get() {
        return false;
    }
    thread_local! {
        static MET: RefCell<Vec<[ValueParameters; 2]>> = const { RefCell::new(Vec::new()) };
    }
    let pair = [a.min(b), a.max(b)];
    MET.with_borrow_mut(|met| {
        // SAFETY: reads a number of this backend.
        let is_worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
        let is_first = !is_worker && met.len() < MOST && !met.contains(&pair);
        if is_first {
            met.push(pair);
        }
        is_first
    })
}
