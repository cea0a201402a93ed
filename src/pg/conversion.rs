//! Conversion between UTF-8 and the database's encoding.

use neardup::Result;
use neardup::memory::copied;
use pgrx::pg_sys;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

/// Returns the first character of `bytes`, a text in UTF-8, that the database's encoding lacks, and the encoding's
/// name. Returns None if it lacks none.
pub fn first_lacking(bytes: &[u8]) -> Option<(char, String)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut encoded = [0; 4];
    let mut others = text.chars().filter(|c| !c.is_ascii());
    // SAFETY: source and destination are valid for their lengths, the latter for any encoding's
    // longest character and NUL; the name is NUL-terminated.
    unsafe {
        let encoding = pg_sys::GetDatabaseEncoding();
        let unicode = pg_sys::pg_enc::PG_UTF8 as c_int;
        let conversion = pg_sys::FindDefaultConversionProc(unicode, encoding);
        let lacking = others.find(|c| {
            let len = c.encode_utf8(&mut encoded).len() as c_int;
            let mut converted = [0; 32];
            pg_sys::pg_do_encoding_conversion_buf(
                conversion,
                unicode,
                encoding,
                encoded.as_mut_ptr(),
                len,
                converted.as_mut_ptr(),
                converted.len() as c_int,
                true,
            ) < len
        })?;
        let name = CStr::from_ptr(pg_sys::GetDatabaseEncodingName());
        Some((lacking, name.to_string_lossy().into_owned()))
    }
}

/// Returns whether texts must be converted between UTF-8 and the database's encoding. Computed once: the encoding does
/// not change while the backend runs, and every text argument needs to know.
pub fn is_converted() -> bool {
    static IS_CONVERTED: OnceLock<bool> = OnceLock::new();
    *IS_CONVERTED.get_or_init(|| {
        // SAFETY: reads a global of the backend, without side effects.
        let encoding = unsafe { pg_sys::GetDatabaseEncoding() } as u32;
        !matches!(
            encoding,
            pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII
        )
    })
}

type Conversion = unsafe fn(*const c_char, c_int, c_int) -> *mut c_char;

/// Returns `bytes` after `conversion` between UTF-8 and the database's encoding, or None if that changes nothing.
/// PostgreSQL raises an ERROR if the encoding lacks a character.
///
/// # Errors
/// `OutOfMemory`.
pub fn convert(bytes: &[u8], conversion: Conversion) -> Result<Option<Vec<u8>>> {
    if !is_converted() || bytes.is_ascii() {
        return Ok(None);
    }
    // SAFETY: the source is valid for its length, which fits an int as every varlena's does. The
    // result is a new NUL-terminated string unless it is the source.
    unsafe {
        let start = conversion(
            bytes.as_ptr().cast(),
            bytes.len() as c_int,
            pg_sys::pg_enc::PG_UTF8 as c_int,
        )
        .cast::<u8>();
        if start.cast_const() == bytes.as_ptr() {
            return Ok(None);
        }
        let converted = copied(CStr::from_ptr(start.cast()).to_bytes());
        pg_sys::pfree(start.cast());
        converted.map(Some)
    }
}

/// Returns the bytes before the first NUL.
pub fn before_nul(bytes: &[u8]) -> CString {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    CString::new(text).expect("it ends before the first NUL")
}
