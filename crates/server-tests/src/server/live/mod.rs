//! Kept clusters: whatever happens to a table, they equal the clusters computed from scratch.

mod altered;
mod dump;
mod histories;

pub use altered::{altered, altered_while_refreshed, forged, unnoted, untracked_while_refreshed};
pub use dump::restored;
pub use histories::random;
