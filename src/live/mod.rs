//! Clusters that are kept up to date: `near_dup_track`, `near_dup_refresh`, `near_dup_untrack`.
//!
//! Triggers add the keys of changed rows to a queue. A refresh repairs the clusters around these rows.
#![allow(unsafe_op_in_unsafe_fn, reason = "the `# Safety` sections name the callers' obligations")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "texts of statements and lists of columns; memory for rows is reserved in advance"
)]

mod budget;
mod create;
mod find;
mod measure;
mod neighborhood;
mod note;
mod order;
mod queries;
mod rebuild;
mod refresh;
mod rows;
mod state;
mod tables;
mod track;
mod tracked;
mod tracker;
mod triggers;
mod write;
