//! Two documents side by side: common runs of words, longest common substring, edit distance, and the kind of
//! difference.
//!
//! Every function takes near-linear time and memory, or calls `check` often enough for the caller to cancel it.

mod alignment;
mod characters;
mod chunks;
mod classes;
mod costs;
mod edit;
mod edit_band;
mod explain;
mod information;
mod minima;
mod numbered;
mod pace;
mod segments;
mod substring;
mod suffix_array;
mod suffixes;
mod tiling;
mod words;

pub use chunks::{Chunk, ChunkPlace, Matching, Similarity, chunk_similarity, common_chunks};
pub use costs::{Costs, MAX_COST};
pub use edit::edit_distance;
pub use explain::{DifferenceKind, Explanation, explain};
pub use segments::{Segment, Standing, explain_segments};
pub use substring::longest_common_substring;
pub use suffixes::MAX_UNITS;
