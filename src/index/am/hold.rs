//! Points between the reads of a session and the lock under which it acts on them, where tests hold
//! sessions so that others come in between.

use crate::pg::error::check_interrupts;
use pgrx::pg_sys;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// The directory that `NEARDUP_HOLDS` in the server's environment names.
static DIRECTORY: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| std::env::var_os("NEARDUP_HOLDS").map(PathBuf::from));

/// Waits while a test holds this session at a point. The session has no page locked.
#[inline]
pub fn point(name: &str) {
    if let Some(directory) = &*DIRECTORY {
        wait(directory, name);
    }
}

/// Waits while there is a file `PID.NAME`.
#[cold]
fn wait(directory: &Path, name: &str) {
    // SAFETY: reads the backend's own state.
    let file = directory.join(format!("{}.{name}", unsafe { pg_sys::MyProcPid }));
    while file.exists() {
        check_interrupts();
        std::thread::sleep(Duration::from_millis(1));
    }
}
