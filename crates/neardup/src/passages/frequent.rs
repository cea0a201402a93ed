//! The most frequent passages.

use super::cursor::Cursor;
use super::place::{Place, Texts};
use super::winnowing::DocumentReader;
use crate::{Result, with_room};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A passage: how often it occurs, its number of words, and the bytes of its first place, numbered across the
/// collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrequentPassage {
    pub documents: u32,
    pub places: u32,
    pub words: u64,
    pub bytes: Range<u64>,
}

/// Collects passages: runs of windows that follow each other in the document where they occur first, and whose
/// numbers of documents differ at most by a factor of two.
pub struct Frequent {
    reader: DocumentReader,
    /// Maximum number of passages to return.
    most: usize,
    run: Option<Run>,
    found: BinaryHeap<Reverse<Found>>,
}

/// Documents, places, the first window (earlier ones are better), and the number of windows.
type Found = (u32, u32, Reverse<Place>, u64);

/// A run of windows.
struct Run {
    first: Place,
    windows: u64,
    /// The minimum and maximum number of documents of a window.
    documents: [u32; 2],
    /// The places of the window with the most documents.
    places: u32,
    /// Reads the first words of the windows in turn; `next` is the place of the next window's first word.
    cursor: Cursor,
    next: Option<Place>,
}

impl Frequent {
    /// Returns a collector of at most `most` passages.
    pub fn new(reader: DocumentReader, most: usize) -> Self {
        Self {
            reader,
            most,
            run: None,
            found: BinaryHeap::new(),
        }
    }

    /// Adds a window that occurs two or more times, with its numbers of documents and places. Windows come in the order
    /// of their first places.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(
        &mut self,
        (window, documents, places): (Place, u32, u32),
        texts: &mut dyn Texts,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        let goes_on = |run: &Run| {
            let [fewest, most] = run.documents;
            run.next == Some(window) && most.max(documents).div_ceil(2) <= fewest.min(documents)
        };
        if !self.run.as_ref().is_some_and(goes_on) {
            self.end_run()?;
            let mut cursor = Cursor::new(self.reader.fold, window, texts);
            cursor.next(texts, check)?;
            self.run = Some(Run {
                first: window,
                windows: 0,
                documents: [documents; 2],
                places,
                cursor,
                next: None,
            });
        }
        if let Some(run) = &mut self.run {
            run.windows += 1;
            if documents > run.documents[1] {
                run.places = places;
            }
            let [fewest, most] = run.documents;
            run.documents = [fewest.min(documents), most.max(documents)];
            let next = run.cursor.next(texts, check)?;
            run.next = next.map(|(word, _)| word.place);
        }
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else {
            return Ok(());
        };
        let (documents, first) = (run.documents[1], Reverse(run.first));
        self.found.try_reserve(1)?;
        self.found
            .push(Reverse((documents, run.places, first, run.windows)));
        if self.found.len() > self.most {
            self.found.pop();
        }
        Ok(())
    }

    /// Returns the passages, the most frequent first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn passages(
        mut self,
        texts: &mut dyn Texts,
        check: &mut dyn FnMut(),
    ) -> Result<Vec<FrequentPassage>> {
        self.end_run()?;
        let mut passages = with_room(self.found.len())?;
        for Reverse((documents, places, Reverse(first), windows)) in self.found.into_sorted_vec() {
            let words = windows + self.reader.min_words as u64 - 1;
            let mut cursor = Cursor::new(self.reader.fold, first, texts);
            let mut bytes = first.byte()..first.byte();
            for _ in 0..words {
                if let Some((word, _)) = cursor.next(texts, check)? {
                    bytes.end = word.end;
                }
            }
            passages.push(FrequentPassage {
                documents,
                places,
                words,
                bytes,
            });
        }
        Ok(passages)
    }
}
