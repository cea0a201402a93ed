//! Kept clusters: whatever happens to a table, they are those computed from scratch.

mod histories;
mod sessions;

pub use histories::random;
pub use sessions::many_writers;
