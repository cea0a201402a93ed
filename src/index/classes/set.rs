//! The operator class `set_ops`: `bigint[] %> _ball`, `bigint[] <% _ball` and `bigint[] <%> _ball`.
//!
//! The keys are those of all elements, so that one index serves every threshold: rows that contain a
//! share of the query share that many of the query's keys, and how many elements rows have themselves
//! the row table knows.

use super::{CONTAINS, Class, Column, OF_OTHER_KIND, Order, Parameters, RESEMBLES, Search};
use crate::index::ball::{Ball, Within};
use crate::pg::arrays::Bigints;
use crate::pg::error::OrRaise;
use neardup::bands::{Occurrence, element_key};
use neardup::memory::Grow;
use neardup::postings::Needed;
use pgrx::pg_sys;

struct SetClass;

/// All sets compare.
const PARAMETERS: Parameters = [0; 16];

fn add_keys(elements: &[i64], keys: &mut Vec<u32>) {
    let of_elements = elements.iter().copied().map(element_key);
    keys.try_extend(of_elements).or_raise();
}

impl Class for SetClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Parameters {
        // SAFETY: vouched for by the caller.
        let array = unsafe { Bigints::from_raw(value) };
        add_keys(&array.set(), keys);
        PARAMETERS
    }

    unsafe fn search(&self, strategy: u16, query: pg_sys::Datum) -> (Search, Parameters) {
        // SAFETY: vouched for by the caller.
        let ball = unsafe { Ball::from_raw(query) };
        let Within::Set(elements, share) = ball.read() else {
            return (Search::Nothing, OF_OTHER_KIND);
        };
        let Some(occurrence) = Occurrence::contained(elements.len(), share) else {
            return (Search::Nothing, PARAMETERS);
        };
        let needed = match strategy {
            CONTAINS => Needed::Elements(occurrence.needed()),
            // Of all that two sets have together a share is at least that share of one of them.
            RESEMBLES => Needed::Resembling {
                similarity: share,
                members: elements.len(),
                least: occurrence.needed(),
            },
            _ => Needed::OwnShare(share),
        };
        let mut keys = Vec::new();
        add_keys(&elements, &mut keys);
        (Search::Keys { keys, needed }, PARAMETERS)
    }

    unsafe fn order(&self, _query: pg_sys::Datum) -> Option<Box<dyn Order>> {
        None
    }

    fn describe(&self, _parameters: &Parameters) -> String {
        String::from("a set")
    }
}

/// Opens a column of the class.
pub fn open(_column: &Column) -> Option<Box<dyn Class>> {
    Some(Box::new(SetClass))
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_set.sql",
    name = "neardup_set",
    requires = ["ball", "measures", "neardup_access_method"]
);
