//! Compares copied passages with all windows of a small collection.

use crate::collection::definition::{Oracle, Start};
use crate::collection::{Collection, copies, frequent};
use neardup::passages::{CopiedPassage, FrequentPassage, Hashes};
use neardup::text::Fold;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// The numbers of classes in a table: a few, and enough for all of these collections.
const ROOM: [usize; 2] = [2, 1 << 20];

const FOLDS: [Fold; 3] = [Fold::None, Fold::Case, Fold::Marks];

fn check(documents: &[String], min_words: usize) {
    for fold in FOLDS {
        let collection = Collection::new(documents);
        let oracle = Oracle::new(documents, min_words, fold);
        let rows = oracle.rows();
        check_laws(&oracle, &rows);
        let starts = collection.starts();
        let expected: Vec<CopiedPassage> = rows
            .iter()
            .map(|&(place, source, words)| CopiedPassage {
                bytes: oracle.bytes(place, words, starts),
                source: oracle.bytes(source, words, starts),
                words: words as u64,
            })
            .collect();
        let passages: Vec<FrequentPassage> = oracle
            .frequent()
            .into_iter()
            .map(|(documents, places, words, first)| FrequentPassage {
                documents: documents as u32,
                places: places as u32,
                words: words as u64,
                bytes: oracle.bytes(first, words, starts),
            })
            .collect();
        for room in ROOM {
            let hashes = Hashes::from_seed(0);
            let found = copies(&collection, min_words, fold, (hashes, room)).unwrap();
            assert_eq!(
                found.as_ref(),
                Some(&expected),
                "{documents:?}, {min_words} words, {fold}"
            );
            for most in [0, 1, 3, usize::MAX] {
                let found = frequent(&collection, min_words, fold, (room, most)).unwrap();
                let expected = &passages[..passages.len().min(most)];
                assert_eq!(found, expected, "{documents:?}, {min_words} words, {fold}");
            }
        }
    }
}

/// Checks the laws that follow from the definition.
fn check_laws(oracle: &Oracle, rows: &[(Start, Start, usize)]) {
    let sources = oracle.sources();
    let mut source_of: HashMap<Start, Start> = HashMap::new();
    for &(place, source, words) in rows {
        for n in 0..words {
            let [(document, word), (other, original)] = [place, source];
            let [word, original] = [(document, word + n), (other, original + n)];
            assert!(original < word);
            assert_eq!(
                oracle.texts[word.0][word.1].0,
                oracle.texts[original.0][original.1].0
            );
            source_of.insert(word, original);
        }
    }
    let begins = |place: &Start| rows.iter().filter(|row| row.0 == *place).count();
    let mut in_windows = BTreeSet::new();
    for place in sources.keys() {
        assert!(begins(place) <= 1);
        in_windows.extend((0..oracle.min_words).map(|n| (place.0, place.1 + n)));
    }
    let in_rows: BTreeSet<Start> = source_of.keys().copied().collect();
    assert_eq!(in_rows, in_windows);
    // Each cut word occurs uncut somewhere: sources come earlier, so this ends.
    for word in &in_rows {
        let mut origin = *word;
        while let Some(earlier) = source_of.get(&origin) {
            origin = *earlier;
        }
        assert!(!in_rows.contains(&origin));
    }
    check_cut(oracle, &in_rows);
}

/// Between two cuts, no window occurs twice without overlapping.
fn check_cut(oracle: &Oracle, cut: &BTreeSet<Start>) {
    for (place, first) in oracle.windows() {
        let is_cut = (0..oracle.min_words).any(|n| cut.contains(&(place.0, place.1 + n)));
        let overlaps = first.0 == place.0 && first.1 + oracle.min_words > place.1;
        assert!(is_cut || overlaps);
    }
}

#[test]
fn different_words_of_one_hash_are_noticed() {
    // The same words, and so the same anchor, in another order.
    let different = ["one two three four", "two three one four"].map(String::from);
    let same = ["One two three, four", "one two three four"].map(String::from);
    let rows = |documents, hashes| {
        let found = copies(&Collection::new(documents), 4, Fold::Case, (hashes, 9)).unwrap();
        found.map(|rows| rows.len())
    };
    assert_eq!(rows(&different, Hashes::weak()), None);
    assert_eq!(rows(&different, Hashes::from_seed(0)), Some(0));
    assert_eq!(rows(&same, Hashes::weak()), Some(1));
}

/// Returns documents of few words.
fn documents(letters: u8) -> impl Strategy<Value = Vec<String>> {
    let word = (0..letters).prop_map(|letter| format!("{} ", char::from(b'a' + letter)));
    let text = prop::collection::vec(word, 0..24).prop_map(|words| words.concat());
    prop::collection::vec(text, 0..6)
}

