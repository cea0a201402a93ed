//! Copied and frequent passages according to their definition.

use neardup::text::{Fold, words};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// A word: its folded form, and the range of its bytes in its document.
pub type Word = (String, Range<usize>);

/// The numbers of a document and of a word.
pub type Start = (usize, usize);

fn words_of(document: &str, fold: Fold) -> Vec<Word> {
    let mut found = Vec::new();
    let emit = &mut |word: &str, bytes| {
        found.push((word.to_owned(), bytes));
        Ok(())
    };
    words(document.as_bytes(), fold, &mut || (), emit).unwrap();
    found
}

/// The documents of a collection as words.
pub struct Oracle {
    pub texts: Vec<Vec<Word>>,
    pub min_words: usize,
}

impl Oracle {
    /// Returns a collection whose windows have `min_words` words.
    pub fn new(documents: &[String], min_words: usize, fold: Fold) -> Self {
        let texts = documents.iter().map(|doc| words_of(doc, fold)).collect();
        Self { texts, min_words }
    }

    /// Returns the words of a window, or None if the document has fewer.
    fn window(&self, (document, word): Start) -> Option<Vec<&str>> {
        let words = self.texts[document].get(word..word + self.min_words)?;
        Some(words.iter().map(|word| word.0.as_str()).collect())
    }

    /// Returns all windows in order, each with its first occurrence.
    pub fn windows(&self) -> Vec<(Start, Start)> {
        let (mut firsts, mut windows) = (HashMap::new(), Vec::new());
        for (document, text) in self.texts.iter().enumerate() {
            for word in 0..text.len() {
                let place = (document, word);
                if let Some(window) = self.window(place) {
                    windows.push((place, *firsts.entry(window).or_insert(place)));
                }
            }
        }
        windows
    }

    /// Returns the source of every copied window, according to the definition.
    pub fn sources(&self) -> HashMap<Start, Start> {
        let mut sources: HashMap<Start, Start> = HashMap::new();
        for (place, first) in self.windows() {
            if first.0 == place.0 && first.1 + self.min_words > place.1 {
                continue;
            }
            let before = place.1.checked_sub(1);
            let continued = before
                .and_then(|word| sources.get(&(place.0, word)))
                .map(|source| (source.0, source.1 + 1))
                .filter(|source| self.window(*source) == self.window(place));
            sources.insert(place, continued.unwrap_or(first));
        }
        sources
    }

    /// Returns the rows: place, source, and number of words.
    pub fn rows(&self) -> Vec<(Start, Start, usize)> {
        let sources = self.sources();
        let next = |(document, word)| (document, word + 1);
        let goes_on = |place, source| sources.get(&next(place)) == Some(&next(source));
        let mut rows = Vec::new();
        for (&place, &source) in &sources {
            let (document, word) = place;
            let before = word
                .checked_sub(1)
                .and_then(|word| sources.get(&(document, word)));
            if before.is_some_and(|before| next(*before) == source) {
                continue;
            }
            let (mut last, mut of_last, mut words) = (place, source, self.min_words);
            while goes_on(last, of_last) {
                (last, of_last, words) = (next(last), next(of_last), words + 1);
            }
            rows.push((place, source, words));
        }
        rows.sort();
        rows
    }

    /// Returns the range of the bytes of some words; `starts` says where the documents begin.
    pub fn bytes(&self, (document, word): Start, words: usize, starts: &[u64]) -> Range<u64> {
        let start = starts[document] as usize;
        let words = &self.texts[document][word..word + words];
        let [first, last] = [&words[0], &words[words.len() - 1]];
        (start + first.1.start) as u64..(start + last.1.end) as u64
    }

    /// Returns all passages with their numbers, most frequent first: documents, places, words, first place.
    pub fn frequent(&self) -> Vec<(usize, usize, usize, Start)> {
        let mut classes: HashMap<Start, (BTreeSet<usize>, usize)> = HashMap::new();
        for (place, first) in self.windows() {
            let class = classes.entry(first).or_default();
            let overlaps = first.0 == place.0 && first.1 + self.min_words > place.1;
            if first == place || !overlaps {
                class.0.insert(place.0);
                class.1 += 1;
            }
        }
        let mut repeated: Vec<_> = classes.into_iter().filter(|class| class.1.1 > 1).collect();
        repeated.sort_by_key(|class| class.0);
        // Runs: the first and the last window, their number, the minimum and maximum number of documents, and the
        // places of the window with that maximum.
        let mut runs: Vec<(Start, Start, usize, [usize; 2], usize)> = Vec::new();
        for ((document, word), (documents, places)) in repeated {
            let (window, documents) = ((document, word), documents.len());
            if let Some((_, last, windows, [fewest, most], of_most)) = runs.last_mut() {
                let range = [documents.min(*fewest), documents.max(*most)];
                if (last.0, last.1 + 1) == window && range[1] <= 2 * range[0] {
                    if documents > *most {
                        *of_most = places;
                    }
                    (*last, *windows) = (window, *windows + 1);
                    [*fewest, *most] = range;
                    continue;
                }
            }
            runs.push((window, window, 1, [documents; 2], places));
        }
        let of_run = |run: &(Start, Start, usize, [usize; 2], usize)| {
            let (first, _, windows, [_, most], places) = *run;
            (most, places, windows + self.min_words - 1, first)
        };
        let mut passages: Vec<_> = runs.iter().map(of_run).collect();
        passages.sort_by_key(|passage| {
            let (documents, places, words, first) = *passage;
            let [documents, places, words] =
                [documents, places, words].map(|number| usize::MAX - number);
            (documents, places, first, words)
        });
        passages
    }
}
