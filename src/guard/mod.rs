//! The trigger `near_dup_guard`, which lets no near-duplicate into a table.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "an entry a key, column, partition or index"
)]

mod check;
mod columns;
mod locks;
pub mod options;
mod passing;
pub mod places;
mod protect;
mod refusal;
pub mod row;
pub mod search;
pub mod table;
mod trigger;
mod version;
mod window;
