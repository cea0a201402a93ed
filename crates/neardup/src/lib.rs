//! Near-duplicate detection, as a pipeline in which data flows one way:
//!
//! ```text
//! text -> fold -> words -> shingles -> set -> signature -> bands -> candidates -> verify -> pairs -> clusters
//! ```
//!
//! Each arrow is one module. No database, no I/O.
#![deny(unsafe_code)]

pub mod advise;
pub mod align;
pub mod bands;
pub mod candidates;
pub mod cluster;
pub mod error;
pub mod hamming;
pub mod kernels;
pub mod minhash;
pub mod plan;
pub mod set;
pub mod shingle;
pub mod simhash;
pub mod text;

pub use error::{Error, Result, quoted};
