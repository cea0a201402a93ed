//! The text part of the pipeline, written as simply as possible: whole texts, one step after the other, normalized by a
//! crate that the pipeline does not use.

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, LineBreak, Script, WhiteSpace,
};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData, PropertyNamesShort};
use neardup::shingle::Shingling;
use neardup::text::{Fold, Unit, stop_words};

pub fn nfkc_casefold(c: char) -> String {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let mut text = c.to_string();
    loop {
        let folded = CaseMapper::new().fold_string(&text).into_owned();
        let kept: String = folded.chars().filter(|c| !ignorable.contains(*c)).collect();
        let next = ComposingNormalizer::new_nfkc()
            .normalize(&kept)
            .into_owned();
        if next == text {
            return text;
        }
        text = next;
    }
}

pub fn fold(text: &str, fold: Fold) -> String {
    if fold == Fold::None {
        return text.to_owned();
    }
    let mapped: String = text.chars().map(nfkc_casefold).collect();
    let cased = ComposingNormalizer::new_nfc()
        .normalize(&mapped)
        .into_owned();
    if fold == Fold::Case {
        return cased;
    }
    let category = CodePointMapData::<GeneralCategory>::new();
    let decomposed = DecomposingNormalizer::new_nfd()
        .normalize(&cased)
        .into_owned();
    let bare: String = decomposed
        .chars()
        .filter(|c| category.get(*c) != GeneralCategory::NonspacingMark)
        .collect();
    ComposingNormalizer::new_nfc().normalize(&bare).into_owned()
}

fn is_in(c: char, group: GeneralCategoryGroup) -> bool {
    group.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

fn is_alone(c: char) -> bool {
    let names = PropertyNamesShort::<LineBreak>::new();
    let line_break = names.get(CodePointMapData::<LineBreak>::new().get(c));
    let script = ScriptWithExtensions::new().get_script_extensions_val(c);
    ["SA", "AK", "AP", "AS", "VF", "VI"].contains(&line_break.expect("a name"))
        || script.iter().any(|script| {
            let name = PropertyNamesShort::<Script>::new().get(script);
            [
                "Hani", "Hira", "Kana", "Bopo", "Yiii", "Tang", "Nshu", "Kits", "Bugi", "Rjng",
            ]
            .contains(&name.expect("a name"))
        })
}

pub fn words(folded: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in folded.chars() {
        let after_word = is_word_character(last);
        if is_in(c, GeneralCategoryGroup::Mark) {
            if !after_word {
                continue;
            }
            words.last_mut().expect("a word").push(c);
            // The mark plays the same part as the character before it.
            continue;
        }
        if is_word_character(c) {
            if after_word && !is_alone(last) && !is_alone(c) {
                words.last_mut().expect("a word").push(c);
            } else {
                words.push(c.to_string());
            }
        }
        last = c;
    }
    words
}

fn is_word_character(c: char) -> bool {
    is_in(c, GeneralCategoryGroup::Letter) || is_in(c, GeneralCategoryGroup::Number)
}

pub fn units(doc: &[u8], shingling: &Shingling) -> Vec<String> {
    let folded = fold(&String::from_utf8_lossy(doc), shingling.fold);
    if shingling.unit != Unit::Char {
        return words(&folded);
    }
    let space = CodePointSetData::new::<WhiteSpace>();
    let mut text = folded;
    if shingling.fold != Fold::None {
        let parts = text
            .split(|c| space.contains(c))
            .filter(|part| !part.is_empty());
        text = parts.collect::<Vec<_>>().join(" ");
    }
    text.chars().map(String::from).collect()
}

/// Returns the shingles in document order, with repeats.
pub fn shingles(doc: &[u8], shingling: &Shingling) -> Vec<Vec<String>> {
    let units = units(doc, shingling);
    let windows = units.windows(shingling.k).map(<[String]>::to_vec);
    if shingling.unit == Unit::Stop {
        let is_stop = |word: &String| stop_words().any(|stop| stop == word);
        let spelled = |word: &String| {
            shingling.fold == Fold::None && {
                let lower = word.to_lowercase();
                let mut capital = lower.clone();
                if let Some(first) = capital.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                is_stop(&lower) && (*word == capital || *word == lower.to_uppercase())
            }
        };
        return windows
            .filter(|window| is_stop(&window[0]) || spelled(&window[0]))
            .collect();
    }
    if !units.is_empty() && units.len() < shingling.k {
        return vec![units];
    }
    windows.collect()
}
