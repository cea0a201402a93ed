//! Text arguments as UTF-8, whatever the database's encoding, and results in that encoding.

use crate::pg::conversion::{convert, first_lacking, is_converted};
use crate::pg::encoding::Utf8;
use crate::pg::error::{OrRaise, raise};
use crate::pg::varlena::{Varlena, argument, datum_result, new_varlena};
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

/// A `text` argument.
pub type Text<'a> = Utf8<Varlena<'a>>;

impl Text<'_> {
    /// Reads a datum of a text type.
    ///
    /// # Safety
    /// `datum` is a non-null datum of a text type that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self::new(Varlena::from_raw(datum))
    }

    /// Returns the name of an option, such as a unit or a fold. Text outside ASCII is escaped, so that it is never a
    /// valid name.
    pub fn name(&self) -> Cow<'_, str> {
        match std::str::from_utf8(self) {
            Ok(name) if name.is_ascii() => Cow::Borrowed(name),
            _ => Cow::Owned(self.escape_ascii().to_string()),
        }
    }
}

/// Returns `bytes` converted from UTF-8 to the database's encoding, or None if the conversion changes nothing.
///
/// # Errors
/// ERROR `untranslatable_character` if the encoding lacks a character.
fn from_utf8(bytes: &[u8]) -> Option<Vec<u8>> {
    if !is_converted() || bytes.is_ascii() {
        return None;
    }
    let lacking = PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER;
    PgTryBuilder::new(AssertUnwindSafe(|| {
        convert(bytes, pg_sys::pg_any_to_server).or_raise()
    }))
    .catch_when(lacking, |error| match first_lacking(bytes) {
        Some((c, encoding)) => raise(
            lacking,
            &format!(
                "the database's encoding {encoding} has no character U+{:04X}",
                u32::from(c)
            ),
            "Folding may have produced it from another character; with fold => 'none', characters stay unchanged.",
        ),
        None => error.rethrow(),
    })
    .execute()
}

/// Converts a text to the database's encoding.
///
/// # Errors
/// ERROR `untranslatable_character` if the encoding lacks a character.
pub fn to_server_encoding(text: &str) -> Cow<'_, [u8]> {
    match from_utf8(text.as_bytes()) {
        Some(converted) => Cow::Owned(converted),
        None => Cow::Borrowed(text.as_bytes()),
    }
}

/// A new `text`, made from UTF-8 or from parts of [`Text`] arguments.
pub struct NewText(pub Vec<u8>);

impl pgrx::IntoDatum for NewText {
    /// Converts the text to the database's encoding.
    ///
    /// # Errors
    /// ERROR `untranslatable_character` if the database's encoding lacks a character.
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let converted = from_utf8(&self.0);
        Some(new_varlena(converted.as_deref().unwrap_or(&self.0)))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

datum_result!(NewText, "text");

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
        Text::from_raw(datum.sans_lifetime())
    }
}
