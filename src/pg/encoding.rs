//! Texts in UTF-8, whatever the database's encoding.

use crate::pg::conversion::convert;
use crate::pg::error::OrRaise;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::ops::Deref;

/// A text as UTF-8, whatever the database's encoding. In SQL_ASCII, where bytes have no known meaning, the bytes stay
/// as they are.
pub struct Utf8<S> {
    stored: S,
    converted: Option<Vec<u8>>,
}

impl<S: Deref<Target = [u8]>> Utf8<S> {
    pub fn new(stored: S) -> Self {
        let converted = convert(&stored, pg_sys::pg_server_to_any).or_raise();
        Self { stored, converted }
    }
}

impl<S: Deref<Target = [u8]>> Deref for Utf8<S> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.converted.as_deref().unwrap_or(&self.stored)
    }
}

/// Converts a text in the database's encoding, such as a name, to UTF-8.
pub fn utf8(text: &CStr) -> String {
    in_utf8(text.to_bytes())
}

/// Converts bytes in the database's encoding to UTF-8. Invalid bytes become U+FFFD.
#[allow(clippy::disallowed_methods, reason = "names and texts of statements")]
pub fn in_utf8(text: &[u8]) -> String {
    String::from_utf8_lossy(&Utf8::new(text)).into_owned()
}
