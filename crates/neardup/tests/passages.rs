//! Repeated passages, against all runs of words of a small collection.

use neardup::Result;
use neardup::passages::{
    DocumentReader, DocumentTexts, Fingerprints, Hashes, Listed, Listing, Numbering, PassagePlace,
    Passages, PlaceComparison, WindowCandidates,
};
use neardup::text::{Fold, words};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

struct Texts<'a>(&'a [String]);

impl DocumentTexts for Texts<'_> {
    fn length(&self, document: usize) -> usize {
        self.0[document].len()
    }

    fn read(&mut self, document: usize, bytes: Range<usize>, into: &mut Vec<u8>) -> Result<()> {
        into.extend_from_slice(&self.0[document].as_bytes()[bytes]);
        Ok(())
    }
}

/// Documents that are read together.
const TOGETHER: usize = 3;

/// Bytes of documents whose places are looked up together.
const BYTES_TOGETHER: usize = 100;

/// Returns the pieces of a collection, as they are read.
fn piece(documents: &[String]) -> impl Iterator<Item = &[u8]> {
    documents.iter().map(String::as_bytes)
}

/// Bytes in memory for little, and for all of these documents.
const MEMORIES: [usize; 2] = [0, 1 << 26];

fn passages(
    documents: &[String],
    min_words: usize,
    (hashes, memory): (Hashes, usize),
) -> Result<Passages<Vec<u8>>> {
    let check = &mut || ();
    let reader = DocumentReader::new(min_words, Fold::Case, hashes);
    let mut fingerprints = Fingerprints::<Vec<u8>>::new(reader, memory);
    for documents in documents.chunks(TOGETHER) {
        fingerprints.add(&reader.winnow(piece(documents), check)?, check)?;
    }
    let repeated = fingerprints.repeated(&mut |_| check())?;
    let mut candidates = WindowCandidates::<Vec<u8>>::new(&repeated, memory)?;
    for number in (0..repeated.pieces()).rev() {
        let documents = piece(&documents[repeated.documents(number)]);
        if number % 2 == 0 {
            candidates.find(&repeated, number, documents, check)?;
        } else {
            candidates.add(repeated.find(number, documents, check)?)?;
        }
    }
    while let Some(part) = candidates.next_part(&repeated, check)? {
        candidates.add_boundaries(repeated.boundaries::<Vec<u8>>(part, check)?)?;
    }
    let (mut batches, search) = candidates.batches(repeated, &mut |_| check())?;
    let mut numbering = Numbering::<Vec<u8>>::new(memory);
    while let Some(batch) = batches.next(check)? {
        numbering.add(search.places(batch, memory, check)?, &search, check)?;
    }
    numbering.passages(search, &mut |_| check())
}

fn listed(documents: &[String], min_words: usize, seed: i64) -> Vec<Listed> {
    let hashes = Hashes::from_seed(seed);
    let [little, all] =
        MEMORIES.map(|memory| listed_within(documents, min_words, (hashes, memory)));
    assert_eq!(little, all);
    all.unwrap_or_else(|places| panic!("{documents:?}: {places:?} and others"))
}

/// Returns the places; `Err` with those before a place that has other words than its passage.
fn listed_within(
    documents: &[String],
    min_words: usize,
    within: (Hashes, usize),
) -> std::result::Result<Vec<Listed>, Vec<Listed>> {
    let passages = passages(documents, min_words, within).unwrap();
    let (mut places, mut are_true) = (Vec::new(), true);
    let (check, texts) = (&mut || (), &mut Texts(documents));
    let mut comparison = PlaceComparison::new(Fold::Case);
    let mut put = |listing: &mut Listing, texts: &mut Texts<'_>| {
        let check = &mut || ();
        let located = std::mem::take(listing).locate(Fold::Case, check).unwrap();
        let visit = &mut |place: &Listed| {
            places.push(place.clone());
            Ok(())
        };
        are_true &= comparison.visit(&located, texts, check, visit).unwrap();
    };
    let mut listing = Listing::default();
    let all = passages.for_each(check, &mut |place| {
        if listing.ends_before(place, BYTES_TOGETHER) {
            put(&mut listing, texts);
        }
        listing.push(place, texts)
    });
    all.unwrap();
    put(&mut listing, texts);
    if !are_true {
        return Err(places);
    }
    let numbers: BTreeSet<_> = places.iter().map(|listed| listed.place.passage).collect();
    assert_eq!(
        numbers.last().map_or(0, |last| *last as usize),
        numbers.len()
    );
    Ok(places)
}

