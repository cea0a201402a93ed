//! The operator classes of the access method `neardup`: the keys of a value, and how many of a
//! query's keys a row must have to be a candidate.
#![allow(clippy::disallowed_methods, reason = "at most 1024 keys")]

mod hamming;
mod minhash;

pub use hamming::{HammingClass, neardup_hamming_kind_wrapper};
pub use minhash::{MinhashClass, neardup_minhash_kind_wrapper};

use crate::pg::error::raise;
use neardup::bands::Occurrence;
use pgrx::{PgSqlErrorCode, pg_sys};

/// What decides whether values compare at all.
pub type Parameters = [u8; 16];

/// What a scan has to look for.
#[derive(Debug, PartialEq, Eq)]
pub enum Search {
    /// No row can match.
    Nothing,
    /// Every match has at least `needed`, above 0, of the keys.
    Keys { keys: Vec<u32>, needed: usize },
    /// Rows without any of the keys can match.
    Everything,
}

/// Returns the part of a key's hash that is stored.
fn shorten(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Search {
    /// Returns the search for what shares as many of the keys as is said; without that they do not
    /// help.
    fn of(keys: Vec<u64>, occurrence: Option<Occurrence>) -> Self {
        match occurrence {
            None => Self::Everything,
            Some(occurrence) => Self::Keys {
                keys: keys.into_iter().map(shorten).collect(),
                needed: occurrence.needed(),
            },
        }
    }

    /// Returns whether this finds fewer candidates than another search, as far as that can be told.
    pub fn is_narrower_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (Self::Keys { .. }, Self::Everything) => true,
            (Self::Keys { needed: a, .. }, Self::Keys { needed: b, .. }) => a > b,
            _ => false,
        }
    }
}

/// An operator class with the options of one index column.
pub trait Class {
    /// Appends the keys of a value and returns its parameters. Two values compare by the keys in
    /// equal places.
    ///
    /// # Safety
    /// `value` is a datum of the class's type.
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Parameters;

    /// Returns what a scan for `column <@ query` looks for, and the parameters of the query.
    ///
    /// # Safety
    /// `query` is a datum of the class's type of balls.
    unsafe fn search(&self, query: pg_sys::Datum) -> (Search, Parameters);

    /// Returns parameters in words.
    fn describe(&self, parameters: &Parameters) -> String;
}

/// Makes a class of its options; None if they are out of range.
///
/// # Safety
/// The options are NULL or those of an index column of the class.
pub type Open = unsafe fn(options: *mut pg_sys::bytea) -> Option<Box<dyn Class>>;

/// The number of the support function that returns the address of an [`Open`].
pub const KIND_FUNCTION: u16 = 1;

/// The number of the support function that declares the options.
pub const OPTIONS_FUNCTION: u16 = 2;

/// The number of support functions.
pub const FUNCTIONS: u16 = 2;

/// The strategy of `<@`.
pub const CONTAINED: u16 = 1;

/// The class of a column of an open index.
///
/// # Safety
/// The relation is an index of this access method, and has such a column, counted from 1.
pub unsafe fn of_column(index: pg_sys::Relation, column: i16) -> Box<dyn Class> {
    // SAFETY: vouched for by the caller; the access method demands the support function, and only
    // functions of this library return an address as `internal`.
    let class = unsafe {
        let function = pg_sys::index_getprocinfo(index, column, KIND_FUNCTION);
        let no_argument = pg_sys::Datum::null();
        let open = pg_sys::FunctionCall1Coll(function, pg_sys::InvalidOid, no_argument);
        let open = open.cast_mut_ptr::<Open>();
        let options = *pg_sys::RelationGetIndexAttOptions(index, false).add(column as usize - 1);
        (*open)(options)
    };
    class.unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            "the options of a neardup index are out of range",
            "Drop the index and create it anew.",
        )
    })
}

/// Reads parsed options, or returns None if there are none or their length is not that of `T`.
///
/// # Safety
/// `options` is NULL or a varlena as PostgreSQL makes it of the options of an operator class;
/// `T` may hold any bytes.
pub unsafe fn read_options<T: Copy>(options: *mut pg_sys::bytea) -> Option<T> {
    // SAFETY: vouched for by the caller; the length is checked.
    unsafe {
        let complete =
            !options.is_null() && pgrx::varlena::varsize(options.cast()) >= size_of::<T>();
        complete.then(|| options.cast::<T>().read_unaligned())
    }
}
