//! The trigger `near_dup_guard`, which lets no near-duplicate into a table.
#![allow(
    clippy::disallowed_methods,
    reason = "an entry a key, row, column or partition; pages have at most MAX_OFFSETS rows"
)]

pub mod columns;
pub mod lock;
pub mod lookup;
pub mod options;
pub mod refusal;
pub mod row;
pub mod table;
pub mod trigger;
pub mod verify;
