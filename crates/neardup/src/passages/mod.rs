//! Copies of earlier passages, each with its source.
//!
//! ```text
//! documents -> fingerprints -> windows -> classes -> copies -> rows
//! ```
//!
//! A *window* is a run of `min_words` words of a document, folded like the words of shingles. It is a copy if an
//! equal window begins earlier in the collection and ends before it begins. Its source is the place after the source
//! of the window before it, if that holds the same words; otherwise its first occurrence. Windows whose sources
//! follow each other make up one row, as in LZ77 (Ziv, Lempel 1977). So a word is in a row if and only if it is in a
//! copied window, and there is at most one row for each window, however often a passage repeats.
//!
//! 1. Every window has an anchor, its first smallest k-gram hash (winnowing: Schleimer, Wilkerson, Aiken, SIGMOD
//!    2003). Equal windows have equal anchors, so a window whose anchor's hash occurs at no other anchor does not
//!    repeat ([`DocumentReader::winnow`], [`DocumentReader::windows`]).
//! 2. The other windows are divided by their hashes. Those that have one hash are a class ([`Classes`]).
//! 3. The copies are sorted by their places, and their words compared with those of their sources, which shows how
//!    far each row reaches ([`Copies`]).
//!
//! Windows are grouped by 64-bit hashes, but a row is returned only after its words have been compared.
#![allow(clippy::disallowed_methods, reason = "reserved in advance")]

mod characters;
mod classes;
mod copies;
mod cursor;
mod cut;
mod frequent;
mod place;
mod windows;
mod winnowing;

pub use characters::Characters;
pub use classes::{Classes, Member};
pub use copies::{CopiedPassage, Copies};
pub use cut::cut;
pub use frequent::{Frequent, FrequentPassage};
pub use place::{Place, Texts};
pub use windows::Hashes;
pub use winnowing::{DocumentReader, Window, Winnowed};

use crate::Result;
use crate::error::within;

/// Maximum value of `min_words`.
pub const MAX_MIN_WORDS: usize = 1 << 16;

/// Checks and returns the number of words of a window.
///
/// # Errors
/// `Invalid` unless 1 <= `min_words` <= [`MAX_MIN_WORDS`].
pub fn min_words(min_words: i64) -> Result<usize> {
    within("min_words", min_words, 1, MAX_MIN_WORDS as i64).map(|words| words as usize)
}
