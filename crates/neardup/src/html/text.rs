//! Documents and numbers as HTML: nothing in a document acts as markup, and nothing stays invisible.

use askama::filters::{Escaper, Html, HtmlSafe};
use std::fmt::{self, Formatter};

/// A text, written as the HTML by which a browser shows exactly this text.
///
/// Some characters appear as marks, because they could hide text, reorder it or be lost on the way: control and
/// format characters, line and paragraph separators, noncharacters and bytes that are not UTF-8. Line feeds and tabs
/// stay, and so do the joiners that Persian, Indian scripts and emoji need.
#[derive(Clone, Copy)]
pub(crate) struct HtmlText<'t> {
    text: &'t [u8],
    is_cut: bool,
    /// The tags around marks.
    tags: [&'static str; 2],
}

impl<'t> HtmlText<'t> {
    pub fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            is_cut: false,
            tags: ["<i>", "</i>"],
        }
    }

    /// Returns the beginning of a text, of at most `bytes`, followed by dots if something is left out.
    pub fn cut(text: &'t [u8], bytes: usize) -> Self {
        let beginning = beginning(text, bytes);
        Self {
            is_cut: beginning.len() < text.len(),
            ..Self::new(beginning)
        }
    }

    /// Returns a text for an element that cannot contain other elements.
    pub fn bare(text: &'t [u8]) -> Self {
        Self {
            tags: ["", ""],
            ..Self::new(text)
        }
    }

    /// Writes the marks of consecutive invisible characters.
    fn write_marks(&self, f: &mut Formatter<'_>, marked: &str) -> fmt::Result {
        let [begin, end] = self.tags;
        if marked.is_empty() {
            return Ok(());
        }
        f.write_str(begin)?;
        for c in marked.chars() {
            match c {
                '\0'..='\u{1f}' => write!(f, "&#{};", 0x2400 + c as u32)?,
                '\u{7f}' => f.write_str("\u{2421}")?,
                _ => write!(f, "U+{:04X} ", c as u32)?,
            }
        }
        f.write_str(end)
    }

    fn write_valid(&self, f: &mut Formatter<'_>, mut text: &str) -> fmt::Result {
        while !text.is_empty() {
            let (seen, rest) = text.split_at(text.find(is_marked).unwrap_or(text.len()));
            let (marked, rest) = rest.split_at(rest.find(|c| !is_marked(c)).unwrap_or(rest.len()));
            Html.write_escaped_str(&mut *f, seen)?;
            let line_end = rest.starts_with('\n').then(|| marked.strip_suffix('\r'));
            self.write_marks(f, line_end.flatten().unwrap_or(marked))?;
            text = rest;
        }
        Ok(())
    }
}

impl HtmlSafe for HtmlText<'_> {}

impl fmt::Display for HtmlText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [begin, end] = self.tags;
        for chunk in self.text.utf8_chunks() {
            self.write_valid(f, chunk.valid())?;
            if !chunk.invalid().is_empty() {
                write!(f, "{begin}{:02X?}{end}", chunk.invalid())?;
            }
        }
        f.write_str(if self.is_cut { "\u{2026}" } else { "" })
    }
}

/// Returns the beginning of a text, of at most `bytes`, without cutting a character.
pub(crate) fn beginning(text: &[u8], bytes: usize) -> &[u8] {
    if text.len() <= bytes {
        return text;
    }
    let starts = |&end: &usize| text[end] & 0xc0 != 0x80;
    // A character has at most four bytes; invalid bytes may be cut anywhere.
    let end = (bytes - 3..=bytes).rev().find(starts).unwrap_or(bytes);
    &text[..end]
}

/// Returns whether a character is shown by a mark: one of the categories Cc, Cf, Zl and Zp or a
/// noncharacter, except line feed, tab, the joiners U+200C and U+200D and the visible signs among Cf.
fn is_marked(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || c as u32 & 0xfffe == 0xfffe
}

/// A number with commas between thousands.
pub(crate) struct Number<'n>(pub &'n u64);

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            number @ 0..1000 => write!(f, "{number}"),
            number => write!(f, "{},{:03}", Number(&(number / 1000)), number % 1000),
        }
    }
}

