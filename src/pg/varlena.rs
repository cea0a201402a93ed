//! Values of variable length as arguments and results.
//!
//! A value is detoasted at most once and never copied unless it is compressed or stored out of line.

use crate::pg::error::{out_of_memory, too_large};
use pgrx::{Internal, pg_sys};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// A detoasted varlena. If a copy was made, it is freed with this value, because index and sort support functions run
/// in long-lived memory contexts.
pub struct Varlena<'a> {
    start: NonNull<pg_sys::varlena>,
    copied: bool,
    lifetime: PhantomData<&'a [u8]>,
}

impl Varlena<'_> {
    /// Returns the value of a datum, detoasted if necessary.
    ///
    /// # Safety
    /// `datum` is a non-null datum of a variable-length type that outlives the value.
    #[inline]
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        let stored = datum.cast_mut_ptr::<pg_sys::varlena>();
        // Calls PostgreSQL only if there is something to do: the call costs more than comparing two signatures.
        let start = if pgrx::varlena::varatt_is_4b_u(stored)
            || (pgrx::varlena::varatt_is_1b(stored) && !pgrx::varlena::varatt_is_1b_e(stored))
        {
            stored
        } else {
            pg_sys::pg_detoast_datum_packed(stored)
        };
        Self {
            start: NonNull::new(start).expect("a detoasted value has an address"),
            copied: start != stored,
            lifetime: PhantomData,
        }
    }
}

impl Deref for Varlena<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is a detoasted varlena that lives as long as `self`.
        unsafe { pgrx::varlena::varlena_to_byte_slice(self.start.as_ptr()) }
    }
}

impl Drop for Varlena<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.copied {
            // SAFETY: the copy was allocated by the detoaster for this value alone.
            unsafe { pg_sys::pfree(self.start.as_ptr().cast()) };
        }
    }
}

/// Returns the unread bytes of a message.
///
/// # Safety
/// `message` is a StringInfo.
pub unsafe fn rest_of_message(message: &mut Internal) -> &[u8] {
    let message = message
        .get_mut::<pg_sys::StringInfoData>()
        .expect("a receive function gets a message");
    let len = message.len - message.cursor;
    let start = pg_sys::pq_getmsgbytes(message, len);
    std::slice::from_raw_parts(start.cast::<u8>(), len as usize)
}

/// Makes `$type` an argument of the SQL type `$sql`. Its `from_raw` reads the datum.
macro_rules! argument {
    ($type:ident, $sql:literal) => {
        impl pgrx::FromDatum for $type<'_> {
            unsafe fn from_polymorphic_datum(
                datum: pgrx::pg_sys::Datum,
                is_null: bool,
                _: pgrx::pg_sys::Oid,
            ) -> Option<Self> {
                // SAFETY: PostgreSQL passes a datum of the declared type.
                (!is_null).then(|| unsafe { Self::from_raw(datum) })
            }
        }

        // SAFETY: the datum is of the declared SQL type, which `from_raw` reads.
        unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for $type<'fcx> {
            unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
                // SAFETY: STRICT functions get no NULL; others take an `Option`.
                unsafe { arg.unbox_arg_using_from_datum() }.expect("the argument is not NULL")
            }
        }

        pgrx::impl_sql_translatable!($type<'_>, arg_only = $sql);
    };
}
pub(crate) use argument;

// A text in the database's encoding.
argument!(Varlena, "text");

/// Maximum number of bytes of a value, `MaxAllocSize` of PostgreSQL.
pub const MAX_BYTES: usize = 0x3FFF_FFFF;

/// Allocates `bytes` bytes for a new value in the current memory context.
///
/// # Errors
/// ERROR `program_limit_exceeded` above [`MAX_BYTES`]. ERROR `out_of_memory`, raised by Rust: frames free their memory
/// before pgrx copies the error, so the copy does not fail, too. pgrx 0.19.3 copies PostgreSQL's own error at once and,
/// if there is no memory for the copy either, tries again until the server panics.
pub fn allocate(bytes: usize) -> *mut u8 {
    if bytes > MAX_BYTES {
        too_large("the result is larger than 1 GB", "");
    }
    // SAFETY: the context is valid.
    let block = unsafe {
        pg_sys::MemoryContextAllocExtended(
            pg_sys::CurrentMemoryContext,
            bytes,
            pg_sys::MCXT_ALLOC_NO_OOM as i32,
        )
    };
    if block.is_null() {
        out_of_memory();
    }
    block.cast()
}

/// Returns a copy of a value passed by reference, allocated by [`allocate`].
pub fn new_value(bytes: &[u8]) -> pg_sys::Datum {
    let block = allocate(bytes.len());
    // SAFETY: the block has room for the bytes.
    unsafe { block.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    pg_sys::Datum::from(block)
}

/// Returns a varlena as stored, including its header.
///
/// # Safety
/// `value` is a varlena that outlives the result.
pub unsafe fn stored<'a>(value: *const pg_sys::varlena) -> &'a [u8] {
    std::slice::from_raw_parts(value.cast::<u8>(), pgrx::varlena::varsize_any(value))
}

/// Returns a new varlena of `bytes`, allocated by [`allocate`].
pub fn new_varlena(bytes: &[u8]) -> pg_sys::Datum {
    const HEADER: usize = size_of::<u32>();
    let block = allocate(HEADER + bytes.len());
    // SAFETY: the block has room for header and bytes.
    unsafe {
        pgrx::varlena::set_varsize_4b(block.cast(), (HEADER + bytes.len()) as i32);
        block
            .add(HEADER)
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
    pg_sys::Datum::from(block)
}

/// Makes `$type`, which holds the bytes of a varlena, a result of the SQL type `$sql`.
macro_rules! result {
    ($type:ident, $sql:literal) => {
        impl pgrx::IntoDatum for $type {
            fn into_datum(self) -> Option<pgrx::pg_sys::Datum> {
                Some($crate::pg::varlena::new_varlena(&self.0))
            }

            fn type_oid() -> pgrx::pg_sys::Oid {
                // Only results of known type are built from this type.
                pgrx::pg_sys::InvalidOid
            }
        }

        $crate::pg::varlena::datum_result!($type, $sql);
    };
}
pub(crate) use result;

/// Makes `$type`, which converts into a datum, a result of the SQL type `$sql`.
macro_rules! datum_result {
    ($type:ident, $sql:literal) => {
        pgrx::impl_sql_translatable!($type, $sql);

        // SAFETY: the datum is a palloc'd value of the declared type.
        unsafe impl pgrx::callconv::BoxRet for $type {
            unsafe fn box_into<'fcx>(
                self,
                fcinfo: &mut pgrx::callconv::FcInfo<'fcx>,
            ) -> pgrx::datum::Datum<'fcx> {
                match pgrx::IntoDatum::into_datum(self) {
                    // SAFETY: as above.
                    Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
                    None => fcinfo.return_null(),
                }
            }
        }
    };
}
pub(crate) use datum_result;
