//! The page of `diff_html`, read by a browser's HTML parser: whatever the documents hold, its
//! elements and attributes are ours and its text is theirs.

mod html;

use html::HOSTILE;
use neardup::align::{diff_html, diff_html_of_several};
use proptest::prelude::*;

/// Checks the page and gives back the two documents' texts.
fn read(a: &[u8], b: &[u8]) -> Vec<String> {
    html::read(diff_html(a, b, 5, &mut || {}).unwrap()).documents
}

#[test]
fn hostile_documents() {
    for a in HOSTILE {
        for b in HOSTILE {
            let twice = format!("one two three four five {b} six seven {a} eight");
            assert_eq!(read(a.as_bytes(), twice.as_bytes()), [a, &twice]);
        }
    }
}

#[test]
fn characters_nobody_sees() {
    let a = "a\0b\x01\x1b[31m c\u{202e}evil\u{202c} d\u{200b}e\u{feff} \u{2028}x\u{fffe}";
    let documents = read(a.as_bytes(), b"bytes \xff\xfe\xc3 that are no UTF-8\r\n");
    assert_eq!(
        documents,
        ["ab[31m cevil de x", "bytes  that are no UTF-8\n"]
    );
}

#[test]
fn a_megabyte_of_one_word() {
    for word in ["w", "w ", "<", "\u{202e}"] {
        let doc = word.repeat((1 << 20) / word.len());
        let page = diff_html(doc.as_bytes(), b"w w w w w w", 5, &mut || {}).unwrap();
        assert!(page.len() < 35 * doc.len());
        read(doc.as_bytes(), doc.as_bytes());
    }
}

#[test]
fn every_block_of_a_long_document() {
    let lines = (0..4000).map(|i| format!("line {i} \u{e9} of {}\n", i % 7));
    let a: String = lines.collect();
    let b = a.replace("line 2000", "<b>").replace(['\n', '6'], " ");
    assert_eq!(read(a.as_bytes(), b.as_bytes()), [a, b]);
}

#[test]
fn empty_documents() {
    assert_eq!(read(b"", b""), ["", ""]);
    assert_eq!(read(b"...", b"x"), ["...", "x"]);
}

#[test]
fn limits() {
    assert!(diff_html(b"a", b"b", 0, &mut || {}).is_err());
    let long = vec![b'a'; neardup::align::MAX_PAGE_INPUT + 1];
    assert!(diff_html(&long, b"b", 5, &mut || {}).is_err());
}

#[test]
fn one_beside_several() {
    let others: Vec<Option<&[u8]>> = HOSTILE.iter().map(|doc| Some(doc.as_bytes())).collect();
    for a in HOSTILE {
        let page = diff_html_of_several(a.as_bytes(), &others, 1, &mut || {}).unwrap();
        let reader = html::read(page);
        let expected: Vec<&str> = HOSTILE.iter().flat_map(|b| [a, *b]).collect();
        assert_eq!(reader.documents, expected);
        assert!(reader.headings.is_sorted_by(|a, b| *b <= a + 1));
        assert_eq!(reader.headings[..4], [1, 2, 3, 3]);
    }
}

#[test]
fn several_with_nulls_and_none() {
    let several = |others: &[Option<&[u8]>]| diff_html_of_several(b"a b c", others, 5, &mut || {});
    let reader = html::read(several(&[None, Some(b"a b d"), None, Some(b"")]).unwrap());
    assert_eq!(reader.documents, ["a b c", "a b d", "a b c", ""]);
    assert!(reader.all.contains("One document beside 2 others"));
    assert!(reader.all.contains("Document 2") && reader.all.contains("Document 4"));
    assert!(!reader.all.contains("Document 3"));
    assert!(html::read(several(&[]).unwrap()).documents.is_empty());
    assert!(html::read(several(&[None]).unwrap()).documents.is_empty());
    let half = vec![b'a'; neardup::align::MAX_PAGE_INPUT / 2];
    assert!(several(&[Some(&half), Some(&half)]).is_err());
    assert!(diff_html_of_several(b"a", &[], 0, &mut || {}).is_err());
}

proptest! {
    #[test]
    fn any_two_documents(a in "[a-c<>&\"' \u{bd}\u{e9}\n]{0,120}", b in "[a-c<>&\"' \u{bd}\u{e9}\n]{0,120}") {
        prop_assert_eq!(read(a.as_bytes(), b.as_bytes()), [a, b]);
    }
}
