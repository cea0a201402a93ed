//! Text as UTF-8, whatever the database's encoding, and results in that encoding.

use crate::pg::error::{OrRaise, raise};
use crate::pg::varlena::{Varlena, argument, new_varlena};
use neardup::memory::copied;
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int};
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// A `text` argument as UTF-8, whatever the database's encoding. In SQL_ASCII, whose bytes have no
/// known meaning, the bytes as they are.
pub struct Text<'a> {
    stored: Varlena<'a>,
    converted: Option<Converted>,
}

/// Bytes in another encoding.
pub struct Converted {
    start: NonNull<u8>,
    len: usize,
}

impl Deref for Converted {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` bytes while `self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Converted {
    fn drop(&mut self) {
        // SAFETY: allocated by the encoding conversion for this value alone.
        unsafe { pg_sys::pfree(self.start.as_ptr().cast()) };
    }
}

impl Text<'_> {
    /// # Safety
    /// `datum` is a non-null datum of a text type that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        let stored = unsafe { Varlena::detoast(datum) };
        let converted = to_utf8(&stored);
        Self { stored, converted }
    }

    /// Returns the name of an option, such as a unit or a fold: never one of ours if it is not
    /// ASCII.
    pub fn name(&self) -> Cow<'_, str> {
        match std::str::from_utf8(self) {
            Ok(name) if name.is_ascii() => Cow::Borrowed(name),
            _ => Cow::Owned(self.escape_ascii().to_string()),
        }
    }
}

/// Bytes of a text in UTF-8, with the same rules.
pub enum Utf8<'a> {
    Stored(&'a [u8]),
    Converted(Converted),
}

impl<'a> Utf8<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        match to_utf8(bytes) {
            Some(converted) => Self::Converted(converted),
            None => Self::Stored(bytes),
        }
    }
}

impl Deref for Utf8<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) => bytes,
            Self::Converted(converted) => converted,
        }
    }
}

/// Returns the bytes in UTF-8; `None` where they are already.
fn to_utf8(bytes: &[u8]) -> Option<Converted> {
    convert(bytes, pg_sys::pg_server_to_any)
}

/// Returns the bytes in the database's encoding; `None` where they are already.
fn from_utf8(bytes: &[u8]) -> Option<Converted> {
    if !is_converted() || bytes.is_ascii() {
        return None;
    }
    let lacking = PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER;
    PgTryBuilder::new(AssertUnwindSafe(|| {
        convert(bytes, pg_sys::pg_any_to_server)
    }))
    .catch_when(lacking, |error| match first_lacking(bytes) {
        Some((c, encoding)) => raise(
            lacking,
            &format!(
                "the database's encoding {encoding} has no character U+{:04X}",
                u32::from(c)
            ),
            "Folding may have made it of another character; with fold => 'none' characters stay as they are.",
        ),
        None => error.rethrow(),
    })
    .execute()
}

/// Returns the first character that the database's encoding lacks, and the encoding's name.
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

/// Returns a text of ours in the database's encoding.
///
/// # Errors
/// ERROR `untranslatable_character` where the encoding lacks a character.
pub fn to_server_encoding(text: &str) -> Cow<'_, [u8]> {
    match from_utf8(text.as_bytes()) {
        Some(converted) => Cow::Owned(copied(&converted).or_raise()),
        None => Cow::Borrowed(text.as_bytes()),
    }
}

/// Returns whether the database's encoding differs from ours. Asked once: it stays the same while
/// the backend runs, and every text argument depends on it.
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

/// Converts between UTF-8 and the database's encoding; `None` where that changes nothing.
fn convert(bytes: &[u8], conversion: Conversion) -> Option<Converted> {
    if !is_converted() || bytes.is_ascii() {
        return None;
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
            return None;
        }
        let len = CStr::from_ptr(start.cast()).count_bytes();
        NonNull::new(start).map(|start| Converted { start, len })
    }
}

impl Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.converted {
            Some(text) => text,
            None => &self.stored,
        }
    }
}

/// A new `text`, made of UTF-8 or of pieces of [`Text`] arguments.
pub struct NewText(pub Vec<u8>);

impl pgrx::IntoDatum for NewText {
    /// # Errors
    /// ERROR `untranslatable_character` where the database's encoding lacks a character.
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let converted = from_utf8(&self.0);
        Some(new_varlena(converted.as_deref().unwrap_or(&self.0)))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

pgrx::impl_sql_translatable!(NewText, "text");

// SAFETY: the datum is a palloc'd text.
unsafe impl pgrx::callconv::BoxRet for NewText {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut pgrx::callconv::FcInfo<'fcx>) -> Datum<'fcx> {
        match pgrx::IntoDatum::into_datum(self) {
            // SAFETY: as above.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

argument!(Text, "text");

// SAFETY: the elements of an array are datums of its element type.
unsafe impl UnboxDatum for Text<'_> {
    type As<'src>
        = Text<'src>
    where
        Self: 'src;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Text<'src>
    where
        Self: 'src,
    {
        // SAFETY: the array outlives its elements.
        unsafe { Text::from_raw(datum.sans_lifetime()) }
    }
}
