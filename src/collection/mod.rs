//! Jobs over all rows of a query: pairs, joins, clusters, components, passages.

pub mod clusters;
pub mod components;
pub mod hamming_pairs;
pub mod items;
pub mod matches;
pub mod pairs;
pub mod passages;
pub mod reading;
pub mod search;
pub mod verify;
