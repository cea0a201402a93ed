//! Bands: keys such that similar documents share some of them, and how often they do.
//!
//! - [`Occurrence`]: how many keys must be shared, for all kinds of keys;
//! - [`Bands`]: the pigeonhole over all slots of a MinHash signature, whose answers are exact; or the b bands of r
//!   rows of the literature, whose answers are probable;
//! - [`element_key`]: the keys of a set, for lookups of sets that contain a share of its elements;
//! - [`HammingBlocks`]: the pigeonhole over the blocks of a bit string, exact again;
//! - [`ShingleKeys`]: the keys of documents, all of short ones, a sample of long ones, with [`Levels`] of samples;
//! - [`Scope`]: keys of rows that are compared only within a group such as a tenant;
//! - [`curve`]: the S-curve of classic bands, and the choice of (b, r);
//! - [`plan`]: the bands that find all similar pairs of a collection.

pub mod curve;
mod element;
mod hamming;
mod key;
mod levels;
pub mod occurrence;
mod pigeonhole;
pub mod plan;
mod scope;
mod shingles;
mod tail;

pub use curve::{LshParams, lsh_params, lsh_probability};
pub use element::element_key;
pub use hamming::{HammingBlocks, MAX_BLOCKS, MAX_KEYS};
pub use key::{band_hash, band_hashes, band_keys, header_digest};
pub use levels::{Levels, RowSize};
pub use occurrence::Occurrence;
pub use pigeonhole::Bands;
pub use scope::Scope;
pub use shingles::{
    ContainmentSearch, DocumentSearch, FEWEST_KEYS, MOST_KEYS, ShingleKeys, USUAL_KEYS,
};
