//! Code points as the quick fold uses them.

use crate::kernels::fold;

use super::properties::{Info, Mapped, WordClass};
use unicode_normalization::char::compose;

/// A folded code point, in 64 bits: its UTF-8 bytes and their number, its part in words, and its properties for the
/// quick check (UAX #15, section 9).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell(u64);

const LEN: u64 = 7;
const LETTER: u64 = 1 << 3;
const MARK: u64 = 1 << 5;
/// A word ends before the code point.
const GAP: u64 = 1 << 6;
const IN_WORD: u64 = 1 << 7;
/// The code point may compose with the one before it.
const MAYBE: u64 = 1 << 10;
/// The code point needs the [`super::fold::Folder`].
const SLOW: u64 = 1 << 11;
const DECOMPOSES: u64 = 1 << 12;
/// A mark takes these properties from the character before it.
const INHERITED: u64 = Cell::ALONE | IN_WORD;
/// The canonical combining class, or 255 instead of 0: then no class before it is too high.
const ORDER_SHIFT: u32 = 16;
/// The canonical combining class.
const CCC_SHIFT: u32 = 24;
const BYTES_SHIFT: u32 = 32;

impl Cell {
    /// A word by itself, or a mark of one.
    pub const ALONE: u64 = 1 << 4;
    pub const SPACE: u64 = 1 << 8;
    pub const DROPPED: u64 = 1 << 9;
    /// Nothing before the code point can compose or change places with it.
    pub const STARTER: u64 = 1 << 13;
    /// Stands for two or more code points, all of them ASCII.
    pub const SEVERAL: u64 = 1 << 14;
    /// The code point is not a mark, and can be written after anything.
    pub const SIMPLE: u64 = 1 << 15;
    /// Stands for white space, and for the beginning of a document.
    pub const BEFORE: Self =
        Self((b' ' as u64) << BYTES_SHIFT | 1 | GAP | Self::SPACE | Self::STARTER);

    pub fn new(mapped: &Mapped<'_>, is_plain: bool) -> Self {
        match mapped {
            Mapped::One(info) if info.is_dropped() => Self(Self::DROPPED),
            Mapped::One(info) => Self::one(*info, is_plain),
            Mapped::Several(infos) => Self::several(infos).unwrap_or(Self(SLOW)),
        }
    }

    fn one(info: Info, is_plain: bool) -> Self {
        let c = info.char();
        let mut bytes = [0; 4];
        let len = c.encode_utf8(&mut bytes).len();
        let bits = u64::from(u32::from_le_bytes(bytes)) << BYTES_SHIFT | len as u64;
        let ccc = info.combining_class();
        let order = |ccc: u8| {
            let before = if ccc == 0 { u8::MAX } else { ccc };
            u64::from(before) << ORDER_SHIFT | u64::from(ccc) << CCC_SHIFT
        };
        let check = if is_plain {
            order(0) | Self::STARTER
        } else if info.has(Info::BOUNDARY) && !info.has(Info::COMPOSES) && ccc == 0 {
            let decomposes = u64::from(info.has(Info::DECOMPOSES)) * DECOMPOSES;
            order(0) | Self::STARTER | decomposes
        } else if info.has(Info::DECOMPOSES) {
            SLOW
        } else if info.has(Info::COMPOSES) {
            order(ccc) | MAYBE
        } else if ccc != 0 {
            order(ccc)
        } else {
            SLOW
        };
        let is_simple = check & Self::STARTER != 0 && info.class() != WordClass::Mark;
        let simple = if is_simple { Self::SIMPLE } else { 0 };
        Self(bits | Self::part(info.class()) | check | simple)
    }

    fn part(class: WordClass) -> u64 {
        match class {
            WordClass::Separator => GAP,
            WordClass::Space => GAP | Self::SPACE,
            WordClass::Letter => LETTER | IN_WORD,
            WordClass::Alone => Self::ALONE | GAP | IN_WORD,
            WordClass::Mark => MARK,
        }
    }

    /// Returns the cell for up to four ASCII characters of the same kind, such as "ss" for "ß", or None for other
    /// `infos`.
    fn several(infos: &[Info]) -> Option<Self> {
        let mut bytes = [0; 4];
        let class = infos[0].class();
        for (i, info) in infos.iter().enumerate() {
            let c = info.char();
            if !c.is_ascii() || info.class() != class {
                return None;
            }
            *bytes.get_mut(i)? = c as u8;
        }
        let bits = u64::from(u32::from_le_bytes(bytes)) << BYTES_SHIFT | infos.len() as u64;
        let order = u64::from(u8::MAX) << ORDER_SHIFT;
        Some(Self(
            bits | Self::part(class) | order | Self::STARTER | Self::SEVERAL | Self::SIMPLE,
        ))
    }

    /// Returns a cell that stands for the end of a text: white space, or the inside of a word.
    pub fn behind(is_space: bool, is_alone: bool) -> Self {
        match is_space {
            true => Self::BEFORE,
            false => Self(IN_WORD | if is_alone { Self::ALONE } else { 0 }),
        }
    }

