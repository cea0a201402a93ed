//! Near-duplicate detection, as a pipeline in which data flows one way:
//!
//! ```text
//! text -> fold -> words -> shingles -> set -> signature -> bands -> candidates -> verify -> pairs -> clusters
//! ```
//!
//! The modules are listed in this order. Each imports only from the modules above it and from the foundations, which
//! are listed in the order of their imports, too.
//!
//! Foundations:
//! - [`error`]: the ways in which a request can fail;
//! - [`memory`]: allocation that can fail;
//! - [`bisect`]: the first number with a property;
//! - [`parts`]: lists of any length, stored end to end;
//! - [`numbered`]: distinct texts and their numbers;
//! - [`hash`]: keyed hashes of tokens and shingles, and the slots that they go to;
//! - [`kernels`]: the inner loops, for every processor and for vector instructions, and the only `unsafe` code.
//!
//! From documents to clusters:
//! - [`text`]: decoding, folding and words;
//! - [`set`]: sets of hashes: measures, samples, supershingles;
//! - [`shingle`]: k-shingles of a document, their hashes and fingerprints;
//! - [`minhash`]: signatures of sets and estimates from them;
//! - [`arguments`]: checks of arguments that several interfaces take;
//! - [`simhash`]: fingerprints of weighted terms;
//! - [`hamming`]: the distance of bit strings;
//! - [`bands`]: keys that similar values share, and how many;
//! - [`postings`]: keys and rows on pages: which rows of an index share enough keys with a query;
//! - [`candidates`]: the pairs of a collection that share enough keys;
//! - [`cluster`]: connected components and stars of similar rows;
//! - [`align`]: the common text of two documents, and its places;
//! - [`passages`]: text that occurs in several places of a collection;
//! - [`strata`]: pairs to label, spread over all similarities.
//!
//! No database, no I/O.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod align;
pub mod arguments;
pub mod bands;
pub mod bisect;
pub mod candidates;
pub mod cluster;
pub mod error;
pub mod hamming;
pub mod hash;
pub mod kernels;
pub mod memory;
pub mod minhash;
pub mod numbered;
pub mod parts;
pub mod passages;
pub mod postings;
pub mod set;
pub mod shingle;
pub mod simhash;
pub mod strata;
pub mod text;

pub use error::{Error, Result, quoted, unknown};
pub use memory::{Grow, collected, copied, filled, with_room};
