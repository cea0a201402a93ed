//! Compares the streaming text pipeline with a simple one that handles whole texts.

use crate::oracle;
use neardup::hash::{Key, combine};
use neardup::shingle::{BLOCK, Shingling, for_each_block, for_each_shingle};
use neardup::text::{self, Fold, Unit};
use proptest::prelude::*;

const FOLDS: [Fold; 3] = [Fold::None, Fold::Case, Fold::Marks];
const UNITS: [Unit; 3] = [Unit::Word, Unit::Char, Unit::Stop];

/// Code points that interact: marks of many classes in any order, Hangul letters, code points that expand or are
/// dropped, scripts without spaces, several kinds of spaces.
const TRICKY: &str = "a b.C <=\u{338}\u{301}\u{327}\u{323}\u{345}\u{34f}\u{ad}\u{200b}\u{200d}\
    \u{fe0f}eéÉ\u{e9}ßẞſﬁİıςΣΐ\u{390}Å\u{212b}Kー㌀㎏½ⅷ①Ａ１　\u{a0}\u{2003}\u{85}中〇々かが\u{3099}ｶﾞカㄅꀀ\
    ไทยำ\u{e31}\u{e49}ລາວាខ្មမြန်हिन्दीক\u{9cb}\u{9be}\u{9c7}\u{9d7}ﷺﻻلَّـ\u{64e}\u{651}\u{653}\
    \u{654}שּ\u{5b8}\u{5c1}각\u{1100}\u{1161}\u{11a8}한\u{1d165}\u{1d157}\u{302a}\u{302e}\u{16d67}\
    \u{16d63}\u{fffd}\u{378}😀🏽1\u{20e3}₁²ǅŉⅫꦱꦸꦒ꦳ꦾ꧀ᬓᬵ᭄ᨒᨚ𗼇𛆁\u{f73}\u{f71}\u{f80}\u{344}the of and";

fn tricky() -> impl Strategy<Value = Vec<u8>> {
    let chars: Vec<char> = TRICKY.chars().collect();
    let c = prop_oneof![
        6 => prop::sample::select(chars).prop_map(|c| c.to_string().into_bytes()),
        2 => prop::sample::select(vec!["the ", " And", "Of_", "word ", "plain english words in a row, of some length. "])
            .prop_map(|s| s.as_bytes().to_vec()),
        1 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
        1 => any::<u8>().prop_map(|b| vec![b]),
    ];
    prop::collection::vec(c, 0..40).prop_map(|parts| parts.concat())
}

fn hashes(doc: &[u8], shingling: &Shingling, key: &Key) -> Vec<u64> {
    let mut all = Vec::new();
    for_each_block(doc, shingling, key, &mut |block| {
        assert!(block.len() <= BLOCK);
        all.extend_from_slice(block);
        Ok(())
    })
    .unwrap();
    all
}

