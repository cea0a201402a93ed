//! Planner support: the conditions that an index serves, and the number of rows that they keep.
#![allow(clippy::disallowed_methods, reason = "one entry per index of the table or per condition")]

mod condition;
mod constraint;
pub mod hook;
mod selectivity;
pub mod support;
