//! Text of documents as HTML: no markup of theirs survives, and nothing in them stays unseen.

use super::page::Page;

/// Appends `text` so that a browser shows it as text. Control and format characters, line and
/// paragraph separators, noncharacters and bytes that are not UTF-8 appear as marks: they could hide
/// text, reorder it or be lost on the way. Line feeds and tabs stay, and so do the joiners that
/// Persian, Indian scripts and emoji need.
pub(super) fn append(page: &mut Page, text: &[u8]) {
    let mut marks = Marks { page, open: false };
    for chunk in text.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '\r' if characters.peek() == Some(&'\n') => {}
                '\n' | '\t' => marks.text(c.encode_utf8(&mut [0; 4])),
                '\0'..='\u{1f}' => marks.mark(format_args!("&#x{:x};", 0x2400 + c as u32)),
                '\u{7f}' => marks.mark(format_args!("&#x2421;")),
                _ if is_unseen(c) => marks.mark(format_args!("U+{:04X} ", c as u32)),
                '&' => marks.text("&amp;"),
                '<' => marks.text("&lt;"),
                '>' => marks.text("&gt;"),
                '"' => marks.text("&quot;"),
                '\'' => marks.text("&#39;"),
                _ => marks.text(c.encode_utf8(&mut [0; 4])),
            }
        }
        for byte in chunk.invalid() {
            marks.mark(format_args!("{byte:02X} "));
        }
    }
    marks.close();
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

/// Consecutive marks share one element.
struct Marks<'p> {
    page: &'p mut Page,
    open: bool,
}

impl Marks<'_> {
    fn text(&mut self, text: &str) {
        self.close();
        self.page.push(text);
    }

    fn mark(&mut self, text: std::fmt::Arguments<'_>) {
        if !self.open {
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

#[cfg(test)]
mod tests {
    fn escaped(text: &[u8]) -> String {
        let mut page = super::Page::default();
        super::append(&mut page, text);
        page.finish().unwrap()
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
