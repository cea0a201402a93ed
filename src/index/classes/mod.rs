//! The operator classes of the access method `neardup`: the keys of a value, how many of a query's
//! keys a row must have to be a candidate, and how far a row is from a query.
#![allow(clippy::disallowed_methods, reason = "at most 1024 keys")]

mod column;
mod constraint;
mod document;
mod hamming;
mod minhash;
pub mod options;
mod row;
mod set;

pub use column::IndexColumn;
pub use document::{DocumentClass, PARAMETERS as OF_DOCUMENTS};
pub use hamming::HammingClass;
pub use minhash::MinhashClass;
pub use row::RowKeys;
pub use set::SetClass;

pub use crate::minhash::incomparable::ValueParameters;

use crate::index::ball::{Ball, Within};
use neardup::bands::{Occurrence, RowSize};
use neardup::postings::Needed;
use pgrx::pg_sys;

/// The parameters of a query that compares with no value of the class.
const OF_OTHER_KIND: ValueParameters = [u8::MAX; 16];

/// The rows that a scan has to look for.
#[derive(Debug, Clone, PartialEq)]
pub enum KeySearch {
    /// No row can match.
    Nothing,
    /// Every match has as many of the keys as are needed.
    Keys { keys: Vec<u32>, needed: Needed },
    /// Rows without any of the keys can match.
    Everything,
}

/// The parameters of a value whose keys have been made, and its size, if that is not the number of keys.
pub type Keyed = (ValueParameters, Option<RowSize>);

/// Returns the part of a key's hash that is stored.
fn shorten(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl KeySearch {
    /// Returns the search for rows that share `occurrence` of the keys of bands; without it the index
    /// reads all rows.
    fn of(keys: impl IntoIterator<Item = u64>, occurrence: Option<Occurrence>) -> Self {
        match occurrence {
            None => Self::Everything,
            Some(occurrence) => Self::Keys {
                keys: keys.into_iter().map(shorten).collect(),
                needed: Needed::Bands(occurrence),
            },
        }
    }

    /// Returns whether this finds fewer candidates than another search, as far as that can be told.
    pub fn is_narrower_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (Self::Keys { .. }, Self::Everything) => true,
            (Self::Keys { needed: a, .. }, Self::Keys { needed: b, .. }) => a.least() > b.least(),
            _ => false,
        }
    }
}

/// The operator class of the compared column, with the options of an index.
pub trait ComparedClass {
    /// Appends the keys of a value, and returns its parameters and its size, if that is not the number of keys. Two
    /// values compare by the keys in equal places, or as sets: the [`Needed`] of a search says which.
    ///
    /// # Safety
    /// `value` is a datum of the class's type.
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed;

    /// Does the same for the center of a ball; None where none is of the class's kind.
    fn keys_of(&self, _center: &Within<'_>, _keys: &mut Vec<u32>) -> Option<Keyed> {
        None
    }

    /// Returns the class of documents, if it is that one: any thread can make their keys.
    fn documents(&self) -> Option<DocumentClass> {
        None
    }

    /// Returns the search of a scan for a condition of the class, and the parameters of the query.
    ///
    /// # Safety
    /// `query` is a datum of the type on the right of the class's operator with this strategy.
    unsafe fn search(&self, strategy: u16, query: pg_sys::Datum) -> (KeySearch, ValueParameters) {
        let ball = Ball::from_raw(query);
        let search = self.search_for(strategy, &ball.read());
        search.unwrap_or((KeySearch::Nothing, OF_OTHER_KIND))
    }

    /// Returns the search for the values that the operator with this strategy compares with a ball, and the center's
    /// parameters; None for a center of another kind.
    fn search_for(&self, strategy: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)>;

    /// Returns the function that tells whether a value conflicts with a query, where the check of a constraint
    /// must be handed conflicting rows alone: PostgreSQL computes the key of every row that it is handed in
    /// memory that it frees only at the end. None where that does not matter.
    ///
    /// # Safety
    /// `query`, and every value, is a datum of the class's type; the query outlives the result.
    unsafe fn decide(&self, _query: pg_sys::Datum) -> Option<Box<dyn Fn(pg_sys::Datum) -> bool>> {
        None
    }

    /// Returns the order of values by their distance from a query; None if the class has none.
    ///
    /// # Safety
    /// `query` is a datum of the class's type.
    unsafe fn order(&self, _query: pg_sys::Datum) -> Option<Box<dyn DistanceOrder>> {
        None
    }

    /// Returns parameters in words.
    fn describe(&self, parameters: &ValueParameters) -> String;
}

/// The order of values by their distance from a query.
pub trait DistanceOrder {
    /// Returns the search for everything within the index's own bound of the query.
    fn search(&self) -> KeySearch;

    /// Returns the least distance of a value that shares `shared` of the query's keys, by the
    /// function of the distance operator: it never exceeds the operator's result.
    fn least_distance(&self, shared: usize) -> f64;

    /// Returns the distance operator's result; None where it fails because the values do not
    /// compare.
    ///
    /// # Safety
    /// `value` is a datum of the class's type.
    unsafe fn distance(&self, value: pg_sys::Datum) -> Option<f64>;

    /// Returns a distance as the operator's result.
    fn result(&self, distance: f64) -> pg_sys::Datum;
}

/// The number of the support function that says whether two values are near each other. It is never
/// called: it tells which class this is, whatever its name and schema.
pub const PREDICATE_FUNCTION: u16 = 1;

/// The number of the support function that declares the options.
pub const OPTIONS_FUNCTION: u16 = 2;

/// The number of the support function that hashes values of a scope column whose type has no operator
/// class for hash indexes: (value, salt bigint) -> bigint.
pub const HASH_FUNCTION: u16 = 3;

/// The number of support functions.
pub const FUNCTIONS: u16 = 3;

/// The strategy of `<@` of signatures and bit strings, and of `<%`.
pub const CONTAINED: u16 = 1;

/// The strategy of `=` of scope columns.
pub const EQUAL: u16 = 4;

/// The strategy of `%>`.
pub const CONTAINS: u16 = 5;

/// The strategy of `<%>`, and of `<@` of documents.
pub const RESEMBLES: u16 = 6;

/// The number of strategies; 2 is that of the distance, FOR ORDER BY, 3 that of `%`.
pub const STRATEGIES: u16 = RESEMBLES;