#[test]
fn different_words_of_one_hash_are_noticed() {
    // The same words, so the same anchor, in another order.
    let different = ["one two three four", "two three one four"].map(String::from);
    let same = ["One two three, four", "one two three four"].map(String::from);
    let outcome = |documents, hashes| {
        let listed = listed_within(documents, 4, (hashes, 0));
        listed.map(|all| all.len()).map_err(|before| before.len())
    };
    assert_eq!(outcome(&different, Hashes::weak()), Err(1));
    assert_eq!(outcome(&different, Hashes::from_seed(0)), Ok(0));
    assert_eq!(outcome(&same, Hashes::weak()), Ok(2));
}

fn found(documents: &[String], min_words: usize) -> Vec<PassagePlace> {
    let listed = listed(documents, min_words, 0);
    listed.into_iter().map(|listed| listed.place).collect()
}

fn words_of(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    words(
        document.as_bytes(),
        Fold::Case,
        &mut || (),
        &mut |word, _| {
            found.push(word.to_owned());
            Ok(())
        },
    )
    .unwrap();
    found
}

/// A document and its first word.
type Start = (usize, usize);

/// Returns all maximal repeats by their definition, with all their places.
fn maximal_repeats(texts: &[Vec<String>], min_words: usize) -> BTreeMap<Vec<String>, Vec<Start>> {
    let mut runs: BTreeMap<Vec<String>, Vec<Start>> = BTreeMap::new();
    for (document, text) in texts.iter().enumerate() {
        for start in 0..text.len() {
            for end in start + min_words..=text.len() {
                let run = text[start..end].to_vec();
                runs.entry(run).or_default().push((document, start));
            }
        }
    }
    runs.retain(|run, places| {
        let side = |before: bool| -> bool {
            let neighbors: Vec<Option<&String>> = places
                .iter()
                .map(|&(document, start)| match before {
                    true => start.checked_sub(1).map(|at| &texts[document][at]),
                    false => texts[document].get(start + run.len()),
                })
                .collect();
            neighbors.contains(&None) || neighbors.iter().any(|word| *word != neighbors[0])
        };
        places.len() > 1 && side(true) && side(false)
    });
    runs
}

/// Returns the listing by the definition: passages by their first place, longest first.
fn expected(texts: &[Vec<String>], min_words: usize) -> Vec<PassagePlace> {
    let repeats = maximal_repeats(texts, min_words);
    let documents =
        |places: &[Start]| -> BTreeSet<usize> { places.iter().map(|place| place.0).collect() };
    let within = |(document, start): Start, words: usize, places: &[Start], longer: usize| {
        places.iter().any(|&(d, s)| {
            longer > words && d == document && s <= start && start + words <= s + longer
        })
    };
    let mut listed: BTreeMap<&Vec<String>, BTreeSet<Start>> = BTreeMap::new();
    for (run, places) in &repeats {
        let kept = |place: Start| {
            let (document, start) = place;
            let is_in_series = |other: usize| {
                start.abs_diff(other) <= min_words / 2 && places.contains(&(document, other))
            };
            let in_middle = (0..start).any(is_in_series)
                && (start + 1..texts[document].len()).any(is_in_series);
            let within_longer = repeats.iter().any(|(other, theirs)| {
                within(place, run.len(), theirs, other.len())
                    && documents(theirs) == documents(places)
            });
            // A longer run with a place before.
            let is_new = place != places[0]
                && !repeats
                    .iter()
                    .any(|(other, theirs)| within(place, run.len(), &theirs[1..], other.len()));
            (!within_longer && !in_middle) || is_new
        };
        let mut kept: BTreeSet<Start> = places
            .iter()
            .copied()
            .filter(|place| kept(*place))
            .collect();
        if !kept.is_empty() {
            kept.insert(places[0]);
            listed.insert(run, kept);
        }
    }
    let mut order: Vec<_> = listed
        .keys()
        .map(|run| (repeats[*run][0], usize::MAX - run.len()))
        .collect();
    order.sort();
    let mut rows = Vec::new();
    for (run, places) in &listed {
        let number = order
            .binary_search(&(repeats[*run][0], usize::MAX - run.len()))
            .unwrap();
        for &(document, start) in places {
            rows.push(PassagePlace {
                passage: number as u32 + 1,
                document,
                word: start as u64,
                words: run.len() as u64,
                occurrences: repeats[*run].len() as u32,
                documents: documents(&repeats[*run]).len() as u32,
            });
        }
    }
    rows.sort_by_key(|place| (place.document, place.word, u64::MAX - place.words));
    rows
}

