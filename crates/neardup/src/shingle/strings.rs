//! Shingles as text, for people to look at.

use super::stop::StopHashes;
use super::{Key, Shingling};
use crate::memory::{FirstError, GrowText, collected};
use crate::text::{Fold, FoldedText, Unit, WordClass, fold_document, words};
use crate::{Error, Result};
use indexmap::IndexSet;
use std::collections::VecDeque;
use std::ops::Range;

/// Returns the distinct shingles of a document in order of first appearance.
///
/// `check` is called at least every 64 KiB. Linear time; memory for the result.
///
/// # Errors
/// `OutOfMemory`; `TooLarge` if the shingles take more than `max_bytes`, including 4 bytes for the length of each.
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
            let mut own = String::new();
            own.try_push_str(shingle)?;
            distinct.insert(own);
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

/// Passes the shingles of a document to `emit`, in document order, each shingle as often as it occurs.
///
/// `check` is called at least every 64 KiB. Linear time; memory for the longest shingle.
///
/// # Errors
/// The first error that `emit` returns, after which it is not called again; `OutOfMemory`.
pub fn for_each_shingle(
    doc: &[u8],
    shingling: &Shingling,
    check: &mut dyn FnMut(),
    emit: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut window = ShingleWindow::new(shingling, emit);
    match shingling.unit {
        Unit::Word | Unit::Stop => {
            words(doc, shingling.fold, check, &mut |word, _| window.push(word))?;
        }
        Unit::Char => {
            let mut chars = Chars {
                window: &mut window,
                is_collapsing: shingling.fold != Fold::None,
                is_begun: false,
                is_space_pending: false,
                check,
                error: FirstError::default(),
            };
            fold_document(doc, shingling.fold, &mut chars)?;
            chars.error.into_result()?;
        }
    }
    window.finish()
}

/// The last k units, joined.
struct ShingleWindow<'a> {
    k: usize,
    separator: &'static str,
    stop: Option<StopHashes>,
    key: Key,
    /// Joined units, each followed by a separator; the units before `starts[0]` are used up.
    text: String,
    starts: VecDeque<usize>,
    is_long_enough: bool,
    emit: &'a mut dyn FnMut(&str) -> Result<()>,
}

/// Bytes that are used up are dropped once there are more than this many, and more than half of the text.
const SLACK: usize = 4096;

impl<'a> ShingleWindow<'a> {
    fn new(shingling: &Shingling, emit: &'a mut dyn FnMut(&str) -> Result<()>) -> Self {
        let (key, is_char) = (Key::from_seed(0), shingling.unit == Unit::Char);
        Self {
            k: shingling.k,
            separator: if is_char { "" } else { " " },
            stop: (shingling.unit == Unit::Stop).then(|| StopHashes::new(shingling.fold, &key)),
            key,
            text: String::new(),
            starts: VecDeque::new(),
            is_long_enough: false,
            emit,
        }
    }

    fn push(&mut self, unit: &str) -> Result<()> {
        self.starts.try_reserve(1)?;
        self.starts.push_back(self.text.len());
        self.text.try_push_str(unit)?;
        self.text.try_push_str(self.separator)?;
        if self.starts.len() < self.k {
            return Ok(());
        }
        self.is_long_enough = true;
        if self.begins_right() {
            self.emit()?;
        }
        self.starts.pop_front();
        let done = self.starts.front().copied().unwrap_or(self.text.len());
        if done > SLACK.max(self.text.len() / 2) {
            self.text.drain(..done);
            self.starts.iter_mut().for_each(|start| *start -= done);
        }
        Ok(())
    }

    fn begins_right(&self) -> bool {
        let Some(stop) = &self.stop else { return true };
        let end = self.starts.get(1).copied().unwrap_or(self.text.len());
        let first = &self.text[self.starts[0]..end - self.separator.len()];
        stop.contains(self.key.token_hash(first.as_bytes()))
    }

    fn emit(&mut self) -> Result<()> {
        let end = self.text.len() - self.separator.len();
        (self.emit)(&self.text[self.starts[0]..end])
    }

    fn finish(mut self) -> Result<()> {
        match !self.is_long_enough && !self.starts.is_empty() && self.stop.is_none() {
            true => self.emit(),
            false => Ok(()),
        }
    }
}

/// The characters of a text. White space is collapsed to one space and trimmed, unless the text is not folded.
struct Chars<'a, 'b> {
    window: &'a mut ShingleWindow<'b>,
    is_collapsing: bool,
    is_begun: bool,
    is_space_pending: bool,
    check: &'a mut dyn FnMut(),
    error: FirstError,
}

impl FoldedText for Chars<'_, '_> {
    fn put(&mut self, c: char, class: WordClass, _: Range<usize>) {
        if self.is_collapsing && class == WordClass::Space {
            self.is_space_pending = self.is_begun;
            return;
        }
        self.is_begun = true;
        if std::mem::take(&mut self.is_space_pending) {
            self.error.run(|| self.window.push(" "));
        }
        self.error
            .run(|| self.window.push(c.encode_utf8(&mut [0; 4])));
    }

    fn check(&mut self) {
        (self.check)();
    }
}
