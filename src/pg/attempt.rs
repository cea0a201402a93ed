//! Work that goes on after an error.

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// Returns what `work` returns; None where that raises an error with this code. What `work` has opened,
/// locked and pinned is released then; it changes nothing in the database.
pub fn unless<R>(code: PgSqlErrorCode, work: impl FnOnce() -> R) -> Option<R> {
    // SAFETY: the owner is a child of the current one, which releases it where another error goes on.
    unsafe {
        let (outer, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
        let own = pg_sys::ResourceOwnerCreate(outer, c"pg_neardup".as_ptr());
        pg_sys::CurrentResourceOwner = own;
        let done = PgTryBuilder::new(AssertUnwindSafe(|| Some(work())))
            .catch_when(code, |_| None)
            .finally(|| {
                pg_sys::CurrentResourceOwner = outer;
                pg_sys::CurrentMemoryContext = context;
            })
            .execute();
        use pg_sys::ResourceReleasePhase::*;
        for phase in [
            RESOURCE_RELEASE_BEFORE_LOCKS,
            RESOURCE_RELEASE_LOCKS,
            RESOURCE_RELEASE_AFTER_LOCKS,
        ] {
            pg_sys::ResourceOwnerRelease(own, phase, done.is_some(), false);
        }
        pg_sys::ResourceOwnerDelete(own);
        done
    }
}