fn check(documents: &[String], min_words: usize) {
    let texts: Vec<_> = documents
        .iter()
        .map(|document| words_of(document))
        .collect();
    let listed = listed(documents, min_words, 0);
    let places: Vec<_> = listed.iter().map(|listed| listed.place).collect();
    assert_eq!(
        places,
        expected(&texts, min_words),
        "{documents:?}, {min_words} words"
    );
    cutting_leaves_no_repeat(&texts, &places, min_words);
    for Listed { place, characters } in &listed {
        let (start, length) = (characters.start as usize, characters.len());
        let characters = documents[place.document].chars();
        let text: String = characters.skip(start).take(length).collect();
        let words = &texts[place.document][place.word as usize..][..place.words as usize];
        assert_eq!(words_of(&text), words, "{text:?}");
    }
}

fn cutting_leaves_no_repeat(texts: &[Vec<String>], places: &[PassagePlace], min_words: usize) {
    let mut is_cut: Vec<Vec<bool>> = texts.iter().map(|text| vec![false; text.len()]).collect();
    let mut passages = BTreeSet::new();
    for place in places {
        if !passages.insert(place.passage) {
            let start = place.word as usize;
            is_cut[place.document][start..start + place.words as usize].fill(true);
        }
    }
    let mut left = BTreeSet::new();
    for (text, is_cut) in texts.iter().zip(&is_cut) {
        for start in 0..(text.len() + 1).saturating_sub(min_words) {
            let run = start..start + min_words;
            if !is_cut[run.clone()].contains(&true) {
                assert!(
                    left.insert(&text[run]),
                    "{texts:?}: {places:?} leave a repeat"
                );
            }
        }
    }
}

/// Documents of few words.
fn documents(letters: u8) -> impl Strategy<Value = Vec<String>> {
    let word = (0..letters).prop_map(|letter| format!("{} ", char::from(b'a' + letter)));
    let text = prop::collection::vec(word, 0..24).prop_map(|words| words.concat());
    prop::collection::vec(text, 0..6)
}

/// Documents made of each other's pieces, some of them periodic.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

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

/// More places than are kept in memory before a window is known to be a boundary.
#[test]
fn a_difference_after_thousands_of_copies() {
    let mut documents = vec!["a b c d e f g h i j".to_owned(); 3000];
    documents.push("a b c d e f z".to_owned());
    let places = found(&documents, 4);
    assert_eq!(places.len(), 3000 + 3001);
    for place in places {
        let expected = match place.passage {
            1 => (10, 3000, 3000),
            _ => (6, 3001, 3001),
        };
        assert_eq!((place.words, place.occurrences, place.documents), expected);
    }
}

/// Each length is a passage, with its first and its last place in every row that is longer; and the
/// shortest row repeats all but one of its own words.
#[test]
fn rows_of_one_word() {
    let documents: Vec<String> = (60..70).map(|words| "0 ".repeat(words)).collect();
    let texts: Vec<_> = documents
        .iter()
        .map(|document| words_of(document))
        .collect();
    let places = found(&documents, 50);
    assert_eq!(places, expected(&texts, 50));
    assert_eq!(
        places.len(),
        2 + (60..69).map(|words| 1 + 2 * (69 - words)).sum::<usize>()
    );
}

/// Checks the laws on documents too large for the definition. Runs of words are numbered.
fn keeps_the_laws(documents: &[String], min_words: usize) -> Vec<PassagePlace> {
    let texts: Vec<_> = documents
        .iter()
        .map(|document| words_of(document))
        .collect();
    let places = found(documents, min_words);
    let mut firsts: HashMap<u32, &[String]> = HashMap::new();
    let mut is_listed: Vec<Vec<bool>> = texts.iter().map(|text| vec![false; text.len()]).collect();
    for place in &places {
        let start = place.word as usize;
        let run = start..start + place.words as usize;
        let words = &texts[place.document][run.clone()];
        assert_eq!(*firsts.entry(place.passage).or_insert(words), words);
        is_listed[place.document][run].fill(true);
    }
    let mut windows: HashMap<&[String], u32> = HashMap::new();
    for window in texts.iter().flat_map(|text| text.windows(min_words)) {
        *windows.entry(window).or_default() += 1;
    }
    for (text, is_listed) in texts.iter().zip(&is_listed) {
        for (start, window) in text.windows(min_words).enumerate() {
            let is_listed = !is_listed[start..start + min_words].contains(&false);
            assert!(
                windows[window] == 1 || is_listed,
                "word {start} of {documents:?}"
            );
        }
    }
    cutting_leaves_no_repeat(&texts, &places, min_words);
    places
}

