//! Properties of code points that the folds and the word rule need, from Unicode 17.
//!
//! Read from the Unicode crates a page of 256 code points at a time and kept: a text touches few
//! pages, and a look-up then costs two loads.
#![allow(clippy::disallowed_methods, reason = "what 256 code points fold to")]

use super::Fold;
use super::cell::Cell;
use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, LineBreak, Script,
    SegmentStarter, WhiteSpace,
};
use icu_properties::script::{ScriptWithExtensions, ScriptWithExtensionsBorrowed};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
};
use std::sync::OnceLock;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The part a code point plays in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
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
const BOUNDARY: u64 = 1 << 32;
const DECOMPOSES: u64 = 1 << 33;
const EXPANDS: u64 = 1 << 34;
const COMPOSES: u64 = 1 << 35;
const LENGTH_SHIFT: u32 = 40;

impl Info {
    /// Stands for a code point that the fold drops.
    pub const DROPPED: Self = Self(1 << 63);

    fn new(c: char, properties: &Properties) -> Self {
        let mut bits = u64::from(u32::from(c));
        bits |= (properties.class(c) as u64) << CLASS_SHIFT;
        bits |= u64::from(canonical_combining_class(c)) << CCC_SHIFT;
        if properties.segment_starter.contains(c) {
            bits |= BOUNDARY;
        }
        if is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes {
            bits |= COMPOSES;
        }
        let mut decomposed = None;
        decompose_canonical(c, |part| {
            decomposed.get_or_insert(part);
        });
        if decomposed != Some(c) {
            bits |= DECOMPOSES;
        }
        Self(bits)
    }

    fn expansion(start: usize, length: usize) -> Self {
        Self(start as u64 | EXPANDS | (length as u64) << LENGTH_SHIFT)
    }

    #[inline]
    pub fn char(self) -> char {
        char::from_u32(self.0 as u32 & 0x1F_FFFF).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    #[inline]
    pub fn class(self) -> Class {
        match (self.0 >> CLASS_SHIFT) & 7 {
            0 => Class::Separator,
            1 => Class::Space,
            2 => Class::Letter,
            3 => Class::Alone,
            _ => Class::Mark,
        }
    }

    /// Returns the canonical combining class.
    #[inline]
    pub fn combining_class(self) -> u8 {
        (self.0 >> CCC_SHIFT) as u8
    }

    /// Returns whether nothing before it can compose or change places with it.
    #[inline]
    pub fn is_boundary(self) -> bool {
        self.0 & BOUNDARY != 0
    }

    /// Returns whether it can compose with the code point before it. Most marks cannot.
    #[inline]
    pub fn composes(self) -> bool {
        self.0 & COMPOSES != 0
    }

    /// Returns whether it has a canonical decomposition.
    #[inline]
    pub fn decomposes(self) -> bool {
        self.0 & DECOMPOSES != 0
    }

    #[inline]
    pub fn is_dropped(self) -> bool {
        self == Self::DROPPED
    }

    #[inline]
    fn expands(self) -> bool {
        self.0 & EXPANDS != 0
    }
}

/// Result of folding one code point.
pub(crate) enum Mapped<'a> {
    /// One code point, itself in NFC, or [`Info::DROPPED`].
    One(Info),
    /// Several, canonically decomposed.
    Several(&'a [Info]),
}

const PAGE: usize = 256;
const PAGES: usize = (char::MAX as usize + 1) / PAGE;

struct Page {
    infos: [Info; PAGE],
    expansions: Vec<Info>,
    cells: [Cell; PAGE],
}

/// The infos of all code points under one fold.
pub(crate) struct Table {
    fold: Fold,
    pages: [OnceLock<Box<Page>>; PAGES],
}

static NONE: Table = Table::new(Fold::None);
static CASE: Table = Table::new(Fold::Case);
static MARKS: Table = Table::new(Fold::Marks);

impl Table {
    const fn new(fold: Fold) -> Self {
        Self {
            fold,
            pages: [const { OnceLock::new() }; PAGES],
        }
    }

    pub fn of(fold: Fold) -> &'static Self {
        match fold {
            Fold::None => &NONE,
            Fold::Case => &CASE,
            Fold::Marks => &MARKS,
        }
    }