    /// Returns the folding kernels' flags for a code point of `len` bytes, or 0 if they cannot fold it. `is_collapsed`
    /// says whether the fold collapses it as white space.
    pub fn flags(self, len: usize, is_collapsed: bool) -> u8 {
        if self.has(Self::DROPPED) {
            return fold::VALID | fold::DROPPED;
        }
        let is_mark = self.has(MARK) && !self.has(MAYBE | SLOW);
        let flags = [
            (true, fold::VALID),
            (self.has(LETTER), fold::LETTER),
            (self.has(Self::ALONE), fold::ALONE),
            (self.has(MARK), fold::MARK),
            (self.has(0xFF << CCC_SHIFT), fold::MOVES),
            (is_collapsed, fold::SPACE),
            (self.len() == 1 || is_collapsed, fold::ONE_BYTE),
        ];
        let is_valid = self.has(Self::SIMPLE) || is_mark;
        if !is_valid || !is_collapsed && self.len() != 1 && self.len() != len {
            return 0;
        }
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        set.fold(0, |all, (_, flag)| all | flag)
    }

    /// Returns the cell with the properties that a mark takes from the cell `before` it.
    #[inline(always)]
    pub fn after(self, before: Self) -> Self {
        let is_mark = 0u64.wrapping_sub(self.0 >> MARK.trailing_zeros() & 1);
        Self(self.0 | before.0 & INHERITED & is_mark)
    }

    /// Returns the UTF-8 bytes as a little-endian number.
    #[inline(always)]
    pub fn bytes(self) -> u32 {
        (self.0 >> BYTES_SHIFT) as u32
    }

    /// Returns the code point, if the cell holds a single one.
    #[inline(always)]
    pub fn code(self) -> u32 {
        match self.len() {
            1 => self.bytes(),
            _ => decode(self.bytes() as usize).0 as u32,
        }
    }

    /// Returns whether the cell has one of the properties `bits`.
    #[inline(always)]
    pub fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    #[inline(always)]
    pub fn len(self) -> usize {
        (self.0 & LEN) as usize
    }

    /// Returns the number of bytes that the cell adds to the words of a text.
    #[inline(always)]
    pub fn len_in_word(self) -> usize {
        self.len() & 0usize.wrapping_sub((self.0 >> IN_WORD.trailing_zeros() & 1) as usize)
    }

    /// Returns 1 if a word ends between `before` and this cell, else 0.
    #[inline(always)]
    pub fn gap(self, before: Self) -> usize {
        let begins = before.0 >> Self::ALONE.trailing_zeros() & self.0 >> LETTER.trailing_zeros();
        ((self.0 >> GAP.trailing_zeros() | begins) & 1) as usize
    }

    /// Returns whether nothing after the cell can compose or change places with code points before the cell.
    #[inline(always)]
    pub fn holds_back(self) -> bool {
        (self.0 >> CCC_SHIFT) as u8 == 0
    }

    /// Returns whether the cell can be written after `before` right away: it is kept, composes with nothing, and leaves
    /// marks in canonical order.
    #[inline(always)]
    pub fn follows(self, before: Self) -> bool {
        let is_ordered = (self.0 >> ORDER_SHIFT) as u8 >= (before.0 >> CCC_SHIFT) as u8;
        is_ordered && self.0 & (Self::DROPPED | MAYBE | SLOW) == 0
    }

    /// Returns whether this cell, which may compose, can be written after `before` because it does not compose with
    /// `before`.
    #[inline(never)]
    pub fn follows_checked(self, before: Self) -> bool {
        let (class, class_before) = ((self.0 >> CCC_SHIFT) as u8, (before.0 >> CCC_SHIFT) as u8);
        if self.0 & MAYBE == 0 || before.has(Self::SEVERAL) {
            return false;
        }
        if class_before != 0 {
            // There is a mark between this code point and the starter before it.
            return class == 0;
        }
        let is_adjacent = class == 0 || before.0 & DECOMPOSES == 0;
        is_adjacent && compose(before.char(), self.char()).is_none()
    }

    fn char(self) -> char {
        char::from_u32(self.code()).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// Returns the first code point of a text that does not begin with ASCII, and its length in bytes. `bytes` are the
/// first bytes of the text as a little-endian number.
#[inline(always)]
pub(super) fn decode(bytes: usize) -> (usize, usize) {
    let (second, third) = (bytes >> 8 & 0x3F, bytes >> 16 & 0x3F);
    match bytes & 0xFF {
        ..0xE0 => ((bytes & 0x1F) << 6 | second, 2),
        0xE0..0xF0 => ((bytes & 0xF) << 12 | second << 6 | third, 3),
        _ => {
            let fourth = bytes >> 24 & 0x3F;
            ((bytes & 7) << 18 | second << 12 | third << 6 | fourth, 4)
        }
    }
}
