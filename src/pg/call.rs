//! Functions made for C by hand, without `#[pg_extern]`: those that a scan calls for every row, since
//! the wrapper that it makes takes as long as the comparison of two signatures.

use pgrx::pg_sys::{Datum, FunctionCallInfo};

/// The datum of argument `i`.
///
/// # Safety
/// The function is called with more than `i` arguments.
#[inline]
pub unsafe fn argument(fcinfo: FunctionCallInfo, i: usize) -> Datum {
    // SAFETY: as vouched for.
    unsafe { (*(*fcinfo).args.as_ptr().add(i)).value }
}

/// Tells PostgreSQL how to call a function that is made by hand: the symbol that it looks for is
/// `pg_finfo_` and the function's name.
macro_rules! finfo {
    ($symbol:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $symbol() -> &'static pgrx::pg_sys::Pg_finfo_record {
            const VERSION_1: pgrx::pg_sys::Pg_finfo_record =
                pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    };
}
pub(crate) use finfo;
