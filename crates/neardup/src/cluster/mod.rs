//! Clusters of similar rows: by transitive closure, or as stars around canonical rows.

mod components;
mod stars;
mod union_find;

pub use components::connect_group;
pub use stars::Canonicals;
pub use union_find::UnionFind;
