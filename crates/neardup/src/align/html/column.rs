//! One document as a column of the page.

use super::super::alignment::{Alignment, Fate};
use super::super::pace::Pace;
use super::super::words::Side;
use super::hue;
use super::look::Look;
use crate::html::Page;

/// Bytes of the document in one block of the page, at most. Browsers lay a block out as a whole,
/// and one that is out of sight not at all: 1 MB of one word took Chromium 4 s in blocks, more than
/// 40 s as one, on one busy machine.
const BLOCK: usize = 4096;

/// A block ends with the first line that ends behind so many bytes: a break within a line, which
/// would show, needs a line of more than `BLOCK - WHOLE_LINES` bytes.
const WHOLE_LINES: usize = BLOCK / 4;

/// Writes a document with its chunks and differences marked up.
pub(super) struct Column<'p> {
    page: &'p mut Page,
    alignment: &'p Alignment,
    side: usize,
    look: &'p Look<'p>,
    /// The role of the text being written.
    fate: Fate,
    /// Bytes of the document in the block begun last.
    in_block: usize,
}

impl<'p> Column<'p> {
    pub fn new(
        page: &'p mut Page,
        alignment: &'p Alignment,
        side: usize,
        look: &'p Look<'p>,
    ) -> Self {
        Self {
            page,
            alignment,
            side,
            look,
            fate: Fate::Same,
            in_block: 0,
        }
    }

    pub fn write(mut self, doc: &[u8], words: &Side, pace: &mut Pace) {
        let level = self.look.level;
        self.page
            .write(format_args!("<article tabindex=\"0\">\n<h{level}>"));
        self.page.name(self.look.names[self.side]);
        self.page.write(format_args!(
            " <small>{} words</small></h{level}>\n<div dir=\"auto\">",
            words.len()
        ));
        let mut written = 0;
        for (place, &fate) in words.places.iter().zip(&self.alignment.fates[self.side]) {
            pace.steps(4);
            // Parts of one character stand at the same place.
            let start = written.max(place.start as usize);
            let end = written.max(place.end as usize);
            if fate == self.fate {
                self.text(&doc[written..end]);
            } else {
                self.close();
                self.fate = Fate::Same;
                self.text(&doc[written..start]);
                self.fate = fate;
                self.open(true);
                self.text(&doc[start..end]);
            }
            written = end;
        }
        self.close();
        self.fate = Fate::Same;
        self.text(&doc[written..]);
        self.page.push("</div>\n</article>\n");
    }

    fn text(&mut self, mut text: &[u8]) {
        while let Some(end) = block_end(text, self.in_block) {
            self.page.text(&text[..end]);
            self.close();
            self.page.push("</div>\n<div dir=\"auto\">");
            self.open(false);
            self.in_block = 0;
            text = &text[end..];
        }
        self.page.text(text);
        self.in_block += text.len();
    }

    /// Opens the element of the text's fate; where it goes on from another block, not as the target
    /// of links.
    fn open(&mut self, begins: bool) {
        match self.fate {
            Fate::Same => {}
            Fate::Different => self.page.push(["<del>", "<ins>"][self.side]),
            Fate::Chunk(chunk) => {
                let (own, other) = [("a", "b"), ("b", "a")][self.side];
                let prefix = self.look.prefix;
                let moved = if self.alignment.keeps(self.fate) {
                    ""
                } else {
                    " m"
                };
                let hue = hue(chunk as usize);
                self.page
                    .write(format_args!("<a class=\"c{moved}\" style=\"--h:{hue}\""));
                if begins {
                    self.page
                        .write(format_args!(" id=\"{prefix}{own}{chunk}\""));
                }
                self.page
                    .write(format_args!(" href=\"#{prefix}{other}{chunk}\">"));
            }
        }
    }

    fn close(&mut self) {
        self.page.push(match self.fate {
            Fate::Same => "",
            Fate::Different => ["</del>", "</ins>"][self.side],
            Fate::Chunk(_) => "</a>",
        });
    }
}

/// Returns the end in `text` of the block that holds `in_block` bytes so far, if it ends there:
/// behind a line, else before `text`, else within it.
fn block_end(text: &[u8], in_block: usize) -> Option<usize> {
    let room = BLOCK - in_block;
    let lines = WHOLE_LINES.saturating_sub(in_block).min(text.len());
    let line = text[lines..].iter().take(room).position(|&b| b == b'\n');
    match line {
        Some(feed) if lines + feed < room => Some(lines + feed + 1),
        _ if text.len() <= room => None,
        _ if in_block >= WHOLE_LINES => Some(0),
        // A character has at most four bytes; of invalid ones any place will do.
        _ => {
            let starts = |&i: &usize| text[i] & 0xc0 != 0x80;
            Some((room - 3..=room).rev().find(starts).unwrap_or(room))
        }
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
