//! The measures of a pair, on examples worked out by hand and on generated pairs.

use neardup::align::{
    DifferenceKind, Matching, Similarity, chunk_similarity, common_chunks, explain,
};
use neardup::hash::Key;
use neardup::set::jaccard;
use neardup::shingle::{Shingling, shingle_hashes};
use neardup::text::{Fold, Unit};
use proptest::prelude::*;

fn similarity(a: &str, b: &str, matching: Matching) -> Similarity {
    chunk_similarity(a.as_bytes(), b.as_bytes(), 5, matching, &mut || {}).unwrap()
}

fn resemblance(a: &str, b: &str, k: i64) -> f64 {
    let shingling = Shingling::new(k, Unit::Word, Fold::Case).unwrap();
    let key = Key::from_seed(0);
    let [a, b] =
        [a, b].map(|doc| shingle_hashes(doc.as_bytes(), &shingling, &key, &mut || {}).unwrap());
    jaccard(&a, &b, &mut || {})
}

/// Returns words that occur nowhere else.
fn words(prefix: &str, count: usize) -> String {
    let words: Vec<String> = (0..count).map(|i| format!("{prefix}{i}")).collect();
    words.join(" ")
}

#[test]
fn a_short_mail_and_its_reply() {
    let (mail, reply) = (
        "Lunch at noon on Friday?",
        "> Lunch at noon on Friday?\nYes!",
    );
    assert_eq!(resemblance(mail, reply, 5), 0.5);
    let found = similarity(mail, reply, Matching::Literal);
    assert_eq!((found.common, found.longer, found.shorter), (5, 6, 5));
    assert_eq!(found.s_j(), 5.0 / 6.0);
}

#[test]
fn a_sentence_of_12_shingles_pasted_twice() {
    let once = words("w", 16);
    let twice = format!("{once}. {once}.");
    assert_eq!(resemblance(&once, &twice, 5), 0.75);
    assert_eq!(similarity(&once, &twice, Matching::Literal).s_l(), 0.5);
    let information = similarity(&once, &twice, Matching::Information);
    assert_eq!((information.s_l(), information.s_j()), (1.0, 1.0));
}

#[test]
fn overlapping_chunks() {
    let apart = "And cigars for the mayor? Later on, he said, I will need money and luck.";
    let joined = "I will need money and cigars for the mayor.";
    let literal = similarity(apart, joined, Matching::Literal);
    assert_eq!(
        (literal.common, literal.longer, literal.shorter),
        (5, 15, 9)
    );
    let information = similarity(apart, joined, Matching::Information);
    assert_eq!(
        (information.common, information.longer, information.shorter),
        (9, 15, 9)
    );
    assert_eq!(resemblance(apart, joined, 5), 2.0 / 14.0);
    let texts = |matching| -> Vec<String> {
        common_chunks(apart.as_bytes(), joined.as_bytes(), 5, matching, &mut || {})
            .unwrap()
            .into_iter()
            .map(|chunk| joined[chunk.b.bytes].to_owned())
            .collect()
    };
    assert_eq!(texts(Matching::Literal), ["and cigars for the mayor"]);
    assert_eq!(
        texts(Matching::Information),
        ["and cigars for the mayor", "I will need money and"]
    );
}

/// 42 and 43 words in common, 15 and 12 others: 69 %, 76 %, 85 %.
#[test]
fn two_chunks_in_a_hundred_words() {
    let chunks = [words("c", 42), words("d", 43)];
    let a = format!(
        "{} {} {} {}",
        words("a", 7),
        chunks[0],
        words("x", 8),
        chunks[1]
    );
    let b = format!(
        "{} {} {} {}",
        chunks[0],
        words("b", 5),
        chunks[1],
        words("y", 7)
    );
    let found = similarity(&a, &b, Matching::Literal);
    assert_eq!((found.common, found.longer, found.shorter), (85, 100, 97));
    let percent = |share: f64| (share * 100.0).round() as i32;
    assert_eq!(
        [resemblance(&a, &b, 5), found.s_j(), found.s_l()].map(percent),
        [69, 76, 85]
    );
}

/// Chunks that count for S_J and for resemblance.
#[test]
fn what_a_chunk_counts() {
    for (length, counted, shingles) in [
        (3, 0, 0),
        (4, 0, 0),
        (5, 5, 1),
        (6, 6, 2),
        (7, 7, 3),
        (100, 100, 96),
    ] {
        let chunk = words("c", length);
        let a = format!("{} {chunk} {}", words("a", 9), words("x", 9));
        let b = format!("{} {chunk} {}", words("b", 9), words("y", 9));
        assert_eq!(similarity(&a, &b, Matching::Literal).common, counted);
        assert_eq!(similarity(&a, &b, Matching::Information).common, counted);
        let union = 2 * (18 + length - 4) - shingles;
        let expected = shingles as f64 / union as f64;
        assert!(
            (resemblance(&a, &b, 5) - expected).abs() < 1e-12,
            "{length}"
        );
    }
}

