//! SimHash and the Hamming distance of bit strings.

pub mod aggregate;
pub mod functions;
pub mod hamming;
