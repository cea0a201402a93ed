//! From bytes to folded code points.

use super::Fold;
use super::fold::{FoldedText, Folder};
use crate::Result;
use simdutf8::compat::from_utf8;
use std::ops::Range;

/// Number of bytes decoded at once: they stay in the first-level cache, and hold so few words that their hashes fit one
/// block.
const WINDOW: usize = 8192;

/// Valid text, and the ill-formed bytes after it that stand for one U+FFFD.
pub(crate) struct TextPiece<'a> {
    pub text: &'a str,
    /// The beginning of `text` in the document.
    pub start: usize,
    /// The range of the ill-formed bytes, which may be empty.
    pub invalid: Range<usize>,
}

/// Returns the document in pieces of at most [`WINDOW`] bytes.
pub(crate) fn pieces(doc: &[u8]) -> impl Iterator<Item = TextPiece<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == doc.len() {
            return None;
        }
        let start = at;
        let window = &doc[start..window_end(doc, start)];
        let (text, invalid) = match from_utf8(window) {
            Ok(text) => (text, 0),
            Err(error) => {
                let (valid, rest) = window.split_at(error.valid_up_to());
                let text = from_utf8(valid).unwrap_or_default();
                (text, error.error_len().unwrap_or(rest.len()))
            }
        };
        at = start + text.len() + invalid;
        Some(TextPiece {
            text,
            start,
            invalid: at - invalid..at,
        })
    })
}

/// Returns the end of the window that begins at `start`. The window cuts no code point. Text with four continuation
/// bytes in a row is invalid, and may be cut.
fn window_end(doc: &[u8], start: usize) -> usize {
    let Some(end) = start.checked_add(WINDOW).filter(|end| *end < doc.len()) else {
        return doc.len();
    };
    let begins = |at: &usize| doc[*at] & 0xC0 != 0x80;
    (end - 3..=end).rev().find(begins).unwrap_or(end)
}

/// Passes the whole document, folded, to `out`. Checks for interrupts at every piece.
///
/// # Errors
/// `OutOfMemory`, if a sequence of combining marks is too long to be ordered.
pub(crate) fn fold_document(doc: &[u8], fold: Fold, out: &mut impl FoldedText) -> Result<()> {
    let mut folder = Folder::new(fold);
    for piece in pieces(doc) {
        out.check();
        for (offset, c) in piece.text.char_indices() {
            let at = piece.start + offset;
            folder.push(c, at..at + c.len_utf8(), out);
        }
        if !piece.invalid.is_empty() {
            folder.push(char::REPLACEMENT_CHARACTER, piece.invalid, out);
        }
    }
    folder.finish(out)
}
