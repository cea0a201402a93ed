//! The operator class `set_ops`: `bigint[] %> _ball`, `bigint[] <% _ball` and `bigint[] <%> _ball`.
//!
//! Every element makes a key, so one index serves every threshold: a row that contains a share of the query has that
//! share of the query's keys. The row table stores the number of elements of each row.

use super::{CONTAINS, ComparedClass, KeySearch, Keyed, RESEMBLES, ValueParameters};
use crate::index::ball::Within;
use crate::pg::arrays::Bigints;
use crate::pg::prelude::*;
use neardup::bands::{Occurrence, element_key};
use neardup::postings::Needed;

pub struct SetClass;

/// The parameters of every set: all sets are comparable.
const PARAMETERS: ValueParameters = [0; 16];

fn add_keys(elements: &[i64], keys: &mut Vec<u32>) {
    let of_elements = elements.iter().copied().map(element_key);
    keys.try_extend(of_elements).or_raise();
}

impl ComparedClass for SetClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed {
        let array = Bigints::from_raw(value);
        add_keys(&array.set(), keys);
        (PARAMETERS, None)
    }

    fn search_for(&self, strategy: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)> {
        let Within::Set(elements, share) = ball else {
            return None;
        };
        let Some(occurrence) = Occurrence::contained(elements.len(), *share) else {
            return Some((KeySearch::Nothing, PARAMETERS));
        };
        let needed = match strategy {
            CONTAINS => Needed::Elements(occurrence.needed),
            // A Jaccard similarity of `share` implies that the row contains at least this share of the query.
            RESEMBLES => Needed::Resembling {
                similarity: *share,
                members: elements.len(),
                least: occurrence.needed,
                levels: None,
            },
            _ => Needed::OwnShare {
                share: *share,
                members: elements.len(),
                // Sets are not sampled.
                sampled: 1,
            },
        };
        let mut keys = Vec::new();
        add_keys(elements, &mut keys);
        Some((KeySearch::Keys { keys, needed }, PARAMETERS))
    }

    fn describe(&self, _parameters: &ValueParameters) -> String {
        String::from("a set")
    }
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_set.sql",
    name = "neardup_set",
    requires = ["ball", near_dup_of_sets, "neardup_access_method"]
);