/// A share from 0 to 1 in percent, with one decimal.
pub(crate) struct Percent<'p>(pub &'p f64);

impl fmt::Display for Percent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        rounded(f, 100.0 * *self.0, 100.0, 1)?;
        f.write_str("\u{a0}%")
    }
}

/// A similarity from 0 to 1, with three decimals.
pub(crate) struct ThreeDecimals<'s>(pub &'s f64);

impl fmt::Display for ThreeDecimals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        rounded(f, *self.0, 1.0, 3)
    }
}

/// Writes a value from 0 to `whole`. If rounding would make another value 0 or `whole`, writes it with "<" or ">".
fn rounded(f: &mut fmt::Formatter<'_>, value: f64, whole: f64, decimals: usize) -> fmt::Result {
    let written = |value: f64| format!("{value:.decimals$}");
    let (text, least) = (written(value), 0.1f64.powi(decimals as i32));
    if value > 0.0 && text == written(0.0) {
        write!(f, "<\u{a0}{}", written(least))
    } else if value < whole && text == written(whole) {
        write!(f, ">\u{a0}{}", written(whole - least))
    } else {
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_text_in_a_title() {
        let title = HtmlText::bare("</title>\u{202e}x".as_bytes());
        assert_eq!(title.to_string(), "&#60;/title&#62;U+202E x");
    }

    #[test]
    fn markup_and_characters_nobody_sees() {
        for (text, wanted) in [
            (
                &b"<a href='x' title=\"y\">&amp;"[..],
                "&#60;a href=&#39;x&#39; title=&#34;y&#34;&#62;&#38;amp;",
            ),
            (
                b"a\0\x01b\x7f\r\n\tc\r",
                "a<i>&#9216;&#9217;</i>b<i>\u{2421}</i>\n\tc<i>&#9229;</i>",
            ),
            (b"\r\n\r\r\n", "\n<i>&#9229;</i>\n"),
            ("x\u{202e}\u{200b}y".as_bytes(), "x<i>U+202E U+200B </i>y"),
            (
                b"\xc3\xa4\xff\xfe\xe2\x82",
                "\u{e4}<i>[FF]</i><i>[FE]</i><i>[E2, 82]</i>",
            ),
            (
                "\u{ffff}\u{85}\u{feff}".as_bytes(),
                "<i>U+FFFF U+0085 U+FEFF </i>",
            ),
            ("a\u{200d}b".as_bytes(), "a\u{200d}b"),
        ] {
            assert_eq!(HtmlText::new(text).to_string(), wanted);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let cut = |text, bytes| HtmlText::cut(text, bytes).to_string();
        assert_eq!(
            cut("\u{e9}\u{e9}\u{e9}".as_bytes(), 5),
            "\u{e9}\u{e9}\u{2026}"
        );
        assert_eq!(beginning(&[0x80; 9], 5).len(), 5);
        assert_eq!(cut(b"short", 5), "short");
    }

    #[test]
    fn commas_between_thousands() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
            (20_000_000, "20,000,000"),
        ];
        for (number, text) in cases {
            assert_eq!(Number(&number).to_string(), text);
        }
    }

    #[test]
    fn only_all_is_all_and_only_nothing_is_nothing() {
        let similarity = |value: f64| ThreeDecimals(&value).to_string();
        assert_eq!(similarity(1.0), "1.000");
        assert_eq!(similarity(0.99995), ">\u{a0}0.999");
        assert_eq!(similarity(0.9994), "0.999");
        assert_eq!(similarity(7.0 / 9.0), "0.778");
        assert_eq!(similarity(0.0), "0.000");
        assert_eq!(similarity(1e-9), "<\u{a0}0.001");
        let percent = |part: u64, all: u64| Percent(&(part as f64 / all as f64)).to_string();
        assert_eq!(percent(33_663, 33_715), "99.8\u{a0}%");
        assert_eq!(percent(9999, 10_000), ">\u{a0}99.9\u{a0}%");
        assert_eq!(percent(1, 10_000), "<\u{a0}0.1\u{a0}%");
        assert_eq!(percent(0, 1), "0.0\u{a0}%");
    }
}
