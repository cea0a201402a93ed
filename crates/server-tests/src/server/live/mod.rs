//! Kept clusters: whatever happens to a table, they are those computed from scratch.

mod dump;
mod histories;
mod sessions;

pub use dump::restored;
pub use histories::random;
pub use sessions::many_writers;
