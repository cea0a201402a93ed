//! A place of a passage: its document and its range there.

use crate::Result;

/// Takes a place.
pub type VisitPlace<'a, T> = dyn FnMut(&T) -> Result<()> + 'a;

/// A place of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassagePlace {
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

/// A place of a passage that is listed. Words are numbered in all documents together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    /// The first word of the passage's first place: with its length it tells passages apart.
    pub passage: u64,
    pub words: u64,
    /// True for the passage of a long series, which may begin and end as another one does.
    pub is_series: bool,
    pub first: u64,
    pub occurrences: u32,
    pub documents: u32,
}

/// Returns the document of a word, by the numbers of the documents' first words.
pub(super) fn document_of(word: u64, starts: &[u64]) -> usize {
    starts.partition_point(|start| *start <= word) - 1
}
