//! Planner support: the conditions that an index serves, and the number of rows that they keep.
#![allow(
    clippy::disallowed_methods,
    reason = "an entry an index of the table, or a condition"
)]

mod condition;
mod constraint;
pub mod hook;
mod selectivity;
pub mod support;
