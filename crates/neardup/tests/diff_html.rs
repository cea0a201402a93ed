//! The page of `diff_html`, read by a browser's HTML parser: whatever the documents hold, its
//! elements and attributes are ours and its text is theirs.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer,
};
use neardup::align::diff_html;
use proptest::prelude::*;
use std::cell::RefCell;

/// Elements without content.
const VOID: [&str; 1] = ["meta"];

/// Each element with the attributes it may have.
const ELEMENTS: [(&str, &[&str]); 25] = [
    ("html", &["lang"]),
    ("head", &[]),
    ("meta", &["charset", "name", "content", "http-equiv"]),
    ("title", &[]),
    ("style", &[]),
    ("body", &[]),
    ("header", &[]),
    ("dl", &[]),
    ("dt", &[]),
    ("dd", &[]),
    ("sub", &[]),
    ("p", &[]),
    ("span", &["class", "style"]),
    (
        "svg",
        &["viewBox", "preserveAspectRatio", "role", "aria-label"],
    ),
    ("rect", &["y", "width", "height"]),
    ("path", &["style", "d"]),
    ("main", &[]),
    ("article", &[]),
    ("h2", &[]),
    ("small", &[]),
    ("div", &["dir", "title"]),
    ("a", &["class", "style", "id", "href"]),
    ("del", &[]),
    ("ins", &[]),
    ("i", &[]),
];

#[derive(Default)]
struct Reader {
    open: Vec<String>,
    /// The texts of the two documents, without the marks for characters nobody sees.
    documents: Vec<String>,
}

struct Sink(RefCell<Reader>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut reader = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => reader.tag(&tag),
            Token::CharacterTokens(text) => reader.text(&text),
            Token::DoctypeToken(_) | Token::EOFToken => {}
            Token::CommentToken(_) | Token::NullCharacterToken | Token::ParseError(_) => {
                panic!("unexpected {token:?}")
            }
        }
        TokenSinkResult::Continue
    }
}

impl Reader {
    fn tag(&mut self, tag: &Tag) {
        let name = tag.name.to_string();
        if tag.kind == TagKind::EndTag {
            assert_eq!(self.open.pop(), Some(name));
            return;
        }
        let allowed = ELEMENTS.iter().find(|(element, _)| *element == name);
        let (_, attributes) = allowed.unwrap_or_else(|| panic!("unexpected element {name}"));
        for attribute in &tag.attrs {
            let attribute_name = attribute.name.local.to_string();
            let known = attributes
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&attribute_name));
            assert!(known, "unexpected attribute {attribute_name} of {name}");
            let value = &*attribute.value;
            match &*attribute_name {
                "href" => assert!(is_link(value), "{value}"),
                "style" => assert!(value[4..].parse::<u32>().is_ok(), "{value}"),
                _ => {}
            }
        }
        if name == "article" {
            self.documents.push(String::new());
        }
        if !tag.self_closing && !VOID.contains(&&*name) {
            self.open.push(name);
        }
    }

    fn text(&mut self, text: &StrTendril) {
        let inside = |name| self.open.iter().any(|open| open == name);
        let is_document = inside("div") && inside("article") && !inside("i");
        if let (true, Some(document)) = (is_document, self.documents.last_mut()) {
            document.push_str(text);
        }
    }
}

fn is_link(value: &str) -> bool {
    let number = value
        .strip_prefix("#a")
        .or_else(|| value.strip_prefix("#b"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Checks the page and gives back the two documents' texts.
fn read(a: &[u8], b: &[u8]) -> Vec<String> {
    let page = diff_html(a, b, 5, &mut || {}).unwrap();
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(page));
    let tokenizer = Tokenizer::new(Sink(RefCell::default()), Default::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let reader = tokenizer.sink.0.into_inner();
    assert!(reader.open.is_empty(), "{:?}", reader.open);
    reader.documents
}

#[test]
fn hostile_documents() {
    let hostile = [
        "<script>alert(1)</script>",
        "</div></article><script src=//evil.example/x.js></script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)' x='",
        "&lt;script&gt; &#60;b&#62; &amp; &notanentity; &",
        "<!-- <style>*{display:none}</style> --> <![CDATA[ x ]]>",
        "</style></title></textarea><svg onload=alert(1)>",
        "javascript:alert(1) data:text/html,<b>x</b>",
    ];
    for a in hostile {
        for b in hostile {
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

proptest! {
    #[test]
    fn any_two_documents(a in "[a-c<>&\"' \u{bd}\u{e9}\n]{0,120}", b in "[a-c<>&\"' \u{bd}\u{e9}\n]{0,120}") {
        prop_assert_eq!(read(a.as_bytes(), b.as_bytes()), [a, b]);
    }
}
