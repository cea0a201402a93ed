//! Answers to the planner: the conditions that an index serves, and the rows that they keep.

mod comparison;
mod constraint;
pub mod hook;
mod selectivity;
mod sets;
pub mod support;
