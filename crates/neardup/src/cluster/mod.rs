//! Clusters of similar rows: by transitive closure, or as stars around canonical rows; and the order in
//! which pairs are compared.

mod components;
pub mod live;
mod pair_stars;
mod shared_sets;
mod stars;
mod tiles;
mod union_find;

pub use components::connect_group;
pub use pair_stars::{SimilarPair, stars_of_pairs};
pub use shared_sets::SharedSets;
pub use stars::{Canonicals, SimilarityOf};
pub use tiles::Tiles;
pub use union_find::UnionFind;
