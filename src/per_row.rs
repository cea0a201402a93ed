//! Functions that a scan calls for every row, made for C by hand: with the wrapper that
//! `#[pg_extern]` makes, the call takes as long as the comparison of two signatures, and a
//! SimHash 0.1 us longer.

use crate::datum::{StoredSignature, Text};
use crate::minhash::minhash_sim;
use crate::near_dup::near_dup;
use crate::simhash::{Options, simhash};
use pgrx::pg_sys::{Datum, FunctionCallInfo};
use pgrx::{IntoDatum, pg_guard};

/// The C function behind `minhash_sim`.
///
/// # Safety
/// PostgreSQL calls it with the arguments that SQL declares, none of them NULL.
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn minhash_sim_wrapper(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: of the declared types, and they outlive the call.
    let similarity = unsafe {
        minhash_sim(
            StoredSignature::from_raw(argument(fcinfo, 0)),
            StoredSignature::from_raw(argument(fcinfo, 1)),
        )
    };
    Datum::from(similarity.to_bits())
}

/// The C function behind `near_dup`.
///
/// # Safety
/// As of [`minhash_sim_wrapper`].
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn near_dup_wrapper(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: of the declared types, and they outlive the call.
    let is_near = unsafe {
        near_dup(
            StoredSignature::from_raw(argument(fcinfo, 0)),
            StoredSignature::from_raw(argument(fcinfo, 1)),
            f64::from_bits(argument(fcinfo, 2).value() as u64),
        )
    };
    Datum::from(is_near)
}

/// The C function behind `simhash`.
///
/// # Safety
/// As of [`minhash_sim_wrapper`].
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn simhash_wrapper(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: of the declared types, and they outlive the call.
    let bits = unsafe {
        let options = Options {
            k: argument(fcinfo, 1).value() as i32,
            unit: Text::from_raw(argument(fcinfo, 2)),
            fold: Text::from_raw(argument(fcinfo, 3)),
            bits: argument(fcinfo, 4).value() as i32,
            weighting: Text::from_raw(argument(fcinfo, 5)),
            seed: argument(fcinfo, 6).value() as i64,
        };
        simhash(&Text::from_raw(argument(fcinfo, 0)), &options)
    };
    bits.and_then(IntoDatum::into_datum).unwrap_or_else(|| {
        // SAFETY: the call is PostgreSQL's.
        unsafe { (*fcinfo).isnull = true };
        Datum::null()
    })
}

/// # Safety
/// The function is called with more than `i` arguments.
#[inline]
unsafe fn argument(fcinfo: FunctionCallInfo, i: usize) -> Datum {
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

finfo!(pg_finfo_minhash_sim_wrapper);
finfo!(pg_finfo_near_dup_wrapper);
finfo!(pg_finfo_simhash_wrapper);
