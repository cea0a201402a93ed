//! Text of documents as HTML: no markup of theirs survives, and nothing in them stays unseen.

use super::Page;

/// Appends `text` so that a browser shows it as text. Control and format characters, line and
/// paragraph separators, noncharacters and bytes that are not UTF-8 appear as marks: they could hide
/// text, reorder it or be lost on the way. Line feeds and tabs stay, and so do the joiners that
/// Persian, Indian scripts and emoji need.
pub(super) fn append(page: &mut Page, text: &[u8]) {
    let marks = Marks {
        page,
        tags: true,
        open: false,
    };
    marks.append(text);
}

/// Appends the same where no element can stand: marks are bare text.
pub(super) fn append_plain(page: &mut Page, text: &[u8]) {
    let marks = Marks {
        page,
        tags: false,
        open: false,
    };
    marks.append(text);
}

/// Consecutive marks share one element.
struct Marks<'p> {
    page: &'p mut Page,
    tags: bool,
    open: bool,
}

impl Marks<'_> {
    fn append(mut self, text: &[u8]) {
        for chunk in text.utf8_chunks() {
            let mut characters = chunk.valid().chars().peekable();
            while let Some(c) = characters.next() {
                match c {
                    '\r' if characters.peek() == Some(&'\n') => {}
                    '\n' | '\t' => self.text(c.encode_utf8(&mut [0; 4])),
                    '\0'..='\u{1f}' => self.mark(format_args!("&#x{:x};", 0x2400 + c as u32)),
                    '\u{7f}' => self.mark(format_args!("&#x2421;")),
                    _ if is_unseen(c) => self.mark(format_args!("U+{:04X} ", c as u32)),
                    '&' => self.text("&amp;"),
                    '<' => self.text("&lt;"),
                    '>' => self.text("&gt;"),
                    '"' => self.text("&quot;"),
                    '\'' => self.text("&#39;"),
                    _ => self.text(c.encode_utf8(&mut [0; 4])),
                }
            }
            for byte in chunk.invalid() {
                self.mark(format_args!("{byte:02X} "));
            }
        }
        self.close();
    }

    fn text(&mut self, text: &str) {
        self.close();
        self.page.push(text);
    }

    fn mark(&mut self, text: std::fmt::Arguments<'_>) {
        if self.tags && !self.open {
            self.page.push("<i>");
            self.open = true;
        }
        self.page.write(text);
    }

    fn close(&mut self) {
        if self.open {
            self.page.push("</i>");
            self.open = false;
        }
    }
}

/// Characters of the categories Cc, Cf, Zl and Zp and noncharacters, except the joiners U+200C and
/// U+200D and the visible signs among Cf.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || c as u32 & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    fn escaped(text: &[u8]) -> String {
        let mut page = super::Page::default();
        super::append(&mut page, text);
        page.finish().unwrap()
    }

    #[test]
    fn nothing_but_text_in_a_title() {
        let mut page = super::Page::default();
        super::append_plain(&mut page, "</title>\u{202e}x".as_bytes());
        assert_eq!(page.finish().unwrap(), "&lt;/title&gt;U+202E x");
    }

    #[test]
    fn markup_and_entities() {
        assert_eq!(
            escaped(b"<a href='x' title=\"y\">&amp;"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;amp;"
        );
    }

    #[test]
    fn characters_nobody_sees() {
        assert_eq!(
            escaped(b"a\0\x01b\x7f\r\n\tc\r"),
            "a<i>&#x2400;&#x2401;</i>b<i>&#x2421;</i>\n\tc<i>&#x240d;</i>"
        );
        assert_eq!(
            escaped("x\u{202e}\u{200b}y".as_bytes()),
            "x<i>U+202E U+200B </i>y"
        );
        assert_eq!(escaped(b"\xc3\xa4\xff\xfe"), "\u{e4}<i>FF FE </i>");
        assert_eq!(
            escaped("\u{ffff}\u{85}\u{feff}".as_bytes()),
            "<i>U+FFFF U+0085 U+FEFF </i>"
        );
        assert_eq!(escaped("a\u{200d}b".as_bytes()), "a\u{200d}b");
    }
}
