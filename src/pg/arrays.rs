//! Arrays as results, and sets read from arrays.

use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::text::{Text, to_server_encoding};
use neardup::memory::{Grow, collected, copied, with_room};
use neardup::set::sort_distinct;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::{Array, Datum};
use pgrx::{FromDatum, pg_sys};

/// Elements after which interrupts are checked for.
pub const HEARTBEAT: usize = 1 << 16;

/// Returns the set of the elements of an array of any dimension, without NULLs.
pub fn bigint_set(elements: &Array<'_, i64>) -> Vec<i64> {
    let set = match elements.as_slice() {
        Ok(elements) => copied(elements),
        Err(_) => collected(elements.iter().flatten()),
    };
    let mut set = set.or_raise();
    sort_distinct(&mut set, &mut check_interrupts);
    set
}

/// Returns the elements of an array of any dimension as UTF-8, without NULLs.
pub fn texts<'a>(elements: &'a Array<'_, Text<'_>>) -> impl Iterator<Item = Text<'a>> {
    let beating = elements.iter().enumerate().map(|(i, element)| {
        if i % HEARTBEAT == 0 {
            check_interrupts();
        }
        element
    });
    beating.flatten()
}

/// Returns the set of these texts.
pub fn text_set<'a>(texts: &'a [Text<'_>]) -> Vec<&'a [u8]> {
    let mut set = collected(texts.iter().map(|text| &**text)).or_raise();
    sort_distinct(&mut set, &mut check_interrupts);
    set
}

/// Returns the elements of a text[], each through `map`; NULLs are left out.
pub fn text_elements<T>(array: pg_sys::Datum, map: &dyn Fn(&[u8]) -> T) -> Vec<T> {
    let (mut elements, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
    // SAFETY: the datum is a text[]; the arrays are valid for `count` elements.
    unsafe {
        pg_sys::deconstruct_array(
            pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast(),
            pg_sys::TEXTOID,
            -1,
            false,
            pg_sys::TYPALIGN_INT as core::ffi::c_char,
            &mut elements,
            &mut nulls,
            &mut count,
        );
        let present = (0..count as usize).filter(|&number| !*nulls.add(number));
        let mapped = present.map(|number| map(&Text::from_raw(*elements.add(number))));
        let mapped = collected(mapped).or_raise();
        pg_sys::pfree(elements.cast());
        pg_sys::pfree(nulls.cast());
        mapped
    }
}

/// Returns the elements of a bigint[]; NULLs are left out.
pub fn bigint_elements(array: pg_sys::Datum) -> Vec<i64> {
    // SAFETY: the datum is a bigint[].
    let array: Option<pgrx::Array<'_, i64>> =
        unsafe { FromDatum::from_polymorphic_datum(array, false, pg_sys::INT8OID) };
    array.map_or_else(Vec::new, |array| {
        collected(array.iter().flatten()).or_raise()
    })
}

/// A new `bigint[]`. More elements than fit in 1 GB are an ERROR `program_limit_exceeded`.
pub struct NewBigints(pub Vec<i64>);

/// A new `text[]`, of at most [`MAX_TEXTS`] bytes.
pub struct NewTexts(pub Vec<String>);

/// Most bytes of an array of texts: those of a value without its header.
pub const MAX_TEXTS: usize = 0x3FFF_FFFF - 64;

impl NewBigints {
    fn into_array(self) -> pg_sys::Datum {
        let mut datums = collected(self.0.into_iter().map(pg_sys::Datum::from)).or_raise();
        // SAFETY: as many datums of the fixed-length type bigint as are announced.
        let array = unsafe {
            pg_sys::construct_array(
                datums.as_mut_ptr(),
                datums.len() as i32,
                pg_sys::INT8OID,
                8,
                true,
                pg_sys::TYPALIGN_DOUBLE as std::ffi::c_char,
            )
        };
        pg_sys::Datum::from(array)
    }
}

impl NewTexts {
    fn into_array(self) -> pg_sys::Datum {
        let mut datums = with_room(self.0.len()).or_raise();
        for (i, text) in self.0.iter().enumerate() {
            if i % HEARTBEAT == 0 {
                check_interrupts();
            }
            let bytes = to_server_encoding(text);
            // SAFETY: the bytes are copied into a new value.
            let datum = pg_sys::Datum::from(unsafe {
                pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), bytes.len() as i32)
            });
            datums.try_push(datum).or_raise();
        }
        // SAFETY: as many datums of the variable-length type text as are announced.
        let array = unsafe {
            pg_sys::construct_array(
                datums.as_mut_ptr(),
                datums.len() as i32,
                pg_sys::TEXTOID,
                -1,
                false,
                pg_sys::TYPALIGN_INT as std::ffi::c_char,
            )
        };
        pg_sys::Datum::from(array)
    }
}

macro_rules! result {
    ($type:ident, $sql:literal, $array:expr) => {
        pgrx::impl_sql_translatable!($type, $sql);

        impl pgrx::IntoDatum for $type {
            fn into_datum(self) -> Option<pg_sys::Datum> {
                Some(self.into_array())
            }

            fn type_oid() -> pg_sys::Oid {
                $array
            }
        }

        // SAFETY: the datum is a palloc'd array of the declared type.
        unsafe impl BoxRet for $type {
            unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
                // SAFETY: as above.
                unsafe { fcinfo.return_raw_datum(self.into_array()) }
            }
        }
    };
}

result!(NewBigints, "bigint[]", pg_sys::INT8ARRAYOID);
result!(NewTexts, "text[]", pg_sys::TEXTARRAYOID);
