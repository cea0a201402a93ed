//! Passages that stand in more than one place: every maximal repeat of a collection.
//!
//! ```text
//! documents -> fingerprints -> windows -> boundaries -> batches -> symbols -> tree -> places -> passages
//!     -> listing
//! ```
//!
//! A **passage** is a run of at least `min_words` words, folded like the words of shingles, with at least two places
//! in the collection. The word before it differs between some of its places, and so does the word after it. Places
//! of one passage may overlap; no passage reaches beyond the end of a document. This is a maximal repeat in the
//! sense of suffix trees, and all of them are found:
//!
//! 1. Every window of `min_words` words has an anchor, its first smallest k-gram hash (winnowing:
//!    Schleimer, Wilkerson, Aiken, SIGMOD 2003). Equal windows have equal anchors, so a window whose
//!    anchor's hash occurs at no other anchor is dropped: it does not repeat.
//! 2. The other windows are sorted by their hashes. A window is a **boundary** if the word before it, or the word
//!    after it, differs between its places. A passage begins with a boundary of the first kind and ends with one of
//!    the second. After a window that is no boundary, the text continues everywhere in the same way.
//! 3. So each document becomes a sequence of its boundaries, which is short, and the maximal repeats of these
//!    sequences are the passages. Their suffix tree has one node for each. Documents that share no boundary,
//!    directly or through others, have separate trees, made one after the other.
//!
//! Any thread can read documents, and search windows and batches ([`DocumentReader::winnow`], [`Repeated::find`],
//! [`Repeated::boundaries`], [`PassageSearch::places`], [`Listing::locate`]). Between these steps, one thread
//! collects their results in any order and sorts them ([`Fingerprints`], [`WindowCandidates`], [`Numbering`]).
//!
//! Windows and words are taken for the same if their 64-bit hashes are equal.
#![allow(clippy::disallowed_methods, reason = "reserved before")]

mod batches;
mod boundaries;
mod comparison;
mod cut;
mod file;
mod fingerprints;
mod listing;
mod numbering;
mod parts;
mod place;
mod places;
mod repeated;
mod series;
mod sort;
mod symbols;
mod tree;
mod window_candidates;
mod windows;
mod winnowing;

pub use batches::{Batches, BoundaryBatch};
pub use boundaries::Boundaries;
pub use comparison::PlaceComparison;
pub use cut::cut;
pub use file::Scratch;
pub use fingerprints::Fingerprints;
pub use listing::{DocumentTexts, Listed, Listing, Located};
pub use numbering::{Numbering, Passages};
pub use parts::WindowPart;
pub use place::{PassagePlace, VisitPlace};
pub use places::{PassagePlaces, PassageSearch};
pub use repeated::{FoundWindows, Repeated};
pub use window_candidates::WindowCandidates;
pub use windows::Hashes;
pub use winnowing::{DocumentReader, Winnowed};

use crate::Result;
use crate::error::within;

/// The greatest value of `min_words`.
pub const MAX_MIN_WORDS: usize = 1 << 16;

/// # Errors
/// `Invalid` unless 1 <= `min_words` <= [`MAX_MIN_WORDS`].
pub fn min_words(min_words: i64) -> Result<usize> {
    within("min_words", min_words, 1, MAX_MIN_WORDS as i64).map(|words| words as usize)
}
