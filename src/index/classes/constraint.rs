//! The operator class `near_dup_key_ops`: `%` between constraint keys, for exclusion constraints and for
//! lookups through their indexes.
//!
//! It has the keys of `minhash_ops`, `hamming_ops` or `text_ops` at the bound that the index's expression
//! states, the same one for every row.

use super::document::check_threshold;
use super::{
    ComparedClass, DocumentClass, HammingClass, IndexColumn, KeySearch, MinhashClass,
    OF_OTHER_KIND, ValueParameters,
};
use crate::index::ball::{Within, corrupt};
use crate::index::constraint_key::{ConstraintKey, near_dup_key_near};
use crate::index::key_call::KeyCall;
use crate::index::kind::Bound;
use crate::pg::error::raise;
use neardup::bands::MAX_BLOCKS;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The class of the values that the keys of an index hold.
pub enum KeyClass {
    Minhash(MinhashClass),
    Hamming(HammingClass),
    Document(DocumentClass),
}

impl KeyClass {
    pub fn of(column: &IndexColumn) -> Option<Self> {
        Some(match stated_bound(column) {
            Bound::Distance(distance) => {
                let class = HammingClass::new(distance.into());
                Self::Hamming(class.unwrap_or_else(|_| {
                    raise(
                        PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                        &format!(
                            "an index cannot find a Hamming distance of {distance} by its keys"
                        ),
                        &format!("Valid are distances from 0 to {}.", MAX_BLOCKS - 1),
                    )
                }))
            }
            Bound::Threshold(threshold) | Bound::Share(threshold) => {
                Self::Minhash(MinhashClass::new(threshold)?)
            }
            Bound::Resemblance(threshold, shingling) => {
                check_threshold(threshold);
                Self::Document(DocumentClass::new(shingling, threshold, 0)?)
            }
        })
    }
}

impl ComparedClass for KeyClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> ValueParameters {
        // SAFETY: vouched for by the caller.
        let key = unsafe { ConstraintKey::from_raw(value) };
        match (self, key.read()) {
            (Self::Minhash(class), Within::Signature(center, _)) => class.keys_of(&center, keys),
            (Self::Hamming(class), Within::Bits(center, _)) => class.keys_of(center.bits(), keys),
            (Self::Document(class), Within::Document(center)) => class.keys_of(&center, keys),
            _ => corrupt("near_dup_key"),
        }
    }

    unsafe fn search(&self, _strategy: u16, query: pg_sys::Datum) -> (KeySearch, ValueParameters) {
        // SAFETY: vouched for by the caller.
        let key = unsafe { ConstraintKey::from_raw(query) };
        match (self, key.read()) {
            (Self::Minhash(class), Within::Signature(center, threshold)) => {
                class.search_for(&center, threshold.max(class.threshold))
            }
            (Self::Hamming(class), Within::Bits(center, distance)) => {
                class.search_for(center.bits(), distance.min(class.distance()))
            }
            (Self::Document(class), Within::Document(center)) => {
                class.search_for(&center, center.threshold.max(class.threshold))
            }
            _ => (KeySearch::Nothing, OF_OTHER_KIND),
        }
    }

    unsafe fn decide(&self, query: pg_sys::Datum) -> Option<Box<dyn Fn(pg_sys::Datum) -> bool>> {
        let Self::Document(_) = self else {
            return None;
        };
        Some(Box::new(move |value| {
            // SAFETY: vouched for by the caller.
            let [value, query] = unsafe { [value, query].map(|key| ConstraintKey::from_raw(key)) };
            near_dup_key_near(value, query)
        }))
    }

    fn describe(&self, parameters: &ValueParameters) -> String {
        match self {
            Self::Minhash(class) => class.describe(parameters),
            Self::Hamming(class) => class.describe(parameters),
            Self::Document(class) => class.describe(parameters),
        }
    }
}

/// Returns the constant bound in the expression of an index column, a call that makes a key.
///
/// # Errors
/// ERROR `invalid_object_definition` if there is none, or one out of range.
fn stated_bound(column: &IndexColumn) -> Bound {
    let stated = column.expression().and_then(|expression| {
        // SAFETY: an expression of the index.
        unsafe { KeyCall::of(expression)?.terms.bound() }
    });
    stated.unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            "an index of constraint keys needs constants that near_dup_key takes",
            "Index an expression with a constant bound, such as near_dup_key(body, 0.85).",
        )
    })
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_constraint.sql",
    name = "neardup_constraint",
    requires = ["constraint_key", "neardup_access_method"]
);
