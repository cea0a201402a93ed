//! The operator classes `near_dup_key_ops` and `hamming_key_ops`: `%` between constraint keys, for
//! exclusion constraints and for lookups through their indexes.
//!
//! They have the keys of `minhash_ops` and `hamming_ops` at the bound that the index's expression
//! states, the same one for every row.

use super::{Class, Column, HammingClass, MinhashClass, Open, Order, Parameters, Search};
use crate::index::constraint_key::{
    HammingKey, MAKE_HAMMING_KEY, MAKE_NEAR_DUP_KEY, MakeKey, NearDupKey, constant_bound,
};
use crate::index::keys::{HammingKeys, MinhashKeys};
use crate::options;
use crate::pg::error::raise;
use neardup::bands::MAX_BLOCKS;
use pgrx::prelude::*;
use pgrx::{FromDatum, Internal, PgSqlErrorCode, pg_sys};

struct NearDupKeyClass(MinhashClass);

impl Class for NearDupKeyClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Parameters {
        // SAFETY: vouched for by the caller.
        let key = unsafe { NearDupKey::from_raw(value) };
        self.0.keys_of(&key.read().0, keys)
    }

    unsafe fn search(&self, _strategy: u16, query: pg_sys::Datum) -> (Search, Parameters) {
        // SAFETY: vouched for by the caller.
        let key = unsafe { NearDupKey::from_raw(query) };
        let (center, threshold) = key.read();
        self.0
            .search_for(&center, threshold.max(self.0.keys.threshold()))
    }

    unsafe fn order(&self, _query: pg_sys::Datum) -> Option<Box<dyn Order>> {
        None
    }

    fn describe(&self, parameters: &Parameters) -> String {
        self.0.describe(parameters)
    }
}

struct HammingKeyClass(HammingClass);

impl Class for HammingKeyClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Parameters {
        // SAFETY: vouched for by the caller.
        let key = unsafe { HammingKey::from_raw(value) };
        self.0.keys_of(key.read().0, keys)
    }

    unsafe fn search(&self, _strategy: u16, query: pg_sys::Datum) -> (Search, Parameters) {
        // SAFETY: vouched for by the caller.
        let key = unsafe { HammingKey::from_raw(query) };
        let (center, distance) = key.read();
        self.0
            .search_for(center, distance.min(self.0.keys.distance()))
    }

    unsafe fn order(&self, _query: pg_sys::Datum) -> Option<Box<dyn Order>> {
        None
    }

    fn describe(&self, parameters: &Parameters) -> String {
        self.0.describe(parameters)
    }
}

/// Returns the constant bound in the expression of an index column, a call of one of `make`.
///
/// # Errors
/// ERROR `invalid_object_definition` if there is none, or one out of range.
fn stated_bound<T>(
    column: &Column,
    make: MakeKey,
    read: impl FnOnce(pg_sys::Datum) -> Option<T>,
    example: &str,
) -> T {
    let stated = column.expression().and_then(|expression| {
        // SAFETY: an expression of the index.
        unsafe { constant_bound(expression, make) }
    });
    stated.and_then(read).unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            "an index of constraint keys needs a constant bound",
            &format!("Index an expression with a constant, such as {example}."),
        )
    })
}

const OPEN_NEAR_DUP: Open = |column| {
    let read = |datum| {
        // SAFETY: the function's second argument is of the type.
        let threshold = unsafe { f64::from_datum(datum, false) };
        threshold.filter(|&threshold| options::is_threshold(threshold))
    };
    let example = "near_dup_key(sig, 0.85)";
    let threshold = stated_bound(column, MAKE_NEAR_DUP_KEY, read, example);
    let keys = MinhashKeys::new(threshold)?;
    Some(Box::new(NearDupKeyClass(MinhashClass { keys })))
};

const OPEN_HAMMING: Open = |column| {
    let read = |datum| {
        // SAFETY: the function's second argument is of the type.
        let distance = unsafe { i32::from_datum(datum, false) };
        distance.filter(|&distance| distance >= 0)
    };
    let example = "hamming_key(hash, 3)";
    let distance = stated_bound(column, MAKE_HAMMING_KEY, read, example);
    let keys = HammingKeys::new(distance).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            &format!("an index cannot find a Hamming distance of {distance} by its keys"),
            &format!("Valid are distances from 0 to {}.", MAX_BLOCKS - 1),
        )
    });
    Some(Box::new(HammingKeyClass(HammingClass { keys })))
};

/// Returns the address of what makes the class of `near_dup_key`.
#[pg_extern(immutable, parallel_safe)]
fn neardup_near_dup_key_kind(_unused: Internal) -> Internal {
    static KIND: Open = OPEN_NEAR_DUP;
    Internal::from(Some(pg_sys::Datum::from(&raw const KIND)))
}

/// Returns the address of what makes the class of `hamming_key`.
#[pg_extern(immutable, parallel_safe)]
fn neardup_hamming_key_kind(_unused: Internal) -> Internal {
    static KIND: Open = OPEN_HAMMING;
    Internal::from(Some(pg_sys::Datum::from(&raw const KIND)))
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_constraint.sql",
    name = "neardup_constraint",
    requires = [
        "constraint_key",
        "neardup_access_method",
        neardup_near_dup_key_kind,
        neardup_hamming_key_kind
    ]
);
