//! One document as a column of the page.

use super::comparison::{AlignedPair, Look, hue};
use crate::align::alignment::Fate;
use crate::align::pace::Pace;
use crate::align::words::Side;
use crate::html::{HtmlText, beginning};
use askama::filters::HtmlSafe;
use std::fmt;

/// Bytes of the document in one block of the page, at most. Browsers lay out a block as a whole, and skip a block
/// that is out of sight: 1 MB of one word takes a tenth of the time in blocks.
const BLOCK: usize = 4096;

/// A block that has this many bytes ends after its line. A break within a line, which would be visible, needs a line
/// of more than `BLOCK - WHOLE_LINES` bytes.
const WHOLE_LINES: usize = BLOCK / 4;

/// A document, displayed with its chunks and differences marked up.
pub(crate) struct DocumentColumn<'c> {
    pub comparison: &'c AlignedPair<'c>,
    pub side: usize,
    pub look: &'c Look<'c>,
}

impl HtmlSafe for DocumentColumn<'_> {}

impl DocumentColumn<'_> {
    /// Returns the identifier of the heading.
    pub fn id(&self) -> String {
        format!("{}{}", self.look.prefix, ["A", "B"][self.side])
    }

    fn side(&self) -> &Side<'_> {
        &self.comparison.alignment.words.sides[self.side]
    }

    /// Returns the number of words.
    pub fn words(&self) -> u64 {
        self.side().len() as u64
    }
}

impl fmt::Display for DocumentColumn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writer = ColumnWriter {
            f,
            column: self,
            fate: Fate::Same,
            in_block: 0,
        };
        writer.write()
    }
}

struct ColumnWriter<'w, 'f> {
    f: &'w mut fmt::Formatter<'f>,
    column: &'w DocumentColumn<'w>,
    /// The role of the text being written.
    fate: Fate,
    /// Bytes of the document in the current block.
    in_block: usize,
}

impl ColumnWriter<'_, '_> {
    fn write(mut self) -> fmt::Result {
        let AlignedPair { alignment, check } = self.column.comparison;
        let side = self.column.side();
        let doc = side.doc;
        let fates = &alignment.fates[self.column.side];
        let call = &mut || check();
        let pace = &mut Pace::new(call);
        let mut written = 0;
        for (place, &fate) in side.places.iter().zip(fates) {
            pace.steps(4);
            // Parts of one character stand at the same place.
            let start = written.max(place.start as usize);
            let end = written.max(place.end as usize);
            if fate == self.fate {
                self.text(&doc[written..end])?;
            } else {
                self.close()?;
                self.fate = Fate::Same;
                self.text(&doc[written..start])?;
                self.fate = fate;
                self.open(true)?;
                self.text(&doc[start..end])?;
            }
            written = end;
        }
        self.close()?;
        self.fate = Fate::Same;
        self.text(&doc[written..])
    }

    fn text(&mut self, mut text: &[u8]) -> fmt::Result {
        while let Some(end) = block_end(text, self.in_block) {
            write!(self.f, "{}", HtmlText::new(&text[..end]))?;
            self.close()?;
            self.f.write_str("</div>\n<div dir=\"auto\">")?;
            self.open(false)?;
            self.in_block = 0;
            text = &text[end..];
        }
        self.in_block += text.len();
        write!(self.f, "{}", HtmlText::new(text))
    }

    /// Opens the element for the text's fate. If the element continues one of the previous block, it has no number
    /// and is not the target of links.
    fn open(&mut self, begins: bool) -> fmt::Result {
        let (side, is_pane) = (self.column.side, self.column.look.is_panes);
        let chunk = match self.fate {
            Fate::Same => return Ok(()),
            Fate::Different => return self.f.write_str(["<del>", "<ins>"][side]),
            Fate::Chunk(chunk) => chunk as usize,
        };
        let element = if is_pane { "a" } else { "mark" };
        let is_moved = !self.column.comparison.alignment.keeps(self.fate);
        let (class, hue) = (if is_moved { "c m" } else { "c" }, hue(chunk));
        write!(self.f, "<{element} class=\"{class}\" style=\"--h:{hue}\"")?;
        if begins {
            write!(self.f, " data-n=\"{}\"", chunk + 1)?;
        }
        let (own, other) = [("a", "b"), ("b", "a")][side];
        if is_pane && begins {
            write!(self.f, " id=\"{own}{chunk}\"")?;
        }
        if is_pane {
            write!(self.f, " href=\"#{other}{chunk}\"")?;
        }
        self.f.write_str(">")
    }

    fn close(&mut self) -> fmt::Result {
        self.f.write_str(match self.fate {
            Fate::Same => "",
            Fate::Different => ["</del>", "</ins>"][self.column.side],
            Fate::Chunk(_) if self.column.look.is_panes => "</a>",
            Fate::Chunk(_) => "</mark>",
        })
    }
}

/// Returns the end of the block within `text` if it ends there; the block holds `in_block` bytes so far. It ends
/// after a line, else before `text`, else within it.
fn block_end(text: &[u8], in_block: usize) -> Option<usize> {
    let room = BLOCK - in_block;
    let lines = WHOLE_LINES.saturating_sub(in_block).min(text.len());
    let line = text[lines..].iter().take(room).position(|&b| b == b'\n');
    match line {
        Some(feed) if lines + feed < room => Some(lines + feed + 1),
        _ if text.len() <= room => None,
        _ if in_block >= WHOLE_LINES => Some(0),
        _ => Some(beginning(text, room).len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_ends_behind_a_line() {
        assert_eq!(block_end(b"one\ntwo\n", WHOLE_LINES), Some(4));
        assert_eq!(block_end(b"one\ntwo\n", 0), None);
        let lines = "line\n".repeat(BLOCK);
        assert_eq!(
            block_end(lines.as_bytes(), 0),
            Some(WHOLE_LINES.next_multiple_of(5))
        );
    }

    #[test]
    fn a_block_ends_before_a_word_or_within_it() {
        assert_eq!(block_end(b" word", BLOCK - 5), None);
        assert_eq!(block_end(b" words", BLOCK - 5), Some(0));
        assert_eq!(block_end(b" words\n", BLOCK - 5), Some(0));
        assert_eq!(block_end(&[b'w'; 2 * BLOCK], 1), Some(BLOCK - 1));
        assert_eq!(
            block_end("\u{20ac}".repeat(BLOCK).as_bytes(), 0),
            Some(4095)
        );
        assert_eq!(block_end(&[0x80; 2 * BLOCK], 0), Some(BLOCK));
    }
}
