//! Rows that are added one by one, of every kind that a query of `near_dup_clusters` may yield.

use crate::collection::bit_strings::BitStrings;
use crate::collection::documents::DocumentKind;
use crate::collection::matches::{Matches, Visit};
use crate::collection::reading::Collection;
use crate::index::kind::Bound;
use neardup::shingle::Shingling;
use pgrx::{IntoDatum, pg_sys};

/// Rows under numbers as keys, with the values that are compared.
pub enum Gathered {
    BitStrings(BitStrings),
    /// Signatures.
    Signed(Collection),
    /// Documents or sets, which are signed.
    Unsigned(Collection),
}

impl Gathered {
    /// Returns room for values that are near each other within a bound.
    pub fn new(bound: Bound, signature_type: pg_sys::Oid) -> Self {
        let unsigned = |kind, threshold, shingling| {
            Self::Unsigned(Collection::unsigned(
                kind,
                shingling,
                signature_type,
                threshold,
            ))
        };
        match bound {
            Bound::Distance(distance) => {
                Self::BitStrings(BitStrings::new(pg_sys::INT8OID, distance))
            }
            Bound::Threshold(threshold) => Self::Signed(Collection::of_types(
                pg_sys::INT8OID,
                signature_type,
                threshold,
            )),
            Bound::Share(threshold) => {
                unsigned(DocumentKind::HashSet, threshold, Shingling::default())
            }
            Bound::Resemblance(threshold, shingling) => {
                unsigned(DocumentKind::Text, threshold, shingling)
            }
        }
    }

    /// Adds a row, of a value of the bound's kind.
    pub fn push(&mut self, number: i64, value: Option<pg_sys::Datum>) {
        let key = number.into_datum();
        match self {
            Self::BitStrings(strings) => strings.push(key, value),
            Self::Signed(collection) => collection.push(key, value, None),
            Self::Unsigned(collection) => collection.push_unsigned(key, value),
        }
    }

    /// Visits every row that is like another one or itself, with the canonical row of its star cluster.
    pub fn for_each_in_star(self, visit: Visit<'_>) {
        match self {
            Self::BitStrings(mut strings) => strings.for_each_in_star(visit),
            Self::Signed(collection) | Self::Unsigned(collection) => {
                if let Some(mut matches) = Matches::of(collection) {
                    matches.for_each_in_star(visit);
                }
            }
        }
    }
}
