//! Points between a session's reads and the lock under which it acts on them, where tests hold sessions so that others
//! can intervene.

#[cfg(feature = "holds")]
pub use with_feature::point;

/// Does nothing without the feature `holds`.
#[cfg(not(feature = "holds"))]
#[inline(always)]
pub fn point(_name: &str) {}

#[cfg(feature = "holds")]
mod with_feature {
    use crate::pg::error::check_interrupts;
    use pgrx::pg_sys;
    use std::path::PathBuf;
    use std::sync::LazyLock;

    /// Waits while a test holds this session at the point `name`: while a file `PID.NAME` exists in the directory named
    /// by `NEARDUP_HOLDS` in the server's environment. Other sessions see the wait event `Extension`, which tells tests
    /// that the session is held. The session must not have any page locked.
    pub fn point(name: &str) {
        const MILLISECOND: i64 = 1;
        static DIRECTORY: LazyLock<Option<PathBuf>> =
            LazyLock::new(|| std::env::var_os("NEARDUP_HOLDS").map(PathBuf::from));
        let Some(directory) = &*DIRECTORY else { return };
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        // SAFETY: reads the backend's own state.
        let file = directory.join(format!("{}.{name}", unsafe { pg_sys::MyProcPid }));
        while file.exists() {
            check_interrupts();
            // SAFETY: the latch is this backend's own.
            unsafe {
                let (latch, event) = (pg_sys::MyLatch, pg_sys::PG_WAIT_EXTENSION);
                pg_sys::WaitLatch(latch, events as i32, MILLISECOND as _, event);
                pg_sys::ResetLatch(latch);
            }
        }
    }
}
