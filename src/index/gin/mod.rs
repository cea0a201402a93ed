//! The GIN operator classes `minhash_ops` and `hamming_ops`.

pub mod hamming;
pub mod minhash;
pub mod support;
