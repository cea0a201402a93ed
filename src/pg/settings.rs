//! Temporary changes to the server's settings.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Changes to settings, which last until [`Self::restore`], [`Self::take_back`] or the end of the transaction.
pub struct Settings(i32);

impl Settings {
    /// Begins to change settings.
    pub fn begin() -> Self {
        // SAFETY: the end of the transaction restores every level that is left.
        Self(unsafe { pg_sys::NewGUCNestLevel() })
    }

    /// Changes a setting.
    pub fn set(&self, name: &CStr, value: &CStr) {
        // SAFETY: the strings are NUL-terminated.
        unsafe {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
    }

    /// Undoes the changes of [`Self::set`], but no others made since.
    pub fn take_back(self) {
        // SAFETY: the level is the one that was begun.
        unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
    }

    /// Undoes all changes made since [`Self::begin`].
    pub fn restore(self) {
        // SAFETY: the level is the one that was begun.
        unsafe { pg_sys::AtEOXact_GUC(false, self.0) };
    }
}

/// Returns work_mem in bytes.
pub fn work_mem_bytes() -> usize {
    // SAFETY: reads a setting of this backend.
    unsafe { pg_sys::work_mem as usize * 1024 }
}
