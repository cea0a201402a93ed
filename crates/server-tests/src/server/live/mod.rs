//! Kept clusters: whatever happens to a table, they are those computed from scratch.

mod dump;
mod histories;

pub use dump::restored;
pub use histories::random;
