//! Clusters of similar rows, by transitive closure or as stars around canonical rows; and the order in which pairs
//! are compared.

pub mod live;
mod stars;
mod tiles;
mod union_find;

pub use stars::{Canonicals, SimilarPair, SimilarityOf, stars_of_pairs};
pub use tiles::Tiles;
pub use union_find::UnionFind;
