//! The page of `near_dup_report`, read by a browser's HTML parser.

mod html;

use html::{HOSTILE, Reader};
use neardup::numbered::NumberedTexts;
use neardup::report::{Census, CensusRow, CollectionReport, Date, Facts, ReportDocuments};
use proptest::prelude::*;

/// A document of the tests.
#[derive(Clone, Default)]
struct Doc {
    key: String,
    source: Option<String>,
    day: Option<i32>,
    text: String,
    canonical: u32,
    similarity: f64,
}

fn doc(canonical: u32, text: &str) -> Doc {
    Doc {
        key: text.to_string(),
        text: text.to_string(),
        canonical,
        similarity: 0.9,
        ..Doc::default()
    }
}

/// Returns a date of a calendar with months of 30 days.
fn date_of(day: i32) -> Date {
    Date {
        year: 2000 + day.div_euclid(360),
        month: (day.rem_euclid(360) / 30 + 1) as u8,
        day: (day.rem_euclid(30) + 1) as u8,
    }
}

struct Docs<'d>(&'d [Doc]);

impl ReportDocuments for Docs<'_> {
    fn read(&mut self, row: u32) -> neardup::Result<[Vec<u8>; 2]> {
        let Doc { key, text, .. } = &self.0[row as usize];
        Ok([key, text].map(|text| text.clone().into_bytes()))
    }

    fn check(&mut self) {}
}

/// Returns the page of documents, the last `uncompared` of which were not compared.
fn page_of(title: &str, docs: &[Doc], groups: usize, uncompared: usize) -> neardup::Result<String> {
    let mut sources = NumberedTexts::default();
    let rows = docs.iter().map(|doc| CensusRow {
        canonical: doc.canonical,
        similarity: doc.similarity,
        facts: Facts {
            bytes: doc.text.len() as u32,
            source: doc
                .source
                .as_ref()
                .map(|source| sources.number(source.as_bytes()).expect("memory")),
            day: doc.day,
        },
    });
    let mut rows: Vec<CensusRow> = rows.collect();
    let others = rows.split_off(docs.len() - uncompared);
    let others = others.into_iter().map(|row| row.facts);
    let report = CollectionReport {
        title: title.as_bytes(),
        threshold: 0.8,
        census: &Census::new(rows, others.collect())?,
        sources: &sources,
        groups,
        date_of,
    };
    report.page(&mut Docs(docs))
}

fn page(title: &str, docs: &[Doc], groups: usize) -> String {
    page_of(title, docs, groups, 0).unwrap()
}

fn read(title: &str, docs: &[Doc], groups: usize) -> Reader {
    let reader = html::read(page(title, docs, groups));
    assert_eq!(reader.headings[0], 1);
    assert!(
        reader
            .headings
            .windows(2)
            .all(|pair| pair[1] <= pair[0] + 1),
        "a level of headings is left out: {:?}",
        reader.headings
    );
    reader
}

#[test]
fn a_small_collection() {
    let mut docs = vec![
        doc(0, "the harbor bridge is closed until May"),
        doc(0, "the harbor bridge is closed until June"),
        doc(0, "THE HARBOR BRIDGE IS CLOSED UNTIL MAY"),
        doc(3, "alone"),
    ];
    for (number, doc) in docs.iter_mut().enumerate() {
        doc.key = format!("key {number}");
        doc.source = (number != 2).then(|| format!("source {}", number % 2));
        doc.day = Some(number as i32);
    }
    docs[1].similarity = 0.85;
    let reader = read("Notices", &docs, 100);
    assert_eq!(reader.headings, [1, 2, 2, 2, 2, 3, 4, 5, 5, 4, 5, 5]);
    let texts = [&docs[0], &docs[1], &docs[0], &docs[2]].map(|doc| &*doc.text);
    assert_eq!(reader.documents, texts);
    for part in [
        "Notices",
        "Group 1: 3 documents",
        "Canonical: key 0 source 0 2000-01-01",
        "Similarity 0.850: rewritten\nonly in the canonical document: May\nonly in this one: June",
        "Similarity 0.900: format",
    ] {
        assert!(reader.all.contains(part), "{part}:\n{}", reader.all);
    }
    assert!(!reader.all.contains("key 3"));
    let stops = [
        "Groups and similarities",
        "By source",
        "Over time",
        "Largest groups",
        "Side by side: key 1",
        "Side by side: key 2",
    ];
    assert_eq!(reader.stops, stops);
}

#[test]
fn no_document_and_no_group() {
    let reader = read("Nothing", &[], 100);
    assert_eq!(reader.headings, [1]);
    assert!(reader.all.contains("There are no documents."));
    let reader = read("Alone", &[doc(0, "one"), doc(1, "two")], 100);
    assert_eq!(reader.headings, [1]);
    assert!(reader.all.contains("No two documents are near-duplicates."));
}

