//! Settings of the server that are changed for a while.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Settings that are as before when [`Self::restore`] or [`Self::take_back`] is called, or the transaction ends.
pub struct Settings(i32);

impl Settings {
    /// Begins to change settings.
    pub fn begin() -> Self {
        // SAFETY: the end of the transaction restores every level that is left.
        Self(unsafe { pg_sys::NewGUCNestLevel() })
    }

    /// Changes a setting until [`Self::restore`].
    pub fn set(&self, name: &CStr, value: &CStr) {
        set(name, value, pg_sys::GucAction::GUC_ACTION_SAVE);
    }

    /// Takes the changes of [`Self::set`] back, but no others made since.
    pub fn take_back(self) {
        // SAFETY: the level is the one that was begun.
        unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
    }

    /// Takes all changes since the beginning back.
    pub fn restore(self) {
        // SAFETY: the level is the one that was begun.
        unsafe { pg_sys::AtEOXact_GUC(false, self.0) };
    }
}

fn set(name: &CStr, value: &CStr, action: pg_sys::GucAction::Type) {
    // SAFETY: the strings are NUL-terminated.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            action,
            true,
            0,
            false,
        );
    }
}

/// Returns work_mem in bytes.
pub fn work_mem_bytes() -> usize {
    // SAFETY: reads a setting of this backend.
    unsafe { pg_sys::work_mem as usize * 1024 }
}
