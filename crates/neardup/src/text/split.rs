//! Paragraphs, lines and sentences.

use super::properties::WordClass;
use super::table::info;
use crate::error::listed;
use crate::{Error, quoted};
use strum::{EnumString, VariantNames};
use unicode_segmentation::UnicodeSegmentation;

/// Parts that a document is split into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown_part)]
pub enum SplitBy {
    /// Consecutive lines that are not blank. U+2029 also ends a paragraph.
    Paragraph,
    /// Lines between mandatory breaks (UAX #14: BK, CR, LF, NL).
    Line,
    /// Sentences of the default rules (UAX #29), in which a line break ends a sentence. [`STRETCH`] characters without a
    /// letter end one, too.
    Sentence,
}

fn unknown_part(name: &str) -> Error {
    Error::invalid(
        format!("cannot split by {}", quoted(name)),
        format!("Valid values are {}.", listed(SplitBy::VARIANTS)),
    )
}

/// Calls `visit` for the parts of a document in order. Each comes without white space around it, and with the number of
/// characters before it. White space alone is not a part. So the document consists of the parts and the white space
/// between them.
///
/// Calls `check` for every line and every sentence. Linear time, constant memory.
pub fn split(doc: &str, by: SplitBy, check: &mut dyn FnMut(), visit: &mut dyn FnMut(usize, &str)) {
    let mut parts = SplitParts {
        doc,
        counted: 0,
        characters: 0,
        visit,
    };
    let mut paragraph: Option<usize> = None;
    let mut end = 0;
    for line in doc.split_inclusive(is_break) {
        check();
        let start = end;
        end += line.len();
        match by {
            SplitBy::Line => parts.put(start, line),
            SplitBy::Sentence => {
                let mut start = start;
                for piece in line.split_inclusive(ends_stretch()) {
                    for (offset, sentence) in piece.split_sentence_bound_indices() {
                        check();
                        parts.put(start + offset, sentence);
                    }
                    start += piece.len();
                }
            }
            SplitBy::Paragraph => {
                // "\r\n" is one line break.
                let is_blank = line.chars().all(is_space);
                if is_blank
                    && !(line == "\n" && doc[..start].ends_with('\r'))
                    && let Some(first) = paragraph.take()
                {
                    parts.put(first, &doc[first..start]);
                }
                let first = *paragraph.get_or_insert(start);
                if line.ends_with(PARAGRAPH_SEPARATOR) {
                    parts.put(first, &doc[first..end]);
                    paragraph = None;
                }
            }
        }
    }
    if let Some(first) = paragraph {
        parts.put(first, &doc[first..]);
    }
}

const PARAGRAPH_SEPARATOR: char = '\u{2029}';

/// Returns whether a character ends a line.
fn is_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | PARAGRAPH_SEPARATOR)
}

/// Number of characters without a letter that end a sentence. After a period, rule SB8 searches for a letter from each
/// of them.
const STRETCH: usize = 1000;

/// Returns whether a character, called for one after the other, is the last of a stretch without letters.
fn ends_stretch() -> impl FnMut(char) -> bool {
    let mut length = 0;
    move |c| {
        let is_letter = c.is_alphabetic() && info(c).class() != WordClass::Mark;
        // A stretch of that length has ended.
        length %= STRETCH;
        length = if is_letter { 0 } else { length + 1 };
        length == STRETCH
    }
}

fn is_space(c: char) -> bool {
    info(c).class() == WordClass::Space
}

/// Passes parts to `visit`, and counts the characters before them.
struct SplitParts<'a> {
    doc: &'a str,
    /// Bytes of the document whose characters have been counted.
    counted: usize,
    characters: usize,
    visit: &'a mut dyn FnMut(usize, &str),
}

impl SplitParts<'_> {
    fn put(&mut self, start: usize, part: &str) {
        let trimmed = part.trim_start_matches(is_space);
        let start = start + part.len() - trimmed.len();
        let trimmed = trimmed.trim_end_matches(is_space);
        if trimmed.is_empty() {
            return;
        }
        self.characters += self.doc[self.counted..start].chars().count();
        self.counted = start;
        (self.visit)(self.characters, trimmed);
    }
}