fn check(doc: &[u8], shingling: &Shingling) {
    let expected = oracle::shingles(doc, shingling);
    let key = Key::from_seed(7);
    let expected_hashes: Vec<u64> = expected
        .iter()
        .map(|shingle| {
            let tokens = shingle.iter().map(|unit| key.token_hash(unit.as_bytes()));
            combine(&tokens.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(hashes(doc, shingling, &key), expected_hashes);
    let separator = if shingling.unit == Unit::Char {
        ""
    } else {
        " "
    };
    let mut strings = Vec::new();
    for_each_shingle(doc, shingling, &mut || (), &mut |shingle| {
        strings.push(shingle.to_owned());
        Ok(())
    })
    .unwrap();
    let expected: Vec<String> = expected.iter().map(|units| units.join(separator)).collect();
    assert_eq!(strings, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn streaming_equals_whole_text(doc in tricky(), k in 1..6usize) {
        for unit in UNITS {
            for fold in FOLDS {
                check(&doc, &Shingling { k, unit, fold });
            }
        }
    }

    #[test]
    fn ascii_equals_the_general_path(doc in "[ -~\n]{0,300}", k in 1..5usize, unit in 0..3usize) {
        for fold in FOLDS {
            check(doc.as_bytes(), &Shingling { k, unit: UNITS[unit], fold });
        }
    }

    #[test]
    fn words_lie_where_they_say(doc in tricky(), fold in 0..3usize) {
        let fold = FOLDS[fold];
        let mut words = Vec::new();
        text::words(&doc, fold, &mut || (), &mut |word, source| {
            assert!(source.start < source.end && source.end <= doc.len());
            words.push(word.to_owned());
            // Folding the source alone gives the word again, if nothing next to it belongs to the source.
            let part = oracle::fold(&String::from_utf8_lossy(&doc[source]), fold);
            assert!(oracle::words(&part).contains(&word.to_owned()), "{word} in {part}");
            Ok(())
        })?;
        let folded = oracle::fold(&String::from_utf8_lossy(&doc), fold);
        prop_assert_eq!(words, oracle::words(&folded));
    }
}

/// Letters can compose after folding that did not before: ẖ is made from h alone.
#[test]
fn ascii_before_every_mark_composes_as_in_the_oracle() {
    let marks = (0x300..0x370).filter_map(char::from_u32);
    let pairs = marks.flat_map(|mark| ('!'..='~').map(move |letter| [letter, mark, ' ']));
    let doc: String = pairs.flatten().collect();
    for unit in UNITS {
        for fold in FOLDS {
            check(doc.as_bytes(), &Shingling { k: 1, unit, fold });
        }
    }
}

/// Texts longer than a window, a block and a long word.
#[test]
fn long_texts_equal_the_oracle() {
    let sentence =
        "Straße nach Köln, ὈΔΥΣΣΕΎΣ 中文字 e\u{301}a\u{323}\u{302} и так далее; and of the rest ";
    let mut texts = vec![
        sentence.repeat(300),
        format!("{} end", "x".repeat(200_000)),
        format!("{} end", "é".repeat(100_000)),
        format!("a{} end", "\u{301}\u{323}".repeat(40_000)),
        format!("{}\u{301}", "plain words ".repeat(2000)),
        "a ".repeat(20_000),
        "中".repeat(9000),
        ".".repeat(30_000),
    ];
    // White space at the end of the text, about where the room for a part of it ends.
    texts.extend((4010..4040).map(|len| format!("{}\u{3000}\u{2003}\n", "д".repeat(len))));
    for text in texts {
        for unit in UNITS {
            for fold in FOLDS {
                check(text.as_bytes(), &Shingling { k: 3, unit, fold });
            }
        }
        let mut garbled = text.into_bytes();
        for i in (0..garbled.len()).step_by(97) {
            garbled[i] = 0x80 + (i % 128) as u8;
        }
        check(
            &garbled,
            &Shingling {
                k: 2,
                unit: Unit::Word,
                fold: Fold::Case,
            },
        );
    }
}

/// Returns code points of several alphabets in turn, or from anywhere in Unicode, with an occasional stray byte.
fn mixture(numbers: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let tricky: Vec<char> = TRICKY.chars().collect();
    let blocks = [(); 3].map(|()| {
        let end = [0x800, 0x3000, 0x11_0000][numbers(3)];
        numbers(end)
    });
    let [letters, change] = [10, 1 + numbers(30)];
    let len = if numbers(200) == 0 {
        30_000
    } else {
        numbers(400)
    };
    let (mut doc, mut source) = (Vec::new(), 0);
    for _ in 0..len {
        if numbers(change) == 0 {
            source = numbers(letters);
        }
        let c = match source {
            0..3 => char::from_u32((blocks[source] + numbers(128)) as u32),
            3 => Some(tricky[numbers(tricky.len())]),
            4 => char::from_u32(0x300 + numbers(0x70) as u32),
            5 => char::from_u32(0x4E00 + numbers(100) as u32),
            _ => Some(char::from(b" aBc,9\n~"[numbers(8)])),
        };
        match c {
            Some(c) => doc.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => doc.push(numbers(256) as u8),
        }
    }
    doc
}

/// Compares the fast fold with folding one code point after the other, over 3 million code points times
/// `NEARDUP_TRIALS`.
#[test]
fn quick_fold_equals_the_plain_one() {
    let times = std::env::var("NEARDUP_TRIALS").map_or(1, |times| times.parse().expect("a number"));
    let code_points = times * 3_000_000;
    let key = Key::from_seed(11);
    let mut state = 0;
    let mut numbers = |end: usize| {
        state += 1;
        (neardup::hash::split_mix(neardup::hash::split_mix(state)) % end as u64) as usize
    };
    let mut seen = 0;
    while seen < code_points {
        let doc = mixture(&mut numbers);
        let fold = FOLDS[numbers(3)];
        let of = |unit| Shingling { k: 1, unit, fold };
        let mut words = Vec::new();
        text::words(&doc, fold, &mut || (), &mut |word, _| {
            words.push(combine(&[key.token_hash(word.as_bytes())]));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            hashes(&doc, &of(Unit::Word), &key),
            words,
            "{fold} {}",
            doc.escape_ascii()
        );
        let mut chars = Vec::new();
        for_each_shingle(&doc, &of(Unit::Char), &mut || (), &mut |c| {
            chars.push(combine(&[key.token_hash(c.as_bytes())]));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            hashes(&doc, &of(Unit::Char), &key),
            chars,
            "{fold} {}",
            doc.escape_ascii()
        );
        seen += String::from_utf8_lossy(&doc).chars().count();
    }
}

/// Tests every code point between two letters, folded and as a word.
#[test]
fn every_code_point_folds_as_the_oracle() {
    let plain_words = Shingling {
        k: 1,
        unit: Unit::Word,
        fold: Fold::None,
    };
    for c in '\0'..=char::MAX {
        check(format!("a{c}b").as_bytes(), &plain_words);
        for fold in [Fold::Case, Fold::Marks] {
            let text = format!("a{c}b");
            let shingling = Shingling {
                k: 64,
                unit: Unit::Char,
                fold,
            };
            let mut folded = String::new();
            for_each_shingle(text.as_bytes(), &shingling, &mut || (), &mut |s| {
                folded.push_str(s);
                Ok(())
            })
            .unwrap();
            assert_eq!(folded, oracle::units(text.as_bytes(), &shingling).concat());
        }
    }
}
