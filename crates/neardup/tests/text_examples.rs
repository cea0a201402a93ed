//! Worked examples from the literature and from Unicode.

use neardup::hash::Key;
use neardup::set;
use neardup::shingle::{Shingling, shingle_hashes, shingles};
use neardup::text::{Fold, Unit, stop_words};

fn by(k: usize, unit: Unit, fold: Fold) -> Shingling {
    Shingling { k, unit, fold }
}

fn words(k: usize) -> Shingling {
    by(k, Unit::Word, Fold::Case)
}

fn shingles_of(text: &str, shingling: &Shingling) -> Vec<String> {
    shingles(text.as_bytes(), shingling, usize::MAX, &mut || ()).expect("no limit")
}

fn resemblance(a: &str, b: &str, shingling: &Shingling) -> f64 {
    let key = Key::from_seed(0);
    let [a, b] =
        [a, b].map(|text| shingle_hashes(text.as_bytes(), shingling, &key, &mut || ()).unwrap());
    set::jaccard(&a, &b, &mut || ())
}

/// Returns the same result computed from the strings by counting.
fn brute_force(a: &str, b: &str, shingling: &Shingling) -> f64 {
    let [a, b] = [a, b].map(|text| shingles_of(text, shingling));
    let shared = a.iter().filter(|shingle| b.contains(shingle)).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}

fn assert_resemblance(a: &str, b: &str, shingling: &Shingling, expected: f64) {
    assert_eq!(resemblance(a, b, shingling), expected);
    assert_eq!(brute_force(a, b, shingling), expected);
}

/// Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets"; Broder 1997.
#[test]
fn word_shingles() {
    assert_eq!(
        shingles_of("to be or not to be, that is the question", &words(4)),
        [
            "to be or not",
            "be or not to",
            "or not to be",
            "not to be that",
            "to be that is",
            "be that is the",
            "that is the question",
        ]
    );
    assert_resemblance(
        "a rose is red a rose is white",
        "a rose is white a rose is red",
        &words(4),
        0.25,
    );
    assert_resemblance("a b c d e", "a b c d e f", &words(5), 0.5);
}

#[test]
fn a_sentence_and_the_same_twice() {
    let once = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
                fifteen sixteen";
    let twice = format!("{once} {once}");
    assert_eq!(shingles_of(once, &words(5)).len(), 12);
    assert_eq!(shingles_of(&twice, &words(5)).len(), 16);
    assert_resemblance(once, &twice, &words(5), 0.75);
}

#[test]
fn character_shingles() {
    let characters = |k| by(k, Unit::Char, Fold::None);
    let cats = ["The cat sat on the mat.", "The red cat sat on the mat."];
    assert_resemblance(cats[0], cats[1], &characters(2), 17.0 / 21.0);
    assert_resemblance(cats[0], cats[1], &characters(5), 16.0 / 26.0);
    let flight = "what's the flight time from Berlin to Helsinki?";
    let take = "how long does it take to fly from Berlin to Helsinki?";
    let oulu = "what's the flight time from Berlin to Oulu?";
    assert_resemblance(flight, take, &characters(4), 0.30985915492957744);
    assert_resemblance(flight, oulu, &characters(4), 0.7142857142857143);
    let folded = shingles_of("  A \u{a0}b\t", &by(1, Unit::Char, Fold::Case));
    assert_eq!(folded, ["a", " ", "b"]);
    let plain = shingles_of(" \n", &by(1, Unit::Char, Fold::None));
    assert_eq!(plain, [" ", "\n"]);
}

#[test]
fn stop_shingles_begin_with_a_stop_word() {
    let text = "At a rally to kick off a weeklong campaign for the South Carolina primary, Obama";
    assert_eq!(
        shingles_of(text, &by(3, Unit::Stop, Fold::Case)),
        [
            "at a rally",
            "a rally to",
            "to kick off",
            "off a weeklong",
            "a weeklong campaign",
            "for the south",
            "the south carolina",
        ]
    );
    assert!(shingles_of("the end", &by(3, Unit::Stop, Fold::Case)).is_empty());
    assert_eq!(
        shingles_of("At home THE dog", &by(2, Unit::Stop, Fold::None)),
        ["At home", "THE dog"]
    );
    assert!(stop_words().all(str::is_ascii));
}

