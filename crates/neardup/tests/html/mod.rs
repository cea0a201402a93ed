//! Pages read by a browser's HTML parser: whatever documents hold, elements and attributes are ours.
#![allow(dead_code, reason = "each user needs a part of it")]

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer,
};
use std::cell::RefCell;
use std::collections::HashSet;

/// Elements without content.
const VOID: [&str; 2] = ["meta", "br"];

/// Each element with the attributes it may have.
const ELEMENTS: &[(&str, &[&str])] = &[
    ("html", &["lang"]),
    ("head", &[]),
    ("meta", &["charset", "name", "content", "http-equiv"]),
    ("title", &[]),
    ("style", &[]),
    ("body", &[]),
    ("header", &[]),
    ("footer", &[]),
    ("nav", &["aria-label"]),
    ("section", &["class", "aria-labelledby"]),
    ("ul", &[]),
    ("ol", &[]),
    ("li", &[]),
    ("h1", &["dir"]),
    ("h2", &["id"]),
    ("h3", &["id"]),
    ("h4", &[]),
    ("h5", &["id"]),
    ("b", &[]),
    ("br", &[]),
    ("bdi", &[]),
    ("figure", &[]),
    ("details", &["open"]),
    ("summary", &[]),
    ("table", &["class"]),
    ("caption", &[]),
    ("thead", &[]),
    ("tbody", &[]),
    ("tr", &[]),
    ("th", &["scope", "class"]),
    ("td", &["class"]),
    ("dl", &[]),
    ("dt", &[]),
    ("dd", &[]),
    ("sub", &[]),
    ("p", &["class", "dir"]),
    ("span", &["class", "style", "data-n"]),
    (
        "svg",
        &[
            "class",
            "viewBox",
            "preserveAspectRatio",
            "role",
            "aria-label",
        ],
    ),
    ("rect", &["y", "width", "height"]),
    ("path", &["style", "d"]),
    ("main", &[]),
    ("article", &["tabindex", "aria-labelledby"]),
    ("small", &[]),
    ("div", &["class", "dir", "style"]),
    ("mark", &["class", "style", "data-n"]),
    ("a", &["class", "style", "data-n", "id", "href"]),
    ("del", &["dir"]),
    ("ins", &["dir"]),
    ("i", &[]),
];

/// A page as a browser reads it.
#[derive(Default)]
pub struct Reader {
    open: Vec<String>,
    /// Levels of the headings, in order.
    pub headings: Vec<u8>,
    /// Identifiers, and those that links lead to.
    pub ids: Vec<String>,
    pub links: Vec<String>,
    /// The texts of links and of the heads of folded parts.
    pub stops: Vec<String>,
    /// All text, of documents and ours.
    pub all: String,
    /// The texts of the documents in articles, without the marks for characters nobody sees.
    pub documents: Vec<String>,
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
                "href" => {
                    let target = value.strip_prefix('#').expect("a link within the page");
                    self.links.push(target.to_string());
                }
                "id" => self.ids.push(value.to_string()),
                "aria-labelledby" => self.links.push(value.to_string()),
                "style" => assert!(is_style(value), "{value}"),
                _ => {}
            }
        }
        let has = |name: &str| tag.attrs.iter().any(|other| &*other.name.local == name);
        assert!(
            !has("tabindex") || has("aria-labelledby"),
            "{name} has no name"
        );
        assert!(
            name != "article" || has("aria-labelledby"),
            "{name} has no name"
        );
        let is_in_picture = self.open.last().is_some_and(|open| open == "svg");
        assert!(
            !is_in_picture || ["rect", "path"].contains(&&*name),
            "{name} in a picture"
        );
        if ["a", "summary"].contains(&&*name) {
            self.stops.push(String::new());
        }
        if let Some(level) = name.strip_prefix('h').and_then(|level| level.parse().ok()) {
            self.headings.push(level);
        }
        if name == "article" {
            self.documents.push(String::new());
        }
        if !tag.self_closing && !VOID.contains(&&*name) {
            self.open.push(name);
        }
    }

    fn text(&mut self, text: &StrTendril) {
        if self.open.last().is_none_or(|open| open != "style") {
            self.all.push_str(text);
        }
        if let (true, Some(stop)) = (
            self.open
                .iter()
                .any(|open| open == "a" || open == "summary"),
            self.stops.last_mut(),
        ) {
            stop.push_str(text);
        }
        let last = |name| self.open.iter().rposition(|open| open == name);
        let is_marked = last("i").is_some();
        let is_document = last("article").is_some() && last("div") > last("article") && !is_marked;
        if let (true, Some(document)) = (is_document, self.documents.last_mut()) {
            document.push_str(text);
        }
    }
}

/// Returns whether a style sets nothing but numbers of ours.
fn is_style(style: &str) -> bool {
    style.split(';').all(|part| {
        let (name, value) = part.split_once(':').unwrap_or_default();
        let value = value.strip_suffix('%').unwrap_or(value);
        ["--h", "--all", "--part"].contains(&name) && value.parse::<f64>().is_ok()
    })
}

/// Checks a page: its elements are closed, its links lead somewhere, its identifiers differ.
pub fn read(page: String) -> Reader {
    assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("\n</html>\n"));
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(page));
    let tokenizer = Tokenizer::new(Sink(RefCell::default()), Default::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let reader = tokenizer.sink.0.into_inner();
    assert!(reader.open.is_empty(), "{:?}", reader.open);
    let ids: HashSet<&String> = reader.ids.iter().collect();
    assert_eq!(ids.len(), reader.ids.len(), "identifiers repeat");
    let lost = reader.links.iter().find(|link| !ids.contains(link));
    assert_eq!(lost, None, "a link leads nowhere");
    assert!(
        reader.stops.iter().all(|stop| !stop.is_empty()),
        "a link has no name"
    );
    reader
}

/// Documents that would get out of their element, or run a script.
pub const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "</div></article><script src=//evil.example/x.js></script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)' x='",
    "&lt;script&gt; &#60;b&#62; &amp; &notanentity; &",
    "<!-- <style>*{display:none}</style> --> <![CDATA[ x ]]>",
    "</style></title></textarea><svg onload=alert(1)>",
    "javascript:alert(1) data:text/html,<b>x</b>",
];