/// Returns two documents without internal repeats: chunks in two orders, with words of their own between them.
fn pair_without_repeats() -> impl Strategy<Value = (String, String)> {
    let chunk = (1usize..40, any::<u32>(), 1usize..12, 1usize..12);
    prop::collection::vec(chunk, 0..8).prop_map(|chunks| {
        let mut in_b: Vec<usize> = (0..chunks.len()).collect();
        in_b.sort_by_key(|&i| chunks[i].1);
        let part = |i: usize, own: &str, gap: usize| {
            format!(
                "{} {} ",
                words(&format!("c{i}x"), chunks[i].0),
                words(&format!("{own}{i}x"), gap)
            )
        };
        let a = (0..chunks.len())
            .map(|i| part(i, "a", chunks[i].2))
            .collect();
        let b = in_b.iter().map(|&i| part(i, "b", chunks[i].3)).collect();
        (a, b)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    /// S_R <= S_J <= S_L, and S_R = (C - n (w - 1)) / (L + S - C + (n - 2) (w - 1)).
    #[test]
    fn the_three_measures_in_order((a, b) in pair_without_repeats()) {
        const W: usize = 5;
        let found = similarity(&a, &b, Matching::Literal);
        let s_r = resemblance(&a, &b, W as i64);
        prop_assert!(s_r <= found.s_j() && found.s_j() <= found.s_l());
        let chunks = common_chunks(a.as_bytes(), b.as_bytes(), W as i64, Matching::Literal, &mut || {}).unwrap();
        prop_assert_eq!(chunks.iter().map(|c| c.words as usize).sum::<usize>(), found.common);
        if found.shorter >= W {
            let (n, c) = (chunks.len(), found.common);
            let union = found.longer + found.shorter + n * (W - 1) - c - 2 * (W - 1);
            prop_assert!((s_r - (c - n * (W - 1)) as f64 / union as f64).abs() < 1e-12);
        }
    }
}

#[test]
fn positions_of_chunks() {
    let (a, b) = (
        "Ça va? One, two; THREE four five.",
        "— one two three four five six",
    );
    let chunks =
        common_chunks(a.as_bytes(), b.as_bytes(), 5, Matching::Literal, &mut || {}).unwrap();
    assert_eq!(chunks.len(), 1);
    let chunk = &chunks[0];
    assert_eq!((chunk.words, chunk.a.word, chunk.b.word), (5, 2, 0));
    assert_eq!(
        (chunk.a.chars.clone(), chunk.b.chars.clone()),
        (7..32, 2..25)
    );
    assert_eq!(&a[chunk.a.bytes.clone()], "One, two; THREE four five");
    assert_eq!(&b[chunk.b.bytes.clone()], "one two three four five");
}

fn explained(a: &str, b: &str) -> (DifferenceKind, Vec<String>, Vec<String>) {
    let found = explain(a.as_bytes(), b.as_bytes(), &mut || {}).unwrap();
    let text = |words: Vec<Vec<u8>>| {
        words
            .into_iter()
            .map(|w| String::from_utf8(w).unwrap())
            .collect()
    };
    (found.kind, text(found.only_in_a), text(found.only_in_b))
}

#[test]
fn kinds_of_difference() {
    const INVOICE: &str =
        "Invoice 2041 of 3 March: 12 chairs at 80.00, total 960.00 EUR, due in 30 days.";
    let cases = [
        (INVOICE.to_owned(), DifferenceKind::Identical, "", ""),
        (
            INVOICE.to_uppercase().replace(' ', "\n"),
            DifferenceKind::Format,
            "",
            "",
        ),
        (
            INVOICE.replace("960", "690").replace("2041", "2042"),
            DifferenceKind::Numbers,
            "2041 960",
            "2042 690",
        ),
        (
            INVOICE.replace("12 chairs at 80", "80 chairs at 12"),
            DifferenceKind::Numbers,
            "12 80",
            "80 12",
        ),
        (
            format!("Second reminder. {INVOICE}"),
            DifferenceKind::AddedAtStart,
            "",
            "Second reminder",
        ),
        (
            format!("{INVOICE} Thank you!"),
            DifferenceKind::AddedAtEnd,
            "",
            "Thank you",
        ),
        (
            INVOICE.replace("total", "plus shipping, total"),
            DifferenceKind::AddedInMiddle,
            "",
            "plus shipping",
        ),
        (
            INVOICE.replace("Invoice ", ""),
            DifferenceKind::RemovedAtStart,
            "Invoice",
            "",
        ),
        (
            INVOICE.replace("chairs ", ""),
            DifferenceKind::RemovedInMiddle,
            "chairs",
            "",
        ),
        (
            INVOICE.replace(" EUR, due in 30 days.", ""),
            DifferenceKind::Truncated,
            "EUR due in 30 days",
            "",
        ),
        (
            INVOICE.replace(", due in 30 days.", ", d"),
            DifferenceKind::Truncated,
            "due in 30 days",
            "d",
        ),
        (
            "Due in 30 days. Invoice 2041 of 3 March: 12 chairs at 80.00, total 960.00 EUR".into(),
            DifferenceKind::Reordered,
            "",
            "",
        ),
        (
            INVOICE.replace("chairs", "tables"),
            DifferenceKind::Rewritten,
            "chairs",
            "tables",
        ),
        (
            String::new(),
            DifferenceKind::Rewritten,
            "Invoice 2041 of 3 March 12 chairs at 80 00 total 960 EUR due in 30 days",
            "",
        ),
    ];
    for (other, kind, only_in_a, only_in_b) in cases {
        let (found, a, b) = explained(INVOICE, &other);
        assert_eq!(
            (found, a.join(" "), b.join(" ")),
            (kind, only_in_a.into(), only_in_b.into()),
            "{other}"
        );
    }
}
