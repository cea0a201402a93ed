//! The page of `near_dup_report`, read by a browser's HTML parser.

mod html;

use html::{HOSTILE, Reader};
use neardup::report::{Census, Document, MEMBERS, Report, Row};
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

/// Returns the page, as the extension makes it.
fn page(title: &str, docs: &[Doc], groups: usize) -> String {
    let mut sources: Vec<Vec<u8>> = Vec::new();
    let rows = docs.iter().map(|doc| Row {
        canonical: doc.canonical,
        similarity: doc.similarity,
        bytes: doc.text.len() as u32,
        source: doc.source.as_ref().map(|source| {
            let known = sources.iter().position(|known| known == source.as_bytes());
            known.unwrap_or_else(|| {
                sources.push(source.clone().into_bytes());
                sources.len() - 1
            }) as u32
        }),
        day: doc.day,
    });
    let rows = rows.collect();
    let census = Census::new(rows).unwrap();
    let mut report = Report::new(title.as_bytes(), 0.8, &census, &sources, 0).unwrap();
    let document = |number: u32| {
        let doc = &docs[number as usize];
        Document {
            key: doc.key.as_bytes(),
            source: doc.source.as_ref().map(|source| source.as_bytes()),
            day: doc.day,
            text: doc.text.as_bytes(),
        }
    };
    for group in census.largest(groups, MEMBERS).unwrap() {
        let canonical = document(group.canonical);
        if report.begin_group(&canonical, &group) {
            for &member in &group.members {
                let similarity = census.row(member).similarity;
                report
                    .member(&canonical, &document(member), similarity, &mut || {})
                    .unwrap();
            }
            report.end_group();
        }
    }
    report.finish(&census).unwrap()
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
    assert_eq!(reader.headings, [1, 2, 2, 2, 2, 3, 4, 4, 4, 4]);
    let texts = [&docs[0], &docs[1], &docs[0], &docs[2]].map(|doc| &*doc.text);
    assert_eq!(reader.documents, texts);
    for part in [
        "Notices",
        "Group 1: 3 documents",
        "Canonical: key 0 source 0 2000-01-01",
        "0.850rewrittenonly in the canonical document: Mayonly in this one: June",
        "0.900format",
    ] {
        assert!(reader.all.contains(part), "{part}:\n{}", reader.all);
    }
    assert!(!reader.all.contains("key 3"));
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
    assert!(reader.all.contains("The first 32 kB of each document."));
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
