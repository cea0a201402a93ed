//! In what two documents differ, in a few words.

use crate::align::explain::Explanation;
use crate::html::Page;

/// Words of either side that are listed, and bytes of each.
const WORDS: usize = 12;
const BYTES: usize = 48;

/// Writes the kind of a difference and the words of one side only; `names` says of which document.
pub(crate) fn append(page: &mut Page, explanation: &Explanation, names: [&str; 2]) {
    page.write(format_args!("{}", explanation.kind));
    let lists = [&explanation.only_in_a, &explanation.only_in_b];
    for ((words, element), name) in lists.into_iter().zip(["del", "ins"]).zip(names) {
        if words.is_empty() {
            continue;
        }
        page.write(format_args!(
            "<br><small>only in {name}:</small> <{element} dir=\"auto\">"
        ));
        for (number, word) in words.iter().take(WORDS).enumerate() {
            page.push(if number > 0 { ", " } else { "" });
            page.text(beginning(word, BYTES));
            page.push(if word.len() > BYTES { "&hellip;" } else { "" });
        }
        page.write(format_args!("</{element}>"));
        if words.len() > WORDS {
            let more = words.len() - WORDS;
            page.write(format_args!(" <small>and {more} more</small>"));
        }
    }
}

/// Returns at most so many bytes from the beginning, whole characters.
pub(crate) fn beginning(text: &[u8], bytes: usize) -> &[u8] {
    if text.len() <= bytes {
        return text;
    }
    let starts = |&end: &usize| text[end] & 0xc0 != 0x80;
    // A character has at most four bytes; of invalid ones any place will do.
    let end = (bytes - 3..=bytes).rev().find(starts).unwrap_or(bytes);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align::explain;

    fn written(a: &str, b: &str) -> String {
        let explanation = explain(a.as_bytes(), b.as_bytes(), &mut || {}).unwrap();
        let mut page = Page::default();
        append(&mut page, &explanation, ["A", "B"]);
        page.finish().unwrap()
    }

    #[test]
    fn words_of_one_side() {
        assert_eq!(written("same", "same"), "identical");
        assert_eq!(
            written("twelve chairs", "twelve <b>tables</b> here"),
            "rewritten<br><small>only in A:</small> <del dir=\"auto\">chairs</del>\
             <br><small>only in B:</small> <ins dir=\"auto\">b, tables, here</ins>"
        );
        let many: String = (0..30).map(|i| format!("w{i} ")).collect();
        assert!(written("x", &many).ends_with("w11</ins> <small>and 18 more</small>"));
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!(
            beginning("\u{e9}\u{e9}\u{e9}".as_bytes(), 5),
            "\u{e9}\u{e9}".as_bytes()
        );
        assert_eq!(beginning(&[0x80; 9], 5).len(), 5);
        assert_eq!(beginning(b"short", 5), b"short");
        assert!(written("x", &"w".repeat(99)).contains("ww&hellip;</ins>"));
    }
}
