//! Functions that a scan calls for every row, made for C by hand: with the wrapper that
//! `#[pg_extern]` makes, the call takes as long as the comparison of two signatures, and a
//! SimHash 0.1 us longer.

use crate::datum::{StoredSignature, Text};
use crate::minhash::minhash_sim;
use crate::near_dup::near_dup;
use crate::simhash::{Options, simhash};
use pgrx::pg_sys::{Datum, FunctionCallInfo, Pg_finfo_record};
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

/// Tells PostgreSQL how to call the functions.
static VERSION_1: Pg_finfo_record = Pg_finfo_record { api_version: 1 };

#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_minhash_sim_wrapper() -> &'static Pg_finfo_record {
    &VERSION_1
}

#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_near_dup_wrapper() -> &'static Pg_finfo_record {
    &VERSION_1
}

#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_simhash_wrapper() -> &'static Pg_finfo_record {
    &VERSION_1
}
