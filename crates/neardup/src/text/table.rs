//! The properties of all code points under each fold.
//!
//! Pages of 256 code points are read from the Unicode crates when first used, and kept. A text uses few pages, and a
//! lookup then costs two loads.
#![allow(clippy::disallowed_methods, reason = "the folded forms of 256 code points")]

use super::Fold;
use super::cell::Cell;
use crate::kernels::fold::{FoldRow, FoldRows};

use super::properties::{Info, Mapped, Properties};
use std::sync::OnceLock;
use unicode_normalization::UnicodeNormalization;

const PAGE: usize = 256;
const PAGES: usize = (char::MAX as usize + 1) / PAGE;

struct TablePage {
    infos: [Info; PAGE],
    expansions: Vec<Info>,
    cells: [Cell; PAGE],
}

type PageRows = [FoldRow; PAGE / 64];

/// The infos of all code points under one fold.
pub(crate) struct Table {
    fold: Fold,
    pages: [OnceLock<Box<TablePage>>; PAGES],
    rows: FoldRows,
}

static NONE: Table = Table::new(Fold::None, |page| NONE.read_rows(page));
static CASE: Table = Table::new(Fold::Case, |page| CASE.read_rows(page));
static MARKS: Table = Table::new(Fold::Marks, |page| MARKS.read_rows(page));

impl Table {
    const fn new(fold: Fold, read_rows: fn(usize) -> Box<PageRows>) -> Self {
        Self {
            fold,
            pages: [const { OnceLock::new() }; PAGES],
            rows: FoldRows::new(read_rows),
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

    /// Returns the cell of the code point with the number `code`.
    #[inline(always)]
    pub fn cell(&'static self, code: usize) -> Cell {
        self.page(code / PAGE).cells[code % PAGE]
    }

    /// Returns the rows with which kernels fold.
    pub fn rows(&'static self) -> &'static FoldRows {
        &self.rows
    }

    #[cold]
    fn read_rows(&'static self, page: usize) -> Box<PageRows> {
        let mut rows = Box::new([const { FoldRow::EMPTY }; PAGE / 64]);
        for (i, cell) in self.page(page).cells.iter().enumerate() {
            let len = char::from_u32((page * PAGE + i) as u32).map_or(0, char::len_utf8);
            let is_collapsed = self.fold != Fold::None && cell.has(Cell::SPACE);
            let row = &mut rows[i / 64];
            for (place, byte) in cell.bytes().to_le_bytes()[..3].iter().enumerate() {
                row.bytes[place][i % 64] = if is_collapsed { b' ' } else { *byte };
            }
            row.flags[i % 64] = cell.flags(len, is_collapsed);
        }
        rows
    }

    #[inline(always)]
    fn page(&'static self, number: usize) -> &'static TablePage {
        self.pages[number].get_or_init(|| TablePage::read(self.fold, number))
    }
}

/// Returns the properties of `c` as it is, not folded.
#[inline]
pub(crate) fn info(c: char) -> Info {
    match NONE.map(c) {
        Mapped::One(info) => info,
        Mapped::Several(infos) => infos[0],
    }
}

impl TablePage {
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
                    Info::expanding(start..page.expansions.len())
                }
            };
        }
        page.cells = std::array::from_fn(|i| Cell::new(&page.mapped(i), fold == Fold::None));
        Box::new(page)
    }

    #[inline]
    fn mapped(&self, i: usize) -> Mapped<'_> {
        let info = self.infos[i];
        match info.expansion() {
            Some(places) => Mapped::Several(&self.expansions[places]),
            None => Mapped::One(info),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::properties::WordClass;
    use crate::text::stop_words;
    use siphasher::sip::SipHasher13;
    use std::hash::Hasher;

    /// The digest of all tables. It must never change: stored signatures were made with these tables. A crate with
    /// another Unicode version must stay out.
    const DIGEST: u64 = 8_598_111_518_627_044_643;

    #[test]
    fn scheme_1_is_unicode_17() {
        assert_eq!(unicode_normalization::UNICODE_VERSION, (17, 0, 0));
        // Assigned in 17.0: SIDETIC LETTER N01, TAI YO LETTER LOW KO, CJK extension J.
        for c in ['\u{10940}', '\u{1E6C0}', '\u{323B0}'] {
            assert_ne!(info(c).class(), WordClass::Separator, "{c:?}");
        }
        // Unassigned in 17.0.
        for c in ['\u{378}', '\u{E0FFF}', '\u{3347A}'] {
            assert_eq!(info(c).class(), WordClass::Separator, "{c:?}");
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
        for word in stop_words() {
            digest.write(word.as_bytes());
        }
        assert!(stop_words().is_sorted());
        assert_eq!(digest.finish(), 6_033_025_158_976_981_417);
    }
}
