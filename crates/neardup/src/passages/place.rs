//! A place of a passage: its document and its range there.

use crate::Result;

/// Takes a place, and the check for interrupts.
pub type Visit<'a, T> = dyn FnMut(&T, &mut dyn FnMut()) -> Result<()> + 'a;

/// A place of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The passage's number, from 1: by its first place, the longer passage first.
    pub passage: u32,
    /// Counted from 0.
    pub document: usize,
    /// The first word, counted from 0 in its document.
    pub word: u64,
    pub words: u64,
    /// All places of the passage, listed or not.
    pub occurrences: u32,
    /// The documents in which they are.
    pub documents: u32,
}
