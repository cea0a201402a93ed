//! Arrays as results, and sets read from arrays.

use crate::pg::encoding::utf8;
use crate::pg::error::{OrRaise, check_interrupts, corrupted, too_large};
use crate::pg::statement::{array_of_texts, text_datum};
use crate::pg::text::{Text, to_server_encoding};
use crate::pg::varlena::{Varlena, allocate, argument, datum_result};
use neardup::memory::collected;
use neardup::set::sort_distinct;
use pgrx::datum::{Array, UnboxDatum};
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::ffi::CStr;

/// Number of elements between two checks for interrupts.
const HEARTBEAT: usize = 1 << 16;

/// Returns an iterator over `elements` that checks for interrupts at every [`HEARTBEAT`]th element.
pub fn beating<T>(elements: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let beat = |(i, element): (usize, T)| {
        if i.is_multiple_of(HEARTBEAT) {
            check_interrupts();
        }
        element
    };
    elements.enumerate().map(beat)
}

/// A `bigint[]` argument of any dimension.
pub struct Bigints<'a>(Varlena<'a>);

argument!(Bigints, "bigint[]");

impl Bigints<'_> {
    /// Reads a datum of type `bigint[]`.
    ///
    /// # Safety
    /// `datum` is a non-null datum of type bigint[] that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self(Varlena::from_raw(datum))
    }

    /// Returns the elements that are not NULL, in order.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are not an array.
    pub fn elements(&self) -> impl Iterator<Item = i64> {
        let elements = elements_of(&self.0).unwrap_or_else(|| corrupted("invalid bigint[]"));
        elements.iter().map(|element| i64::from_ne_bytes(*element))
    }

    /// Returns the distinct elements that are not NULL, sorted.
    ///
    /// # Errors
    /// The errors of [`Self::elements`].
    pub fn set(&self) -> Vec<i64> {
        let mut set = collected(self.elements()).or_raise();
        sort_distinct(&mut set, &mut check_interrupts);
        set
    }
}

/// Returns the elements of an array of 8-byte elements, given without its varlena header, or None if it is too short
/// for the array's own header. NULLs take no space.
fn elements_of(array: &[u8]) -> Option<&[[u8; 8]]> {
    /// The fields before the dimensions: their number, the offset of the elements, their type.
    const FIXED: usize = 3 * size_of::<i32>();
    let field = |number: usize| {
        let bytes = array.get(number * size_of::<i32>()..)?.first_chunk()?;
        usize::try_from(i32::from_ne_bytes(*bytes)).ok()
    };
    let (dimensions, offset) = (field(0)?, field(1)?);
    let offset = match offset {
        // Without NULLs the elements follow the sizes and lower bounds of the dimensions.
        0 => (ARRAY_VARLENA + FIXED + dimensions * 2 * size_of::<i32>()).next_multiple_of(8),
        offset => offset,
    };
    let elements = match dimensions {
        0 => &[],
        _ => array.get(offset.checked_sub(ARRAY_VARLENA)?..)?,
    };
    Some(elements.as_chunks().0)
}

/// Length of the varlena header, which offsets within an array include.
const ARRAY_VARLENA: usize = size_of::<u32>();

/// Returns the elements of an array of any dimension as UTF-8, without NULLs.
pub fn texts<'a>(elements: &'a Array<'_, Text<'_>>) -> impl Iterator<Item = Text<'a>> {
    beating(elements.iter()).flatten()
}

/// Returns the distinct texts, sorted.
pub fn text_set<'a>(texts: &'a [Text<'_>]) -> Vec<&'a [u8]> {
    let mut set = collected(texts.iter().map(|text| &**text)).or_raise();
    sort_distinct(&mut set, &mut check_interrupts);
    set
}

/// Returns the results of `map` for the elements of a text[], without NULLs.
///
/// # Safety
/// The datum is a text[].
pub unsafe fn text_elements<T>(array: pg_sys::Datum, map: &dyn Fn(&[u8]) -> T) -> Vec<T> {
    elements::<Text<'static>, T>(array, |text| map(&text))
}

/// Returns the elements of a name[], without NULLs.
///
/// # Safety
/// The datum is a name[].
pub unsafe fn names_in(array: pg_sys::Datum) -> Vec<String> {
    elements::<&'static CStr, String>(array, utf8)
}

/// Returns the results of `map` for the elements of an array, without NULLs.
///
/// # Safety
/// The datum is an array of elements that `E` reads.
unsafe fn elements<E: UnboxDatum + 'static, T>(
    array: pg_sys::Datum,
    map: impl Fn(E::As<'_>) -> T,
) -> Vec<T> {
    let array = Array::<E>::from_datum(array, false).expect("the array is not NULL");
    collected(array.iter().flatten().map(map)).or_raise()
}

/// Returns the elements of a bigint[], without NULLs.
///
/// # Safety
/// The datum is a bigint[].
pub unsafe fn bigint_elements(array: pg_sys::Datum) -> Vec<i64> {
    let array = Bigints::from_raw(array);
    collected(array.elements()).or_raise()
}

/// A new `bigint[]`. More elements than fit in 1 GB are an ERROR `program_limit_exceeded`.
pub struct NewBigints(pub Vec<i64>);

/// A new `text[]`. Its elements take at most [`MAX_ARRAY_BYTES`].
pub struct NewTexts(pub Vec<String>);

/// Maximum number of bytes of a new array's elements.
pub const MAX_ARRAY_BYTES: usize = 0x3FFF_FFFF - 64;

impl IntoDatum for NewBigints {
    fn type_oid() -> pg_sys::Oid {
        pg_sys::INT8ARRAYOID
    }

    fn into_datum(self) -> Option<pg_sys::Datum> {
        /// The array's fixed part, then the length and the lower bound of its only dimension.
        const HEADER: usize = size_of::<pg_sys::ArrayType>() + 2 * size_of::<i32>();
        let bytes = size_of_val(&self.0[..]);
        if bytes == 0 {
            // SAFETY: allocates a new value.
            return Some(unsafe { pg_sys::construct_empty_array(pg_sys::INT8OID) }.into());
        }
        if bytes > MAX_ARRAY_BYTES {
            too_large(
                "the array does not fit in 1 GB",
                "Work on a part of the document.",
            );
        }
        let array = allocate(HEADER + bytes);
        // SAFETY: the block has room for the header, and for the elements behind it.
        unsafe {
            pgrx::varlena::set_varsize_4b(array.cast(), (HEADER + bytes) as i32);
            let header = array.cast::<pg_sys::ArrayType>();
            (*header).ndim = 1;
            (*header).dataoffset = 0;
            (*header).elemtype = pg_sys::INT8OID;
            let dimension = header.add(1).cast::<i32>();
            dimension.write(self.0.len() as i32);
            dimension.add(1).write(1);
            let elements = array.add(HEADER);
            elements.copy_from_nonoverlapping(self.0.as_ptr().cast(), bytes);
        }
        Some(pg_sys::Datum::from(array))
    }
}

impl IntoDatum for NewTexts {
    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTARRAYOID
    }

    fn into_datum(self) -> Option<pg_sys::Datum> {
        let texts = beating(self.0.iter()).map(|text| text_datum(&to_server_encoding(text)));
        Some(array_of_texts(collected(texts).or_raise()))
    }
}

datum_result!(NewBigints, "bigint[]");
datum_result!(NewTexts, "text[]");
