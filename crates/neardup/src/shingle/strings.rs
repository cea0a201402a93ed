//! Shingles as text, for people to look at.

use super::stop::StopHashes;
use super::units::Spaces;
use super::{Key, Shingling};
use crate::memory::{FirstError, GrowText, collected, owned};
use crate::text::{FoldedText, Unit, WordClass, WordSink, Words, fold_document};
use crate::{Error, Result};
use indexmap::IndexSet;
use std::collections::VecDeque;
use std::ops::Range;

/// Returns the distinct shingles of a document in order of first appearance.
///
/// `check` is called at least every 64 KiB. Linear time; memory for the result.
///
/// # Errors
/// `OutOfMemory`; `TooLarge` if they take more than `max_bytes`, a word of 4 bytes for the length of each included.
pub fn shingles(
    doc: &[u8],
    shingling: &Shingling,
    max_bytes: usize,
    check: &mut dyn FnMut(),
) -> Result<Vec<String>> {
    let mut distinct = IndexSet::new();
    let mut bytes = 0usize;
    for_each_shingle(doc, shingling, check, &mut |shingle| {
        if bytes <= max_bytes && !distinct.contains(shingle) {
            distinct.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
            distinct.insert(owned(shingle)?);
            bytes += 4 + shingle.len().next_multiple_of(4);
        }
        Ok(())
    })?;
    if bytes > max_bytes {
        return Err(Error::TooLarge {
            message: format!("the shingles take more than {max_bytes} bytes"),
            hint: "Hashes of shingles take 8 bytes each.".into(),
        });
    }
    collected(distinct)
}

/// The shingles of a document in document order, repeated where they repeat.
///
/// `check` is called at least every 64 KiB. Linear time; memory for the longest shingle.
///
/// # Errors
/// The first that `emit` returns, which is not called again; `OutOfMemory`.
pub fn for_each_shingle(
    doc: &[u8],
    shingling: &Shingling,
    check: &mut dyn FnMut(),
    emit: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let window = ShingleWindow::new(shingling, check, emit);
    let window = match shingling.unit {
        Unit::Word | Unit::Stop => {
            let mut words = Words::new(window);
            fold_document(doc, shingling.fold, &mut words)?;
            words.finish()?
        }
        Unit::Char => {
            let mut chars = Chars {
                spaces: Spaces::new(shingling.fold),
                window,
            };
            fold_document(doc, shingling.fold, &mut chars)?;
            chars.window
        }
    };
    window.finish()
}

/// The last k units, joined.
struct ShingleWindow<'a> {
    k: usize,
    separator: &'static str,
    stop: Option<StopHashes>,
    key: Key,
    /// Units joined, each with a separator behind it; those before `starts[0]` are done with.
    text: String,
    starts: VecDeque<usize>,
    is_long_enough: bool,
    check: &'a mut dyn FnMut(),
    emit: &'a mut dyn FnMut(&str) -> Result<()>,
    error: FirstError,
}

/// Bytes done with from which on they are dropped.
const SLACK: usize = 4096;

impl<'a> ShingleWindow<'a> {
    fn new(
        shingling: &Shingling,
        check: &'a mut dyn FnMut(),
        emit: &'a mut dyn FnMut(&str) -> Result<()>,
    ) -> Self {
        let key = Key::from_seed(0);
        Self {
            k: shingling.k,
            separator: if shingling.unit == Unit::Char {
                ""
            } else {
                " "
            },
            stop: (shingling.unit == Unit::Stop).then(|| StopHashes::new(shingling.fold, &key)),
            key,
            text: String::new(),
            starts: VecDeque::new(),
            is_long_enough: false,
            check,
            emit,
            error: FirstError::default(),
        }
    }

    fn push(&mut self, unit: &str) {
        let start = self.text.len();
        let (text, starts) = (&mut self.text, &mut self.starts);
        self.error.run(|| {
            starts.try_reserve(1)?;
            text.try_push_str(unit)?;
            text.try_push_str(self.separator)
        });
        if self.error.is_set() {
            return;
        }
        self.starts.push_back(start);
        if self.starts.len() < self.k {
            return;
        }
        self.is_long_enough = true;
        if self.begins_right() {
            self.emit();
        }
        self.starts.pop_front();
        let done = self.starts.front().copied().unwrap_or(self.text.len());
        if done > SLACK.max(self.text.len() / 2) {
            self.text.drain(..done);
            self.starts.iter_mut().for_each(|start| *start -= done);
        }
    }

    fn begins_right(&self) -> bool {
        let Some(stop) = &self.stop else { return true };
        let end = self.starts.get(1).copied().unwrap_or(self.text.len());
        let first = &self.text[self.starts[0]..end - self.separator.len()];
        stop.contains(self.key.token_hash(first.as_bytes()))
    }

    fn emit(&mut self) {
        let shingle = &self.text[self.starts[0]..self.text.len() - self.separator.len()];
        self.error.run(|| (self.emit)(shingle));
    }

    fn finish(mut self) -> Result<()> {
        if !self.is_long_enough && !self.starts.is_empty() && self.stop.is_none() {
            self.emit();
        }
        self.error.into_result()
    }
}

impl WordSink for ShingleWindow<'_> {
    fn word(&mut self, word: &str, _: Range<usize>) {
        self.push(word);
    }

    fn check(&mut self) {
        (self.check)();
    }
}

struct Chars<'a> {
    spaces: Spaces,
    window: ShingleWindow<'a>,
}

impl FoldedText for Chars<'_> {
    fn put(&mut self, c: char, class: WordClass, _: Range<usize>) {
        let (space, c) = self.spaces.next(c, class);
        if space {
            self.window.push(" ");
        }
        if let Some(c) = c {
            self.window.push(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn check(&mut self) {
        (self.window.check)();
    }
}
