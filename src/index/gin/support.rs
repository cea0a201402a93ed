//! Functions that the GIN operator classes share. Both store a few short keys a row and count how many of a
//! query's keys a row has; every candidate is rechecked.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "at most 1024 keys"
)]

use neardup::bands::Occurrence;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{Internal, pg_sys};
use std::marker::PhantomData;

/// The query of a GIN support function. Declared in SQL with the indexed type `T`, which GIN's
/// validator demands, whatever the operator's right operand is.
pub struct Query<T> {
    pub datum: pg_sys::Datum,
    declared: PhantomData<T>,
}

// SAFETY: the datum is handed on as it is.
unsafe impl<'fcx, T> ArgAbi<'fcx> for Query<T> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: GIN calls its support functions without NULLs.
        let datum = unsafe { arg.unbox_arg_using_from_datum::<pg_sys::Datum>() };
        Self {
            datum: datum.expect("a query is not NULL"),
            declared: PhantomData,
        }
    }
}

// SAFETY: the SQL type is that of `T`.
unsafe impl<T: SqlTranslatable> SqlTranslatable for Query<T> {
    const TYPE_IDENT: &'static str = T::TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = T::TYPE_ORIGIN;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = T::ARGUMENT_SQL;
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

/// The keys that a scan looks for.
pub enum Search {
    /// No row can match.
    Nothing,
    /// Every match has at least `intact`, above 0, of the keys.
    Keys { keys: Vec<i32>, intact: usize },
    /// Rows without any of the keys can match.
    Everything,
}

impl Search {
    /// Looks for rows that share as many of the keys as matches do, or for all rows.
    pub fn of(keys: Vec<i32>, occurrence: Option<Occurrence>) -> Self {
        match occurrence {
            Some(occurrence) => Self::Keys {
                keys,
                intact: occurrence.needed(),
            },
            None => Self::Everything,
        }
    }

    /// Returns the results of GIN's extractQuery. The number of keys to demand travels in the extra
    /// data, which GIN hands to the consistent functions.
    ///
    /// # Safety
    /// The arguments are those of an extractQuery call, and `mode` came initialized to the default.
    pub unsafe fn extract(self, nkeys: Internal, extra: Internal, mode: Internal) -> Internal {
        match self {
            Self::Nothing => {
                // SAFETY: vouched for by the caller.
                unsafe { return_keys(&[], nkeys) }
            }
            Self::Everything => {
                // SAFETY: vouched for by the caller.
                unsafe {
                    set(mode, pg_sys::GIN_SEARCH_MODE_ALL as i32);
                    return_keys(&[], nkeys)
                }
            }
            Self::Keys { keys, intact } => {
                let demanded = vec![intact; keys.len()];
                // SAFETY: vouched for by the caller; the extra data has one pointer a key.
                unsafe {
                    set(extra, copy_to_palloc(&demanded));
                    return_keys(&keys, nkeys)
                }
            }
        }
    }
}

/// Returns what an index stores of keys: each one's number above the low `key_bits` bits of its
/// hash, fewer where the numbers need the room.
pub fn stored(keys: &[u64], key_bits: u32) -> Vec<i32> {
    let number_bits = usize::BITS - keys.len().saturating_sub(1).leading_zeros();
    let key_bits = key_bits.min(u32::BITS - number_bits);
    keys.iter()
        .enumerate()
        .map(|(number, hash)| (number << key_bits | (hash & ((1 << key_bits) - 1)) as usize) as i32)
        .collect()
}

/// Keys as extractValue and extractQuery return them.
///
/// # Safety
/// `nkeys` points to an int32.
pub unsafe fn return_keys(keys: &[i32], nkeys: Internal) -> Internal {
    let datums: Vec<pg_sys::Datum> = keys.iter().map(|&key| key.into()).collect();
    // SAFETY: vouched for by the caller.
    unsafe {
        set(nkeys, keys.len() as i32);
        Internal::from(Some(pg_sys::Datum::from(copy_to_palloc(&datums))))
    }
}

/// Returns whether a row can have as many of the query's keys as extractQuery demanded: `check`
/// holds one byte a key, 0 where the row does not have it. This serves consistent and triConsistent
/// alike.
///
/// # Safety
/// `check` has `nkeys` bytes, and `extra` is what [`Search::extract`] set.
pub unsafe fn possible(check: Internal, nkeys: i32, extra: Internal) -> bool {
    if nkeys <= 0 {
        return true;
    }
    // SAFETY: vouched for by the caller.
    let (check, demanded) = unsafe {
        (
            std::slice::from_raw_parts(address::<u8>(check), nkeys as usize),
            *address::<usize>(extra),
        )
    };
    check.iter().filter(|&&has| has != 0).count() >= demanded
}

/// Sets what an output argument points to.
///
/// # Safety
/// The argument points to a `T`.
pub unsafe fn set<T>(output: Internal, value: T) {
    // SAFETY: vouched for by the caller.
    unsafe { address::<T>(output).write(value) }
}

fn address<T>(argument: Internal) -> *mut T {
    argument
        .unwrap()
        .expect("GIN passes addresses")
        .cast_mut_ptr()
}

/// Returns the options of the index, or None if there are none or their length is not that of `T`.
///
/// # Safety
/// `fcinfo` is that of a GIN support function call; `T` may hold any bytes.
pub unsafe fn options_of_call<T: Copy>(fcinfo: pg_sys::FunctionCallInfo) -> Option<T> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let function = (*fcinfo).flinfo;
        if !pg_sys::has_fn_opclass_options(function) {
            return None;
        }
        options(pg_sys::get_fn_opclass_options(function))
    }
}

/// Parsed operator class options, or None if there are none or their length is not that of `T`.
///
/// # Safety
/// `options` is NULL or a varlena as PostgreSQL makes it of the options of an operator class;
/// `T` may hold any bytes.
pub unsafe fn options<T: Copy>(options: *mut pg_sys::bytea) -> Option<T> {
    // SAFETY: vouched for by the caller; the length is checked.
    unsafe {
        let complete =
            !options.is_null() && pgrx::varlena::varsize(options.cast()) >= size_of::<T>();
        complete.then(|| options.cast::<T>().read_unaligned())
    }
}

fn copy_to_palloc<T: Copy>(values: &[T]) -> *mut T {
    if values.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: the allocation has the length of the values.
    unsafe {
        let copy = pg_sys::palloc(size_of_val(values)).cast::<T>();
        copy.copy_from_nonoverlapping(values.as_ptr(), values.len());
        copy
    }
}