#[test]
fn hostile_documents() {
    for hostile in HOSTILE {
        let docs: Vec<Doc> = HOSTILE
            .iter()
            .map(|other| Doc {
                source: Some(hostile.to_string()),
                text: format!("{other} {hostile}"),
                ..doc(0, hostile)
            })
            .collect();
        let reader = read(hostile, &docs, 100);
        let shown = reader
            .documents
            .iter()
            .filter(|text| text.contains(hostile));
        assert_eq!(shown.count(), reader.documents.len());
        assert_eq!(reader.documents.len(), 14);
    }
}

#[test]
fn what_is_left_out_is_said() {
    let mut docs: Vec<Doc> = (0..60).map(|i| doc(0, &format!("text {i}"))).collect();
    docs.push(doc(60, "another"));
    docs.push(doc(60, "another!"));
    let reader = read("Many", &docs, 1);
    assert!(reader.all.contains("The 20 least similar of 59 members"));
    assert!(reader.all.contains("1 of 2 groups are shown."));
    assert_eq!(reader.documents.len(), 40);
    let long = "long ".repeat(20_000);
    let reader = read("Long", &[doc(0, &long), doc(0, &format!("{long} x"))], 100);
    assert!(reader.all.contains("6,554 words in the first 32 kB"));
    assert!(reader.all.contains("added at end"));
    assert!(reader.documents[0].len() < long.len());
    assert!(reader.all.len() < 3 * long.len());
}

#[test]
fn ten_thousand_groups_end_somewhere() {
    let text = "words of a text that is neither short nor long ".repeat(20);
    let docs: Vec<Doc> = (0..20_000)
        .map(|i| Doc {
            text: format!("{text} {i}"),
            key: i.to_string(),
            ..doc(i / 2 * 2, "")
        })
        .collect();
    let page = page("Ten thousand", &docs, 10_000);
    assert!(page.len() < 34 << 20, "{}", page.len());
    let reader = html::read(page);
    assert!(reader.all.contains("members have no side-by-side view"));
    assert!(reader.headings.iter().filter(|level| **level == 3).count() > 5000);
}

#[test]
fn only_documents_that_are_cut_say_so() {
    let long = "long ".repeat(20_000);
    let reader = read("Long", &[doc(0, &long), doc(0, "long and short")], 100);
    assert!(reader.all.contains("6,554 words in the first 32 kB"));
    assert!(reader.all.contains("3 words\n"));
}

#[test]
fn documents_that_were_not_compared_are_counted() {
    let mut docs = vec![
        doc(0, "a text"),
        doc(0, "a  text"),
        doc(2, "..."),
        doc(3, ""),
    ];
    for (number, doc) in docs.iter_mut().enumerate() {
        doc.source = Some(["east", "west"][number % 2].to_string());
        doc.day = (number != 3).then_some(30 * number as i32);
    }
    let reader = html::read(page_of("Some", &docs, 100, 2).unwrap());
    for part in [
        "documents4",
        "redundant documents1 (25.0\u{a0}%)",
        "redundant bytes7 (43.8\u{a0}%)",
        "Not compared, without a word or a signature: 2.",
        "west21 (50.0\u{a0}%)",
        "east20 (0.0\u{a0}%)",
        "2000-0310",
        "Without a day: 1.",
    ] {
        assert!(reader.all.contains(part), "{part}:\n{}", reader.all);
    }
}

#[test]
fn nearly_1_is_not_1() {
    let almost = Doc {
        similarity: 0.99995,
        ..doc(0, "other")
    };
    let reader = read("Almost", &[doc(0, "one"), almost], 100);
    assert!(reader.all.contains("Similarity >\u{a0}0.999: "));
}

#[test]
fn identical_documents_need_no_view() {
    let reader = read("Copies", &[doc(0, "one text"), doc(0, "one text")], 100);
    assert!(reader.all.contains("identical"));
    assert!(reader.documents.is_empty());
}

proptest! {
    #[test]
    fn any_documents(
        docs in prop::collection::vec(("[a-c<>&\"' \u{5d0}\n]{0,40}", 0u32..3, any::<Option<i32>>()), 3..12)
    ) {
        let docs: Vec<Doc> = docs.into_iter().enumerate().map(|(number, (text, canonical, day))| Doc {
            day,
            source: Some(text.clone()),
            ..doc(if number < 3 { number as u32 } else { canonical }, &text)
        }).collect();
        read(&docs[0].text, &docs, 100);
    }
}
