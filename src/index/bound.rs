//! The bound of a ball, for each kind of similarity.

use neardup::shingle::Shingling;

/// The bound of a ball: the minimum similarity, resemblance or share, or the maximum distance.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    Threshold(f64),
    Distance(u32),
    Share(f64),
    /// The minimum resemblance, or share of one document in the other, and how documents are cut into shingles.
    Resemblance(f64, Shingling),
}
