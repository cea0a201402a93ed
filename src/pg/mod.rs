//! Bindings to PostgreSQL that any extension could use: errors, arguments and results, queries, sorting, the catalog.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the `# Safety` sections name the callers' obligations"
)]

pub mod aggregate;
pub mod arrays;
pub mod bits;
pub mod call;
pub mod catalog;
pub mod checked;
pub mod condition;
pub mod conversion;
pub mod encoding;
pub mod error;
pub mod helpers;
pub mod memo;
pub mod memory;
pub mod multirange;
pub mod names;
pub mod nodes;
pub mod partitions;
pub mod prefetch;
pub mod prelude;
pub mod progress;
pub mod query;
pub mod relation;
pub mod report;
pub mod rights;
pub mod settings;
pub mod slot;
pub mod sort;
pub mod spool;
pub mod srf;
pub mod statement;
pub mod stored_texts;
pub mod temporary_file;
pub mod text;
pub mod tsvector;
pub mod value;
pub mod varlena;
pub mod version;
