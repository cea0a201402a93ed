//! A place of a passage: its document and its range there.

use crate::Result;

/// Receives a place.
pub type VisitPlace<'a, T> = dyn FnMut(&T) -> Result<()> + 'a;

/// A place of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassagePlace {
    /// The passage's number, from 1: passages are in the order of their first places, longer ones first.
    pub passage: u32,
    /// Its document, counted from 0.
    pub document: usize,
    /// The first word, counted from 0 in its document.
    pub word: u64,
    pub words: u64,
    /// The number of places of the passage, listed or not.
    pub occurrences: u32,
    /// The number of documents with such a place.
    pub documents: u32,
}

/// A listed place of a passage. Words are numbered across all documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    /// The first word of the passage's first place, which identifies the passage together with its length.
    pub passage: u64,
    pub words: u64,
    /// True for the passage of a long series, which may begin and end like another passage.
    pub is_series: bool,
    pub first: u64,
    pub occurrences: u32,
    pub documents: u32,
}

/// Returns the document of a word; `starts` are the numbers of the documents' first words.
pub(super) fn document_of(word: u64, starts: &[u64]) -> usize {
    starts.partition_point(|start| *start <= word) - 1
}
