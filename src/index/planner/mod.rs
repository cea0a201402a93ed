//! What the planner is told: which conditions an index serves, and how many rows they keep.

mod comparison;
pub mod hook;
mod selectivity;
pub mod support;
