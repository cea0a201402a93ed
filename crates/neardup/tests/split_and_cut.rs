//! Parts of a document, and a document without some parts.

use neardup::passages::cut;
use neardup::text::{SplitBy, split};
use proptest::prelude::*;

fn parts(doc: &str, by: SplitBy) -> Vec<(usize, String)> {
    let mut parts = Vec::new();
    split(doc, by, &mut || (), &mut |start, part| {
        parts.push((start, part.to_owned()))
    });
    parts
}

fn texts(doc: &str, by: SplitBy) -> Vec<String> {
    parts(doc, by).into_iter().map(|part| part.1).collect()
}

#[test]
fn sentences_of_several_scripts() {
    let doc = "Mr. Smith paid 3.50 dollars. \"Really?\" Yes! 今天下雨。我们回家吧。 \
               هل أنت هنا؟ نعم. मैं घर जाता हूँ। वह आता है।";
    let expected = [
        "Mr.",
        "Smith paid 3.50 dollars.",
        "\"Really?\"",
        "Yes!",
        "今天下雨。",
        "我们回家吧。",
        "هل أنت هنا؟",
        "نعم.",
        "मैं घर जाता हूँ।",
        "वह आता है।",
    ];
    assert_eq!(texts(doc, SplitBy::Sentence), expected);
}

/// Behind a period, UAX #29 looks for a letter from every space or bracket anew: quadratic time.
#[test]
fn sentences_end_in_long_stretches_without_letters() {
    for stretch in [")", "\u{2019}\u{301}", " ) "] {
        let doc = format!("A.{}b", stretch.repeat(1_000_000));
        let sentences = parts(&doc, SplitBy::Sentence);
        let (first, last) = (&sentences[0], &sentences[sentences.len() - 1]);
        assert!(first.1.starts_with("A.") && last.1.ends_with('b'));
        let longest = sentences.iter().map(|part| part.1.chars().count()).max();
        assert!(longest <= Some(1001), "{longest:?}");
    }
    let rule = format!("Mr.{}smith left.", " ".repeat(900));
    assert_eq!(texts(&rule, SplitBy::Sentence), [rule]);
}

#[test]
fn lines_and_paragraphs() {
    let doc = "\n  one\ntwo \r\n \t\r\nthree\rfour\u{2028}five\u{85}six\u{b}seven\u{c}\n\neight\u{2029}nine\n";
    let lines = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    assert_eq!(texts(doc, SplitBy::Line), lines);
    let paragraphs = [
        (3, "one\ntwo"),
        (17, "three\rfour\u{2028}five\u{85}six\u{b}seven"),
        (45, "eight"),
        (51, "nine"),
    ];
    assert_eq!(
        parts(doc, SplitBy::Paragraph),
        paragraphs.map(|(start, text)| (start, text.into()))
    );
}

fn document() -> impl Strategy<Value = String> {
    let pieces = [
        "\n", "\r\n", "\r", "\n\n", " ", "\u{a0}", "\u{2029}", "\u{3000}", "one", "Two", ". ",
        "! ", "。", "字", "🙂", "e\u{301}", "3.5", "\"", "\u{85}",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn parts_and_white_space_are_the_document(doc in document()) {
        for by in [SplitBy::Paragraph, SplitBy::Line, SplitBy::Sentence] {
            let mut rest = doc.chars();
            let mut at = 0;
            for (start, part) in parts(&doc, by) {
                let between: String = rest.by_ref().take(start - at).collect();
                prop_assert!(between.chars().all(char::is_whitespace), "{between:?}");
                let length = part.chars().count();
                prop_assert_eq!(rest.by_ref().take(length).collect::<String>(), part);
                at = start + length;
            }
            prop_assert!(rest.all(char::is_whitespace));
        }
    }

    #[test]
    fn what_is_cut_is_gone(doc in document(), mut ends in prop::collection::vec(0..50usize, 0..8)) {
        ends.sort_unstable();
        let spans = || ends.chunks_exact(2).map(|span| span[0]..span[1]);
        let characters = doc.chars().count();
        let left = cut(&doc, spans(), "", doc.len(), &mut || ());
        if spans().any(|span| span.end > characters) {
            prop_assert!(left.is_err());
        } else {
            let is_cut = |at: &usize| spans().any(|span| span.contains(at));
            let kept: String = (0..).zip(doc.chars()).filter(|(at, _)| !is_cut(at)).map(|x| x.1).collect();
            prop_assert_eq!(left, Ok(kept));
        }
    }
}

#[test]
fn a_replacement_stands_for_every_span() {
    assert_eq!(
        cut("größer", [0..2, 4..6].into_iter(), "…", 10, &mut || ()),
        Ok("…öß…".into())
    );
    assert!(cut("größer", [0..2, 4..6].into_iter(), "…", 9, &mut || ()).is_err());
    let message = cut("abc", std::iter::once(1..4), "", 3, &mut || ())
        .unwrap_err()
        .to_string();
    assert_eq!(message, "span [2,5) reaches outside the document");
}