/// One passage of all but a period, however long the row is.
#[test]
fn a_long_row_is_one_passage() {
    for words in [2_000, 3_000, 10_000] {
        for period in ["0 ", "0 1 ", "a b c d e "] {
            let length = period.len() as u64 / 2;
            let row = period.repeat(words / length as usize);
            let documents = ["some words before ".to_owned() + &row + "and behind"];
            let places = keeps_the_laws(&documents, 10);
            let found: Vec<_> = places
                .iter()
                .map(|place| (place.word, place.words))
                .collect();
            let rest = (words as u64 / length - 1) * length;
            assert_eq!(
                found,
                [(3, rest), (3 + length, rest)],
                "{words} words, {period}"
            );
        }
    }
}

/// Rows of the same words and length are equal as a whole, with what is around them.
#[test]
fn equal_long_rows() {
    let row = |words: usize| "0 ".repeat(words);
    let documents = [
        format!("a b c d {}e f g h", row(5_000)),
        format!("x b c d {}e f g y", row(5_000)),
        format!("z b c d {}e f g h", row(4_000)),
        row(1_500),
    ];
    let places = keeps_the_laws(&documents, 5);
    let whole: Vec<_> = places
        .iter()
        .filter(|place| place.words == 5_006)
        .map(|place| {
            (
                place.document,
                place.word,
                place.occurrences,
                place.documents,
            )
        })
        .collect();
    assert_eq!(whole, [(0, 1, 2, 2), (1, 1, 2, 2)]);
    let own: Vec<_> = places
        .iter()
        .filter(|place| [4_999, 3_999].contains(&place.words))
        .map(|place| {
            (
                place.document,
                place.word,
                place.occurrences,
                place.documents,
            )
        })
        .collect();
    let expected = [
        (0, 4, 4, 2),
        (0, 5, 4, 2),
        (1, 4, 4, 2),
        (1, 5, 4, 2),
        (2, 4, 2, 1),
        (2, 5, 2, 1),
    ];
    assert_eq!(own, expected);
}

/// Documents of long rows and of what may stand around them.
fn rows() -> impl Strategy<Value = Vec<String>> {
    let row = (0..4usize, 1..4_000usize).prop_map(|(row, words)| {
        let period = ["0 ", "0 1 ", "0 0 1 ", "a b c d 0 "][row];
        period.repeat(words / (period.len() / 2))
    });
    let other = prop::sample::select(vec![
        "",
        "x ",
        "0 ",
        "0 0 1 0 0 1 ",
        "p q r s t u v w ",
        "1 0 1 0 ",
    ]);
    let text = prop::collection::vec((other, row), 0..3).prop_map(|parts| {
        parts
            .iter()
            .flat_map(|(other, row)| [*other, row])
            .collect()
    });
    prop::collection::vec(text, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn long_rows_keep_the_laws(documents in rows(), min_words in 1..16usize) {
        keeps_the_laws(&documents, min_words);
    }
}

proptest! {
    #[test]
    fn the_hashes_do_not_matter(documents in related(), min_words in 1..9usize, seed: i64) {
        prop_assert_eq!(listed(&documents, min_words, seed), listed(&documents, min_words, 0));
    }
}

/// The Thue-Morse sequence and its complement agree in every polynomial modulo 2^64.
#[test]
fn texts_that_collide_in_polynomials() {
    let letter = |n: u32, flip: u32| {
        if (n.count_ones() + flip).is_multiple_of(2) {
            "a "
        } else {
            "b "
        }
    };
    let documents = [0, 1].map(|flip| (0..4096).map(|n| letter(n, flip)).collect::<String>());
    assert_eq!(found(&documents, 4096), []);
    keeps_the_laws(&documents, 2048);
}

/// A code point that becomes two words belongs to places that begin or end within it.
#[test]
fn places_that_share_a_character() {
    let documents = ["½ ½ 3", "½½ ½ 3 ½ ½"].map(String::from);
    let texts = documents.each_ref().map(|document| words_of(document));
    for min_words in 2..5 {
        assert_eq!(found(&documents, min_words), expected(&texts, min_words));
    }
}
