//! Rows that are added one by one, of every kind that a query of `near_dup_clusters` may yield.

use crate::collection::bit_strings::BitStrings;
use crate::collection::documents::DocumentKind;
use crate::collection::matches::{Matches, Visit};
use crate::collection::reading::Collection;
use crate::collection::signing::Waiting;
use crate::index::kind::Bound;
use neardup::shingle::Shingling;
use pgrx::{IntoDatum, pg_sys};

/// Rows under numbers as keys, with the values that are compared.
pub enum Gathered {
    BitStrings(BitStrings),
    /// Signatures.
    Signed(Collection),
    /// Sets, which are signed.
    Sets(Collection),
    /// Documents, which are signed.
    Documents(Collection, Box<Waiting>),
}

impl Gathered {
    /// Returns room for values that are near each other within a bound.
    pub fn new(bound: Bound, signature_type: pg_sys::Oid) -> Self {
        let unsigned = |kind, threshold, shingling| {
            Collection::unsigned(kind, shingling, signature_type, threshold)
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
            Bound::Share(threshold) => Self::Sets(unsigned(
                DocumentKind::HashSet,
                threshold,
                Shingling::default(),
            )),
            Bound::Resemblance(threshold, shingling) => Self::Documents(
                unsigned(DocumentKind::Text, threshold, shingling),
                Box::new(Waiting::new()),
            ),
        }
    }

    /// Adds a row, of a value of the bound's kind.
    pub fn push(&mut self, number: i64, value: Option<pg_sys::Datum>) {
        let key = number.into_datum();
        match self {
            Self::BitStrings(strings) => strings.push(key, value),
            Self::Signed(collection) => collection.push(key, value, None),
            Self::Sets(collection) => collection.push_unsigned(key, value),
            Self::Documents(collection, waiting) => {
                if waiting.push(key, value) {
                    collection.push_waiting(waiting);
                }
            }
        }
    }

    /// Visits every row that is like another one or itself, with the canonical row of its star cluster.
    pub fn for_each_in_star(self, visit: Visit<'_>) {
        let collection = match self {
            Self::BitStrings(mut strings) => return strings.for_each_in_star(visit),
            Self::Signed(collection) | Self::Sets(collection) => collection,
            Self::Documents(mut collection, mut waiting) => {
                collection.push_waiting(&mut waiting);
                collection
            }
        };
        if let Some(mut matches) = Matches::of(collection) {
            matches.for_each_in_star(visit);
        }
    }
}