    #[inline]
    pub fn map(&'static self, c: char) -> Mapped<'static> {
        self.page(c as usize / PAGE).mapped(c as usize % PAGE)
    }

    /// Returns the cell of a code point, given as a number.
    #[inline(always)]
    pub fn cell(&'static self, code: usize) -> Cell {
        self.page(code / PAGE).cells[code % PAGE]
    }

    #[inline(always)]
    fn page(&'static self, number: usize) -> &'static Page {
        self.pages[number].get_or_init(|| Page::read(self.fold, number))
    }
}

/// Returns the properties of a code point itself.
#[inline]
pub(crate) fn info(c: char) -> Info {
    match NONE.map(c) {
        Mapped::One(info) => info,
        Mapped::Several(infos) => infos[0],
    }
}

impl Page {
    #[cold]
    fn read(fold: Fold, number: usize) -> Box<Self> {
        let properties = Properties::new();
        let mut page = Self {
            infos: [Info::DROPPED; PAGE],
            expansions: Vec::new(),
            cells: [Cell::BEFORE; PAGE],
        };
        for (i, info) in page.infos.iter_mut().enumerate() {
            // Surrogates occur in no text.
            let Some(c) = char::from_u32((number * PAGE + i) as u32) else {
                continue;
            };
            if fold == Fold::None {
                *info = Info::new(c, &properties);
                continue;
            }
            let mapped = properties.fold(c, fold);
            let mut composed = mapped.chars().nfc();
            *info = match (composed.next(), composed.next()) {
                (None, _) => Info::DROPPED,
                (Some(one), None) => Info::new(one, &properties),
                _ => {
                    let start = page.expansions.len();
                    let parts = mapped.chars().map(|part| Info::new(part, &properties));
                    page.expansions.extend(parts);
                    Info::expansion(start, page.expansions.len() - start)
                }
            };
        }
        page.cells = std::array::from_fn(|i| Cell::new(&page.mapped(i), fold == Fold::None));
        Box::new(page)
    }

    #[inline]
    fn mapped(&self, i: usize) -> Mapped<'_> {
        let info = self.infos[i];
        if info.expands() {
            let start = info.0 as u32 as usize & 0xFFFF;
            let length = (info.0 >> LENGTH_SHIFT) as usize;
            Mapped::Several(&self.expansions[start..start + length])
        } else {
            Mapped::One(info)
        }
    }
}

/// Handles on the crates' data.
struct Properties {
    category: CodePointMapDataBorrowed<'static, GeneralCategory>,
    line_break: CodePointMapDataBorrowed<'static, LineBreak>,
    scripts: ScriptWithExtensionsBorrowed<'static>,
    white_space: CodePointSetDataBorrowed<'static>,
    ignorable: CodePointSetDataBorrowed<'static>,
    segment_starter: CodePointSetDataBorrowed<'static>,
    case: CaseMapperBorrowed<'static>,
}

impl Properties {
    fn new() -> Self {
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

    fn class(&self, c: char) -> Class {
        let category = self.category.get(c);
        if GeneralCategoryGroup::Mark.contains(category) {
            Class::Mark
        } else if GeneralCategoryGroup::Letter.contains(category)
            || GeneralCategoryGroup::Number.contains(category)
        {
            if self.is_written_without_spaces(c) {
                Class::Alone
            } else {
                Class::Letter
            }
        } else if self.white_space.contains(c) {
            Class::Space
        } else {
            Class::Separator
        }
    }

    fn is_written_without_spaces(&self, c: char) -> bool {
        // Lines break at a dictionary's words (SA), or at orthographic syllables.
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

    /// Returns the canonically decomposed form of what a fold makes of one code point.
    fn fold(&self, c: char, fold: Fold) -> String {
        let folded = self.nfkc_casefold(c).nfd().collect::<String>();
        if fold == Fold::Marks {
            let is_kept = |c: &char| self.category.get(*c) != GeneralCategory::NonspacingMark;
            folded.chars().filter(is_kept).collect()
        } else {
            folded
        }
    }

    /// Returns the property NFKC_Casefold of one code point: normalization, case folding and the
    /// removal of default-ignorable code points, repeated until nothing changes (as derived in
    /// DerivedNormalizationProps.txt).
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
    use super::*;
    use crate::text::STOP_WORDS;
    use siphasher::sip::SipHasher13;
    use std::hash::Hasher;

    /// Of what the tables say about every code point. It never changes: signatures that are stored
    /// were made by it. A crate with another Unicode version has to stay out.
    const DIGEST: u64 = 8_598_111_518_627_044_643;

    #[test]
    fn scheme_1_is_unicode_17() {
        assert_eq!(unicode_normalization::UNICODE_VERSION, (17, 0, 0));
        // Assigned in 17.0: SIDETIC LETTER N01, TAI YO LETTER LOW KO, CJK extension J.
        for c in ['\u{10940}', '\u{1E6C0}', '\u{323B0}'] {
            assert_ne!(info(c).class(), Class::Separator, "{c:?}");
        }
        // Unassigned in it.
        for c in ['\u{378}', '\u{E0FFF}', '\u{3347A}'] {
            assert_eq!(info(c).class(), Class::Separator, "{c:?}");
        }
    }

    #[test]
    fn every_code_point_is_as_it_was() {
        let mut digest = SipHasher13::new();
        for c in '\0'..=char::MAX {
            for fold in [Fold::None, Fold::Case, Fold::Marks] {
                let mapped = match Table::of(fold).map(c) {
                    Mapped::One(info) if info.is_dropped() => &[],
                    Mapped::One(info) => &[info][..],
                    Mapped::Several(infos) => infos,
                };
                for info in mapped {
                    digest.write_u32(u32::from(info.char()));
                    digest.write_u8(info.class() as u8);
                }
                digest.write_u8(fold as u8);
            }
        }
        assert_eq!(digest.finish(), DIGEST);
    }

    #[test]
    fn stop_words_are_as_they_were() {
        let mut digest = SipHasher13::new();
        for word in STOP_WORDS {
            digest.write(word.as_bytes());
        }
        assert!(STOP_WORDS.is_sorted());
        assert_eq!(digest.finish(), 6_033_025_158_976_981_417);
    }
}
