//! MinHash by Fast Similarity Sketching, and the estimates from two sketches.
//!
//! Dahlgaard, Knudsen, Thorup, "Fast Similarity Sketching", FOCS 2017 (arXiv 1704.04370).

pub mod combine;
pub mod estimate;
pub mod interval;
pub mod measures;
pub mod signature;
pub mod sketch;

pub use crate::hash::slot::{MAX_SLOTS, UNFILLED};
pub use estimate::{
    equal_slots_needed, estimate, estimate_stored, is_estimate_between, least_similarity,
    near_duplicates, near_duplicates_stored, similarity,
};
pub use signature::{Header, Signature, SignatureUnit, is_slot_bits};
pub use sketch::{Signing, Sketch};
