//! PostgreSQL for any extension: errors, arguments and results, queries, sorting, the catalog.

pub mod aggregate;
pub mod arrays;
pub mod bits;
pub mod call;
pub mod catalog;
pub mod error;
pub mod helpers;
pub mod memo;
pub mod memory;
pub mod multirange;
pub mod nodes;
pub mod numbers;
pub mod progress;
pub mod query;
mod query_errors;
pub mod record;
pub mod relation;
pub mod sort;
pub mod spool;
pub mod srf;
pub mod stored_texts;
pub mod text;
pub mod tsvector;
pub mod value;
pub mod value_sort;
pub mod varlena;
pub mod version;