#[test]
fn short_and_empty_documents() {
    assert_eq!(shingles_of("Only two", &words(3)), ["only two"]);
    for unit in [Unit::Word, Unit::Char, Unit::Stop] {
        assert!(shingles_of("", &by(2, unit, Fold::Case)).is_empty());
    }
    assert!(shingles_of(" -- !? \u{301}", &words(1)).is_empty());
    assert!(shingles_of(" \t\u{200b}", &by(1, Unit::Char, Fold::Case)).is_empty());
    assert_eq!(resemblance("", "", &words(3)), 0.0);
}

/// Spellings that are equal when folded.
#[test]
fn folded_spellings_agree() {
    let pairs = [
        ("Café", "cafe\u{301}"),
        ("FM １５０６", "fm 1506"),
        ("ﬁne oﬃce", "fine office"),
        ("STRASSE", "straße"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("ex\u{ad}am\u{200d}ple\u{feff}", "example"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("각", "\u{1100}\u{1161}\u{11a8}"),
        ("ﷲ", "الله"),
    ];
    for (a, b) in pairs {
        assert_eq!(shingles_of(a, &words(1)), shingles_of(b, &words(1)));
    }
    let marks = by(1, Unit::Word, Fold::Marks);
    for (a, b) in [
        ("Crème Brûlée", "creme brulee"),
        ("السَّلَامُ", "السلام"),
        ("שָׁלוֹם", "שלום"),
    ] {
        assert_eq!(shingles_of(a, &marks), shingles_of(b, &marks));
        assert_ne!(shingles_of(a, &words(1)), shingles_of(b, &words(1)));
    }
    assert_ne!(
        shingles_of("FM 1506", &words(2)),
        shingles_of("FM 1507", &words(2))
    );
}

/// Emoji separate words, along with all code points that belong to them; as characters they stay.
#[test]
fn emoji() {
    let family = "a👩\u{200d}👩\u{200d}👧b ✌🏽\u{fe0f}c";
    assert_eq!(shingles_of(family, &words(1)), ["a", "b", "c"]);
    let characters = shingles_of(family, &by(1, Unit::Char, Fold::None));
    assert!(characters.contains(&"🏽".to_owned()));
}

#[test]
fn every_script_is_cut_sensibly() {
    let one = |text| shingles_of(text, &words(1)).join("|");
    assert_eq!(one("床前明月光，疑是"), "床|前|明|月|光|疑|是");
    assert_eq!(one("カードが々"), "カ|ー|ド|が|々");
    assert_eq!(one("ที่นี่"), "ที่|นี่");
    assert_eq!(one("हिन्दी भाषा"), "हिन्दी|भाषा");
    assert_eq!(one("Съешь ещё"), "съешь|ещё");
    assert_eq!(one("한국어 글"), "한국어|글");
    assert_eq!(one("İstanbul'da"), "i\u{307}stanbul|da");
    assert_eq!(one("2024年5月"), "2024|年|5|月");
    for (script, text, expected) in [
        ("Javanese", "ꦱꦸꦒꦼꦁꦫꦮꦸꦃ", "ꦱꦸ|ꦒꦼꦁ|ꦫ|ꦮꦸꦃ"),
        ("Balinese", "ᬅᬓ᭄ᬱᬭ", "ᬅ|ᬓ᭄|ᬱ|ᬭ"),
        ("Batak", "ᯅᯖᯂ᯲", "ᯅ|ᯖ|ᯂ᯲"),
        ("Buginese", "ᨒᨚᨈᨑ", "ᨒᨚ|ᨈ|ᨑ"),
        ("Rejang", "ꤽꥍꤺꥏ", "ꤽꥍ|ꤺꥏ"),
        (
            "Kawi",
            "\u{11F04}\u{11F12}\u{11F34}",
            "\u{11F04}|\u{11F12}\u{11F34}",
        ),
        ("Tangut", "𗼇𗟲", "𗼇|𗟲"),
        ("Nushu", "𛆁𛈬", "𛆁|𛈬"),
        ("Khitan", "\u{18B00}\u{18B01}", "\u{18B00}|\u{18B01}"),
    ] {
        assert_eq!(one(text), expected, "{script}");
    }
}

#[test]
fn too_many_shingles_are_rejected() {
    let text = "one two three four";
    let within = |bytes| shingles(text.as_bytes(), &words(1), bytes, &mut || ());
    assert_eq!(within(36).map(|shingles| shingles.len()), Ok(4));
    assert!(matches!(within(35), Err(neardup::Error::TooLarge { .. })));
}
