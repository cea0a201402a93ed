//! Jobs over all rows of a query: pairs, joins, clusters, components, passages, samples.

mod batch;
mod bit_strings;
pub mod clusters;
pub mod compare;
mod containment;
pub mod distinct;
pub mod documents;
pub mod exceptions;
mod form;
pub mod items;
pub mod matches;
mod measured;
mod members;
mod outlines;
pub mod pairs;
mod partners;
pub mod passages;
pub mod reading;
pub mod rows;
pub mod sample_pairs;
pub mod search;
pub mod stars;
pub mod sweep;
pub mod verify;
