//! Functions on documents themselves: shingles, exact measures, samples, boilerplate, alignment, parts.

pub mod align;
pub mod boilerplate;
pub mod measures;
pub mod passages;
pub mod shingles;
