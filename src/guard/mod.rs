//! The trigger `near_dup_guard`, which rejects near-duplicates of a table's rows, or notes them.
#![allow(unsafe_op_in_unsafe_fn, reason = "the `# Safety` sections name the callers' obligations")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "one entry per key, column, partition or index"
)]

pub mod columns;
mod found;
mod locks;
mod looking;
mod notes;
pub mod options;
pub mod pair_table;
mod passing;
pub mod places;
mod protect;
mod rejection;
mod row;
pub mod row_condition;
pub mod search;
pub mod table;
pub mod window;
