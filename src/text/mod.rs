//! Functions of documents themselves: shingles, exact measures, samples, boilerplate, alignment.

pub mod align;
pub mod boilerplate;
pub mod measures;
pub mod shingles;
