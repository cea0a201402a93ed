//! The operator class `near_dup_key_ops`: `%` between constraint keys, for exclusion constraints and for
//! lookups through their indexes.
//!
//! The class has the keys of `minhash_ops`, `hamming_ops` or `text_ops` for the bound stated in the index's expression,
//! which is the same for every row.

use super::{
    ComparedClass, DocumentClass, HammingClass, IndexColumn, KeySearch, Keyed, MinhashClass,
    OF_OTHER_KIND, ValueParameters,
};
use crate::index::ball::{Within, corrupt};
use crate::index::bound::Bound;
use crate::index::constraint_key::{ConstraintKey, near_dup_key_near};
use crate::index::key_call::KeyCall;
use crate::pg::prelude::*;
use neardup::bands::{MAX_BLOCKS, USUAL_KEYS};

/// The class of the values in an index's constraint keys, and the bound that they all have.
pub struct KeyClass {
    class: Box<dyn ComparedClass>,
    bound: Bound,
}

impl KeyClass {
    pub fn of(column: &IndexColumn) -> Option<Self> {
        let bound = stated_bound(column);
        let class: Box<dyn ComparedClass> = match bound {
            Bound::Distance(distance) => {
                let class = HammingClass::new(distance.into());
                Box::new(class.unwrap_or_else(|_| {
                    raise(
                        PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                        &format!(
                            "an index cannot find a Hamming distance of {distance} by its keys"
                        ),
                        &format!("Valid distances are 0 to {}.", MAX_BLOCKS - 1),
                    )
                }))
            }
            Bound::Threshold(threshold) | Bound::Share(threshold) => {
                Box::new(MinhashClass::new(threshold)?)
            }
            Bound::Resemblance(_, shingling) => {
                Box::new(DocumentClass::new(shingling, USUAL_KEYS, 0)?)
            }
        };
        Some(Self { class, bound })
    }
}

impl ComparedClass for KeyClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed {
        let key = ConstraintKey::from_raw(value);
        let keyed = self.class.keys_of(&key.read(), keys);
        keyed.unwrap_or_else(|| corrupt("near_dup_key"))
    }

    /// Returns the search within the stricter of the query's bound and the index's own, because each key must be within
    /// the other key's bound.
    unsafe fn search(&self, strategy: u16, query: pg_sys::Datum) -> (KeySearch, ValueParameters) {
        let key = ConstraintKey::from_raw(query);
        let mut center = key.read();
        match (&mut center, self.bound) {
            (Within::Signature(_, bound), Bound::Threshold(own)) => *bound = bound.max(own),
            (Within::Bits(_, bound), Bound::Distance(own)) => *bound = own.min(*bound),
            (Within::Document(center), Bound::Resemblance(own, _)) => {
                center.threshold = center.threshold.max(own);
            }
            _ => {}
        }
        let search = self.search_for(strategy, &center);
        search.unwrap_or((KeySearch::Nothing, OF_OTHER_KIND))
    }

    fn search_for(&self, strategy: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)> {
        self.class.search_for(strategy, ball)
    }

    unsafe fn decide(&self, query: pg_sys::Datum) -> Option<Box<dyn Fn(pg_sys::Datum) -> bool>> {
        let Bound::Resemblance(..) = self.bound else {
            return None;
        };
        Some(Box::new(move |value| {
            let [value, query] = [value, query].map(|key| ConstraintKey::from_raw(key));
            near_dup_key_near(value, query)
        }))
    }

    fn describe(&self, parameters: &ValueParameters) -> String {
        self.class.describe(parameters)
    }
}

/// Returns the constant bound in the expression of `column`, a call to `near_dup_key`.
///
/// # Errors
/// ERROR `invalid_object_definition` if the expression has no constant bound, or if the bound is out of range.
fn stated_bound(column: &IndexColumn) -> Bound {
    let stated = column.expression().and_then(|expression| {
        // SAFETY: an expression of the index.
        unsafe { KeyCall::of(expression)?.terms.bound() }
    });
    stated.unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            "an index on constraint keys needs constants that near_dup_key accepts",
            "Index an expression with a constant bound, such as near_dup_key(body, 0.85).",
        )
    })
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_constraint.sql",
    name = "neardup_constraint",
    requires = ["constraint_key", "neardup_access_method"]
);
