//! Folds runs of text in which the folded form of every code point takes as many bytes as the code point, or one.

use std::sync::OnceLock;

/// Number of bytes folded at once.
pub const BLOCK: usize = 64;

/// Room for the items of a block: its bytes, the spaces between them, and the rest of the last vector store.
pub const BLOCK_ROOM: usize = 2 * BLOCK;

/// The folded forms of 64 code points that differ only in the last byte.
pub struct FoldRow {
    /// The first, second and third bytes of the folded forms.
    pub bytes: [[u8; 64]; 3],
    /// The flags of the code points, made of the constants below.
    pub flags: [u8; 64],
}

impl FoldRow {
    /// A row of code points that no run can contain.
    pub const EMPTY: Self = Self {
        bytes: [[0; 64]; 3],
        flags: [0; 64],
    };
}

/// Number of rows of [`FoldRows`] that are made at once.
pub const ROWS_AT_ONCE: usize = 4;

/// The rows of all code points under one fold, made when first needed.
pub struct FoldRows {
    rows: [OnceLock<Box<[FoldRow; ROWS_AT_ONCE]>>; Self::ALL / ROWS_AT_ONCE],
    make: fn(usize) -> Box<[FoldRow; ROWS_AT_ONCE]>,
}

impl FoldRows {
    const ALL: usize = (char::MAX as usize + 1) / 64;

    /// Returns rows that `make` computes on first use: `make(i)` returns the [`ROWS_AT_ONCE`] rows that begin at row
    /// `i * ROWS_AT_ONCE`.
    pub const fn new(make: fn(usize) -> Box<[FoldRow; ROWS_AT_ONCE]>) -> Self {
        Self {
            rows: [const { OnceLock::new() }; Self::ALL / ROWS_AT_ONCE],
            make,
        }
    }

    /// Returns the row of the 64 code points that start at 64 times `number`. Inlined, because a call would force the
    /// vectors of a block out of their registers.
    #[inline(always)]
    pub fn row(&'static self, number: usize) -> &'static FoldRow {
        let rows = &self.rows[number / ROWS_AT_ONCE];
        &rows.get_or_init(|| (self.make)(number / ROWS_AT_ONCE))[number % ROWS_AT_ONCE]
    }
}

/// A run can contain the code point.
pub const VALID: u8 = 1;
/// The code point is a word by itself.
pub const ALONE: u8 = 2;
pub const LETTER: u8 = 4;
pub const MARK: u8 = 8;
/// The code point changes places with marks of other classes.
pub const MOVES: u8 = 16;
/// White space that is collapsed.
pub const SPACE: u8 = 32;
/// The folded form takes one byte. Otherwise it takes as many as the code point.
pub const ONE_BYTE: u8 = 64;
/// The folded text does not contain the code point.
pub const DROPPED: u8 = 128;

/// Ranges of characters that no fold changes, too many to be looked up one by one: letters that are words by
/// themselves, U+4E00 to U+9FFF, and syllables of Hangul, U+AC00 to U+D77F. Each entry holds the first two bytes of the
/// first and of the last character, and their flags.
pub const UNCHANGED: [([u8; 2], [u8; 2], u8); 2] = [
    ([0xE4, 0xB8], [0xE9, 0xBF], VALID | ALONE),
    ([0xEA, 0xB0], [0xED, 0x9D], VALID | LETTER),
];

/// The extent to which a text was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Folded {
    /// Number of bytes folded, up to a code point before which no later code point changes anything.
    pub done: usize,
    /// Number of items written: bytes of the words, or characters.
    pub written: usize,
    /// Words: whether the folded text ends with a word of one character and its marks. Characters: whether it ends
    /// with white space.
    pub is_after: bool,
}