/// Returns documents made of pieces of each other, some of them periodic.
fn related() -> impl Strategy<Value = Vec<String>> {
    let source = "a b c d e f g a b c h i j k l a a a a a b a b a b a b m n o p b c d e";
    let words: Vec<&str> = source.split(' ').collect();
    let piece = (0..words.len(), 1..12usize, 1..5usize).prop_map(move |(start, length, times)| {
        let end = words.len().min(start + length);
        let times = if length < 5 { times } else { 1 };
        format!("{} ", words[start..end].join(" ")).repeat(times)
    });
    let text = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    prop::collection::vec(text, 0..6)
}

/// Returns documents of code points that fold to several words, compose, are dropped, or are words by themselves.
fn scripts() -> impl Strategy<Value = Vec<String>> {
    let pieces = [
        "½",
        "½\u{338}",
        "㍿",
        "\u{FDFA}",
        "e\u{301}",
        "é",
        "E",
        " ",
        ", ",
        "\u{ad}",
        "今",
        "天\u{301}",
        "\u{1112}\u{1161}\u{11ab}",
        "한",
        "ก",
        "x",
        "1",
        "⁄",
        "\u{301}",
        "ß",
        "\u{200d}",
    ];
    let text = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..30)
        .prop_map(|pieces| pieces.concat());
    prop::collection::vec(text, 0..5)
}

/// Returns documents longer than the part that is read at once, made of a few sentences.
fn long() -> impl Strategy<Value = Vec<String>> {
    let sentence = (0..6usize, 1..40usize).prop_map(|(kind, times)| match kind {
        0 => "zero ".repeat(times),
        1 => "½".repeat(times),
        2 => format!("{} ", "long".repeat(40 * times)),
        3 => " . ".repeat(40 * times),
        4 => (0..times).map(|n| format!("{n} ")).collect(),
        _ => (0..times).map(|n| format!("wörd{n}, ")).collect(),
    });
    let text = prop::collection::vec(sentence, 0..30).prop_map(|sentences| sentences.concat());
    prop::collection::vec(text, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn as_the_definition_has_it(documents in documents(3), min_words in 1..8usize) {
        check(&documents, min_words);
    }

    #[test]
    fn as_the_definition_has_it_for_one_word(documents in documents(1), min_words in 1..8usize) {
        check(&documents, min_words);
    }

    #[test]
    fn as_the_definition_has_it_for_related_documents(documents in related(), min_words in 1..9usize) {
        check(&documents, min_words);
    }

    #[test]
    fn as_the_definition_has_it_for_every_script(documents in scripts(), min_words in 1..6usize) {
        check(&documents, min_words);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn as_the_definition_has_it_for_long_documents(documents in long(), min_words in 1..50usize) {
        check(&documents, min_words);
    }
}

#[test]
fn words_of_every_script() {
    let documents = [
        "Правила: НЕ входить без стука! 入门须知请先敲门 ก่อนเข้า",
        "x правила не входить, без стука y 须知请先敲 ก่อน",
        "قِف هنا من فضلك",
        "قف هنا من فضلك",
    ]
    .map(String::from);
    for min_words in 1..7 {
        check(&documents, min_words);
    }
}

#[test]
fn documents_without_words_and_identical_ones() {
    let documents =
        ["", "...", "a b c d", "", "a b c d", "A, B: C (D)", "a", "a"].map(String::from);
    for min_words in 1..6 {
        check(&documents, min_words);
    }
}

/// In a row of one word, all windows but the first are copies.
#[test]
fn a_row_of_one_word() {
    let documents = ["0 ".repeat(1000)];
    check(&documents, 50);
    let collection = Collection::new(&documents);
    let rows = copies(&collection, 50, Fold::Case, (Hashes::from_seed(1), 9)).unwrap();
    let expected = CopiedPassage {
        bytes: 100..1999,
        source: 0..1899,
        words: 950,
    };
    assert_eq!(rows, Some(vec![expected]));
}

/// Two texts of 2^n words whose polynomials agree modulo 2^64 for every base (Thue-Morse).
#[test]
fn texts_that_collide_in_polynomials() {
    let letter = |n: u32, flip: u32| match (n.count_ones() + flip).is_multiple_of(2) {
        true => "a ",
        false => "b ",
    };
    let documents = [0, 1].map(|flip| (0..4096).map(|n| letter(n, flip)).collect::<String>());
    let collection = Collection::new(&documents);
    let hashes = Hashes::from_seed(0);
    let rows = copies(&collection, 4096, Fold::Case, (hashes, 1 << 20)).unwrap();
    assert_eq!(rows, Some(Vec::new()));
}
