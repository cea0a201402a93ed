//! Costs of edits.

use crate::Result;
use crate::error::within;

/// Maximum cost of one edit. It keeps the distances of the longest documents far below 2^63.
pub const MAX_COST: i64 = 1_000_000;

/// Costs of the edits that turn the first document into the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    pub(super) insert: i64,
    pub(super) delete: i64,
    pub(super) substitute: i64,
}

impl Costs {
    /// Returns the costs of inserting, deleting and substituting a character.
    ///
    /// # Errors
    /// `Invalid` unless every cost is between 0 and [`MAX_COST`].
    pub fn new(insert: i64, delete: i64, substitute: i64) -> Result<Self> {
        within("ins_cost", insert, 0, MAX_COST)?;
        within("del_cost", delete, 0, MAX_COST)?;
        within("sub_cost", substitute, 0, MAX_COST)?;
        Ok(Self {
            insert,
            delete,
            substitute,
        })
    }
}
