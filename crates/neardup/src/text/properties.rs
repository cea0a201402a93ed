//! Properties of code points that the folds and the word rule need, from Unicode 17.
#![allow(clippy::disallowed_methods, reason = "the folded form of one code point")]

use super::Fold;
use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, LineBreak, Script,
    SegmentStarter, WhiteSpace,
};
use icu_properties::script::{ScriptWithExtensions, ScriptWithExtensionsBorrowed};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
};
use std::ops::Range;
use strum::FromRepr;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The part a code point plays in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRepr)]
#[repr(u8)]
pub(crate) enum WordClass {
    /// Ends a word.
    Separator,
    /// Ends a word, and is white space.
    Space,
    /// A letter or number of a script written with spaces.
    Letter,
    /// A letter or number of a script written without spaces: a word by itself.
    Alone,
    /// Belongs to the word before it, if there is one.
    Mark,
}

/// One code point as the folds handle it, in 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Info(u64);

const CLASS_SHIFT: u32 = 21;
const CCC_SHIFT: u32 = 24;
const EXPANDS: u64 = 1 << 34;
const LENGTH_SHIFT: u32 = 40;

impl Info {
    /// Nothing before the code point can compose or change places with it.
    pub const BOUNDARY: u64 = 1 << 32;
    /// The code point has a canonical decomposition.
    pub const DECOMPOSES: u64 = 1 << 33;
    /// The code point can compose with the one before it. Most marks cannot.
    pub const COMPOSES: u64 = 1 << 35;
    /// Stands for a code point that the fold drops.
    pub const DROPPED: Self = Self(1 << 63);

    pub fn new(c: char, properties: &Properties) -> Self {
        let mut bits = u64::from(u32::from(c));
        bits |= (properties.class(c) as u64) << CLASS_SHIFT;
        bits |= u64::from(canonical_combining_class(c)) << CCC_SHIFT;
        if properties.segment_starter.contains(c) {
            bits |= Self::BOUNDARY;
        }
        if is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes {
            bits |= Self::COMPOSES;
        }
        let mut decomposed = None;
        decompose_canonical(c, |part| {
            decomposed.get_or_insert(part);
        });
        if decomposed != Some(c) {
            bits |= Self::DECOMPOSES;
        }
        Self(bits)
    }

    /// Returns the info of a code point that expands to the infos at the places `to` of its page.
    pub fn expanding(to: Range<usize>) -> Self {
        Self(to.start as u64 | EXPANDS | (to.len() as u64) << LENGTH_SHIFT)
    }

    /// Returns the places of the infos that the code point expands to, or None if it does not expand.
    #[inline]
    pub fn expansion(self) -> Option<Range<usize>> {
        let start = self.0 as u32 as usize & 0xFFFF;
        let length = (self.0 >> LENGTH_SHIFT) as usize;
        self.has(EXPANDS).then(|| start..start + length)
    }

    #[inline]
    pub fn char(self) -> char {
        char::from_u32(self.0 as u32 & 0x1F_FFFF).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    #[inline]
    pub fn class(self) -> WordClass {
        let class = WordClass::from_repr((self.0 >> CLASS_SHIFT & 7) as u8);
        class.unwrap_or(WordClass::Mark)
    }

    /// Returns the canonical combining class.
    #[inline]
    pub fn combining_class(self) -> u8 {
        (self.0 >> CCC_SHIFT) as u8
    }

    /// Returns whether the code point has one of the properties `bits`.
    #[inline]
    pub fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    #[inline]
    pub fn is_dropped(self) -> bool {
        self == Self::DROPPED
    }
}

/// Result of folding one code point.
pub(crate) enum Mapped<'a> {
    /// One code point in NFC, or [`Info::DROPPED`].
    One(Info),
    /// Two or more code points, canonically decomposed.
    Several(&'a [Info]),
}

/// Handles for the data of the Unicode crates.
pub(crate) struct Properties {
    category: CodePointMapDataBorrowed<'static, GeneralCategory>,
    line_break: CodePointMapDataBorrowed<'static, LineBreak>,
    scripts: ScriptWithExtensionsBorrowed<'static>,
    white_space: CodePointSetDataBorrowed<'static>,
    ignorable: CodePointSetDataBorrowed<'static>,
    segment_starter: CodePointSetDataBorrowed<'static>,
    case: CaseMapperBorrowed<'static>,
}

impl Properties {
    pub fn new() -> Self {
        Self {
            category: CodePointMapData::<GeneralCategory>::new(),
            line_break: CodePointMapData::<LineBreak>::new(),
            scripts: ScriptWithExtensions::new(),
            white_space: CodePointSetData::new::<WhiteSpace>(),
            ignorable: CodePointSetData::new::<DefaultIgnorableCodePoint>(),
            segment_starter: CodePointSetData::new::<SegmentStarter>(),
            case: CaseMapper::new(),
        }
    }

