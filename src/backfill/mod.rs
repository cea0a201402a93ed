//! `near_dup_backfill`: fills a column of a table that stays in use.
//!
//! A batch never waits for a row that somebody else has locked, since those that wait for the rows of
//! the batch would wait too: it leaves the row to a later pass.
#![allow(
    clippy::disallowed_methods,
    reason = "texts of statements, and an entry a table"
)]

mod batches;
mod checks;
mod procedure;
