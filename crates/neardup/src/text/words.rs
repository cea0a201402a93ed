//! The word rule, applied to a folded text.

use super::Fold;
use super::decode::fold_document;
use super::fold::FoldedText;
use super::properties::WordClass;
use crate::Result;
use crate::memory::{FirstError, GrowText};
use std::ops::Range;

/// Calls `emit` for the words of a document in order, each folded and with the bytes of `doc` that it was made from.
/// Two ranges overlap if one code point becomes parts of two words ("½" folds to "1⁄2").
///
/// `check` is called at least every 64 KiB. Linear time; memory for the longest word.
///
/// # Errors
/// The first error that `emit` returns, which is not called again; `OutOfMemory`.
pub fn words(
    doc: &[u8],
    fold: Fold,
    check: &mut dyn FnMut(),
    emit: &mut dyn FnMut(&str, Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut words = Words {
        check,
        emit,
        state: WordState::Outside,
        word: String::new(),
        source: 0..0,
        error: FirstError::default(),
    };
    fold_document(doc, fold, &mut words)?;
    words.end_word();
    words.error.into_result()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WordState {
    Outside,
    InWord,
    /// After a code point that is a word by itself.
    Alone,
}

/// Joins the code points of a folded text into words.
struct Words<'a> {
    check: &'a mut dyn FnMut(),
    emit: &'a mut dyn FnMut(&str, Range<usize>) -> Result<()>,
    state: WordState,
    word: String,
    source: Range<usize>,
    error: FirstError,
}

impl Words<'_> {
    /// Ends the current word.
    #[inline]
    fn end_word(&mut self) {
        if self.state != WordState::Outside {
            self.error
                .run(|| (self.emit)(&self.word, self.source.clone()));
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
        self.error.run(|| self.word.try_push(c));
    }
}

impl FoldedText for Words<'_> {
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
        (self.check)();
    }
}