    fn class(&self, c: char) -> WordClass {
        let category = self.category.get(c);
        if GeneralCategoryGroup::Mark.contains(category) {
            WordClass::Mark
        } else if GeneralCategoryGroup::Letter.contains(category)
            || GeneralCategoryGroup::Number.contains(category)
        {
            if self.is_written_without_spaces(c) {
                WordClass::Alone
            } else {
                WordClass::Letter
            }
        } else if self.white_space.contains(c) {
            WordClass::Space
        } else {
            WordClass::Separator
        }
    }

    fn is_written_without_spaces(&self, c: char) -> bool {
        // In these classes, lines break at the words of a dictionary (SA), or at orthographic syllables.
        const LINE_BREAKS: [LineBreak; 6] = [
            LineBreak::ComplexContext,
            LineBreak::Aksara,
            LineBreak::AksaraPrebase,
            LineBreak::AksaraStart,
            LineBreak::ViramaFinal,
            LineBreak::Virama,
        ];
        const SCRIPTS: [Script; 10] = [
            Script::Han,
            Script::Hiragana,
            Script::Katakana,
            Script::Bopomofo,
            Script::Yi,
            Script::Tangut,
            Script::Nushu,
            Script::KhitanSmallScript,
            Script::Buginese,
            Script::Rejang,
        ];
        LINE_BREAKS.contains(&self.line_break.get(c))
            || SCRIPTS
                .iter()
                .any(|script| self.scripts.has_script(c, *script))
    }

    /// Returns the folded form of one code point, canonically decomposed.
    pub fn fold(&self, c: char, fold: Fold) -> String {
        let folded = self.nfkc_casefold(c).nfd().collect::<String>();
        if fold == Fold::Marks {
            let is_kept = |c: &char| self.category.get(*c) != GeneralCategory::NonspacingMark;
            folded.chars().filter(is_kept).collect()
        } else {
            folded
        }
    }

    /// Returns the property NFKC_Casefold of one code point. It is normalization, case folding and the removal of
    /// default-ignorable code points, repeated until nothing changes (as derived in DerivedNormalizationProps.txt).
    fn nfkc_casefold(&self, c: char) -> String {
        let mut folded = String::from(c);
        loop {
            let kept = folded.chars().filter(|c| !self.ignorable.contains(*c));
            let normalized = kept.nfkc().collect::<String>();
            let next = self.case.fold_string(&normalized);
            if next == folded {
                return folded;
            }
            folded = next.into_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Properties, WordClass};
    use icu_properties::props::Script;
    use icu_properties::{CodePointMapData, PropertyNamesLong};
    use std::collections::BTreeSet;

    #[test]
    fn scripts_without_spaces_are_documented() {
        let page = include_str!("../../../../docs/text.md").replace('\n', " ");
        let (_, list) = page.split_once("These scripts are ").unwrap();
        let (list, _) = list.split_once('.').unwrap();
        let documented: BTreeSet<String> = list
            .replace(" and ", ", ")
            .split(", ")
            .map(String::from)
            .collect();

        let properties = Properties::new();
        let scripts = CodePointMapData::<Script>::new();
        let names = PropertyNamesLong::<Script>::new();
        let alone = ('\0'..=char::MAX).filter(|&c| properties.class(c) == WordClass::Alone);
        let found = alone
            .map(|c| scripts.get(c))
            .filter(|script| *script != Script::Common);
        let found: BTreeSet<Script> = found.collect();
        let found = found
            .into_iter()
            .map(|script| names.get(script).unwrap().replace('_', " "));
        assert_eq!(found.collect::<BTreeSet<String>>(), documented);
    }
}
