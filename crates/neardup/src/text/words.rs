//! The word rule, applied to a folded text.

use super::decode::fold_document;
use super::fold::FoldedText;
use super::properties::WordClass;
use super::{Fold, HEARTBEAT};
use crate::Result;
use crate::memory::{FirstError, GrowText};
use std::ops::Range;

/// Calls `emit` for the words of a document in order, each folded and with the bytes of `doc` that it was made from.
/// Two ranges overlap if one code point becomes parts of two words ("½" folds to "1⁄2").
///
/// `check` is called at least every 64 KiB. Linear time; memory for the longest word.
///
/// # Errors
/// The first error that `emit` returns, after which it is not called again; `OutOfMemory`.
pub fn words(
    doc: &[u8],
    fold: Fold,
    check: &mut dyn FnMut(),
    emit: &mut dyn FnMut(&str, Range<usize>) -> Result<()>,
) -> Result<()> {
    if doc.is_ascii()
        && let Ok(text) = std::str::from_utf8(doc)
    {
        return ascii_words(text, fold, check, emit);
    }
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

/// Calls `emit` for the words of an ASCII text as [`words`] does, in less time.
fn ascii_words(
    doc: &str,
    fold: Fold,
    check: &mut dyn FnMut(),
    emit: &mut dyn FnMut(&str, Range<usize>) -> Result<()>,
) -> Result<()> {
    let (mut folded, mut start) = (String::new(), 0);
    // The end of the text ends the last word.
    for (at, byte) in doc.bytes().chain([b' ']).enumerate() {
        if at.is_multiple_of(HEARTBEAT) {
            check();
        }
        if byte.is_ascii_alphanumeric() {
            continue;
        }
        if start < at {
            let word = &doc[start..at];
            match fold {
                Fold::None => emit(word, start..at)?,
                Fold::Case | Fold::Marks => {
                    folded.clear();
                    folded.try_push_str(word)?;
                    folded.make_ascii_lowercase();
                    emit(&folded, start..at)?;
                }
            }
        }
        start = at + 1;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_in_ascii_are_those_of_any_text(doc in "[ -~\\x00\n\t]{0,80}") {
            for fold in [Fold::None, Fold::Case, Fold::Marks] {
                let (mut fast, mut any) = (Vec::new(), Vec::new());
                let put = |into: &mut Vec<_>, word: &str, bytes| {
                    into.push((word.to_string(), bytes));
                    Ok(())
                };
                // A dash, which is in no word, makes the text one that is not ASCII.
                let dashed = format!("{doc}\u{2014}");
                words(doc.as_bytes(), fold, &mut || (), &mut |word, bytes| put(&mut fast, word, bytes)).unwrap();
                words(dashed.as_bytes(), fold, &mut || (), &mut |word, bytes| put(&mut any, word, bytes)).unwrap();
                prop_assert_eq!(fast, any);
            }
        }
    }
}
