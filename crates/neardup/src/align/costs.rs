//! Costs of edits.

use crate::Result;
use crate::error::within;

/// The highest cost of one edit: distances of the longest documents stay far below 2^63.
pub const MAX_COST: i64 = 1_000_000;

/// Costs of the edits that turn the first document into the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    pub(super) insert: i64,
    pub(super) delete: i64,
    pub(super) substitute: i64,
}

impl Costs {
    /// # Errors
    /// `Invalid` unless every cost is between 0 and [`MAX_COST`].
    pub fn new(insert: i64, delete: i64, substitute: i64) -> Result<Self> {
        for (name, cost) in [
            ("ins_cost", insert),
            ("del_cost", delete),
            ("sub_cost", substitute),
        ] {
            within(name, cost, 0, MAX_COST)?;
        }
        Ok(Self {
            insert,
            delete,
            substitute,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_out_of_range() {
        assert!(Costs::new(0, 0, MAX_COST).is_ok());
        assert!(Costs::new(-1, 1, 1).is_err());
        assert!(Costs::new(1, 1, MAX_COST + 1).is_err());
    }
}
