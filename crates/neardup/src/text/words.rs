//! The word rule, applied to a folded text.

use super::fold::FoldedText;
use super::properties::WordClass;
use crate::Result;
use crate::memory::{FirstError, GrowText};
use std::ops::Range;

/// Takes the words of a text.
pub(crate) trait WordSink {
    /// A word, and the bytes of the document that it was made from.
    fn word(&mut self, text: &str, source: Range<usize>);
    /// See [`FoldedText::check`].
    fn check(&mut self);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WordState {
    Outside,
    InWord,
    /// After a code point that is a word by itself.
    Alone,
}

/// Joins the code points of a folded text into words.
pub(crate) struct Words<W> {
    sink: W,
    state: WordState,
    word: String,
    source: Range<usize>,
    /// Set when a word does not fit into memory; [`Words::finish`] returns it.
    error: FirstError,
}

impl<W: WordSink> Words<W> {
    pub fn new(sink: W) -> Self {
        Self {
            sink,
            state: WordState::Outside,
            word: String::new(),
            source: 0..0,
            error: FirstError::default(),
        }
    }

    /// Ends the text, and returns the sink.
    ///
    /// # Errors
    /// `OutOfMemory`, if a word was too long; parts of it are missing.
    pub fn finish(mut self) -> Result<W> {
        self.end_word();
        self.error.into_result()?;
        Ok(self.sink)
    }

    /// Ends the word that the text was in.
    #[inline]
    fn end_word(&mut self) {
        if self.state != WordState::Outside {
            self.sink.word(&self.word, self.source.clone());
            self.word.clear();
            self.state = WordState::Outside;
        }
    }

    #[inline]
    fn begin_word(&mut self, state: WordState, start: usize) {
        self.end_word();
        self.state = state;
        self.source.start = start;
    }

    #[inline]
    fn append(&mut self, c: char, source: Range<usize>) {
        self.source.end = source.end;
        let word = &mut self.word;
        self.error.run(|| word.try_push(c));
    }
}

impl<W: WordSink> FoldedText for Words<W> {
    #[inline]
    fn put(&mut self, c: char, class: WordClass, source: Range<usize>) {
        match class {
            WordClass::Letter => {
                if self.state != WordState::InWord {
                    self.begin_word(WordState::InWord, source.start);
                }
                self.append(c, source);
            }
            WordClass::Alone => {
                self.begin_word(WordState::Alone, source.start);
                self.append(c, source);
            }
            WordClass::Mark if self.state != WordState::Outside => self.append(c, source),
            WordClass::Mark | WordClass::Separator | WordClass::Space => self.end_word(),
        }
    }

    fn check(&mut self) {
        self.sink.check();
    }
}
