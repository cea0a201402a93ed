//! The type `minhash_signature`: how signatures are made, compared, merged and cut into bands.

pub mod aggregates;
pub mod bands;
pub mod datum;
pub mod document;
pub mod forms;
pub mod incomparable;
pub mod measures;
pub mod sets;
pub mod signature;
pub mod similarity;
