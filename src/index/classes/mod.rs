//! The operator classes of the access method `neardup`. They define the keys of a value, how many of a query's keys a
//! row must have to be a candidate, and the distance between a row and a query.
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
use crate::index::bound::Bound;
use neardup::bands::{Occurrence, RowSize};
use neardup::postings::Needed;
use pgrx::pg_sys;

/// The parameters of a query that is not comparable with any value of the class.
const OF_OTHER_KIND: ValueParameters = [u8::MAX; 16];

/// The rows that a scan must look for.
#[derive(Debug, Clone, PartialEq)]
pub enum KeySearch {
    /// No row can match.
    Nothing,
    /// Every match has as many of `keys` as `needed` requires.
    Keys { keys: Vec<u32>, needed: Needed },
    /// A match may have none of the query's keys.
    Everything,
}

/// The parameters of a value, and its size unless that is the number of its keys.
pub type Keyed = (ValueParameters, Option<RowSize>);

/// Returns the part of a key's hash that the index stores.
fn shorten(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl KeySearch {
    /// Returns the search for rows that share as many of `keys`, the keys of bands, as `occurrence` requires, or
    /// [`Self::Everything`] without `occurrence`.
    fn of(keys: impl IntoIterator<Item = u64>, occurrence: Option<Occurrence>) -> Self {
        match occurrence {
            None => Self::Everything,
            Some(occurrence) => Self::Keys {
                keys: keys.into_iter().map(shorten).collect(),
                needed: Needed::Bands(occurrence),
            },
        }
    }

    /// Returns whether this search is expected to find fewer candidates than `other`.
    pub fn is_narrower_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (Self::Keys { .. }, Self::Everything) => true,
            (Self::Keys { needed: a, .. }, Self::Keys { needed: b, .. }) => a.least() > b.least(),
            _ => false,
        }
    }
}

/// The operator class of a compared column, with the column's options.
pub trait ComparedClass {
    /// Appends the keys of `value` to `keys`. Returns the value's parameters, and its size unless that is the number of
    /// keys. Keys are compared by position or as sets, depending on the [`Needed`] of a search.
    ///
    /// # Safety
    /// `value` is a datum of the class's type.
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed;

    /// Does the same as [`Self::keys`] for the center of a ball. Returns None if the class makes no keys for such a
    /// center.
    fn keys_of(&self, _center: &Within<'_>, _keys: &mut Vec<u32>) -> Option<Keyed> {
        None
    }

    /// Returns this class if it is [`DocumentClass`], whose keys can be made on any thread, or None.
    fn documents(&self) -> Option<DocumentClass> {
        None
    }

    /// Returns the search for a condition of the class, and the parameters of `query`.
    ///
    /// # Safety
    /// `query` is a datum of the right operand's type, for the class's operator with this `strategy`.
    unsafe fn search(&self, strategy: u16, query: pg_sys::Datum) -> (KeySearch, ValueParameters) {
        let ball = Ball::from_raw(query);
        let search = self.search_for(strategy, &ball.read());
        search.unwrap_or((KeySearch::Nothing, OF_OTHER_KIND))
    }

    /// Returns the search for values that match `ball` by the operator with this `strategy`, and the center's
    /// parameters. Returns None for a center of another kind.
    fn search_for(&self, strategy: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)>;

    /// Returns a function that decides whether a value conflicts with `query`, if a constraint check must return only
    /// conflicting rows: PostgreSQL computes the key of each returned row in memory that it frees only at the end.
    /// Returns None if that does not matter.
    ///
    /// # Safety
    /// `query` and every value are datums of the class's type. `query` outlives the result.
    unsafe fn decide(&self, _query: pg_sys::Datum) -> Option<Box<dyn Fn(pg_sys::Datum) -> bool>> {
        None
    }

    /// Returns the bound for which the class makes keys, or None if it makes them for every bound. Values of a class with
    /// a bound have a distance.
    fn own_bound(&self) -> Option<Bound> {
        None
    }

    /// Returns the minimum distance from `center` of values that share `shared` of the center's keys. The minimum never
    /// exceeds the result of the distance operator.
    fn least_distance(&self, _center: &Within<'_>, _shared: usize) -> f64 {
        0.0
    }

    /// Describes `parameters` in words.
    fn describe(&self, parameters: &ValueParameters) -> String;
}

/// The number of the support function that tests whether two values are similar. It is never called; it identifies the
/// class, whatever its name and schema.
pub const PREDICATE_FUNCTION: u16 = 1;

/// The number of the support function that declares the options.
pub const OPTIONS_FUNCTION: u16 = 2;

/// The number of the support function that hashes values of a scope column whose type has no operator
/// class for hash indexes: (value, salt bigint) -> bigint.
pub const HASH_FUNCTION: u16 = 3;

/// The number of support functions.
pub const FUNCTIONS: u16 = 3;

/// The strategy of `<@` for signatures and bit strings, and of `<%`.
pub const CONTAINED: u16 = 1;

/// The strategy of `=` for scope columns.
pub const EQUAL: u16 = 4;

/// The strategy of `%>`.
pub const CONTAINS: u16 = 5;

/// The strategy of `<%>`, and of `<@` for documents.
pub const RESEMBLES: u16 = 6;

/// The number of strategies. Strategy 2 is the distance, for ORDER BY; strategy 3 is `%`.
pub const STRATEGIES: u16 = RESEMBLES;
