//! Folding runs of text in which the folded form of every code point takes as many bytes as itself, or one.

use std::sync::OnceLock;

/// Bytes that are folded at once.
pub const BLOCK: usize = 64;

/// Room for the items of a block: its bytes, spaces between them, and what a whole store leaves behind them.
pub const BLOCK_ROOM: usize = 2 * BLOCK;

/// The folded forms of 64 code points that differ in the last byte alone.
pub struct FoldRow {
    /// The first, second and third byte of each.
    pub bytes: [[u8; 64]; 3],
    /// The flags of each, below.
    pub flags: [u8; 64],
}

impl FoldRow {
    /// A row of code points that no run can contain.
    pub const EMPTY: Self = Self {
        bytes: [[0; 64]; 3],
        flags: [0; 64],
    };
}

/// Rows of [`FoldRows`] that are made at once.
pub const ROWS_AT_ONCE: usize = 4;

/// The rows of all code points under one fold, made when they are first needed.
pub struct FoldRows {
    rows: [OnceLock<Box<[FoldRow; ROWS_AT_ONCE]>>; Self::ALL / ROWS_AT_ONCE],
    make: fn(usize) -> Box<[FoldRow; ROWS_AT_ONCE]>,
}

impl FoldRows {
    const ALL: usize = (char::MAX as usize + 1) / 64;

    /// Takes a function that makes the rows from its argument times [`ROWS_AT_ONCE`] on.
    pub const fn new(make: fn(usize) -> Box<[FoldRow; ROWS_AT_ONCE]>) -> Self {
        Self {
            rows: [const { OnceLock::new() }; Self::ALL / ROWS_AT_ONCE],
            make,
        }
    }

    /// Returns the row of the code points from 64 times its number on. Inlined: a call would drive the vectors
    /// of a block out of their registers.
    #[inline(always)]
    pub fn row(&'static self, number: usize) -> &'static FoldRow {
        let rows = &self.rows[number / ROWS_AT_ONCE];
        &rows.get_or_init(|| (self.make)(number / ROWS_AT_ONCE))[number % ROWS_AT_ONCE]
    }
}

/// A run can contain it.
pub const VALID: u8 = 1;
/// It is a word by itself.
pub const ALONE: u8 = 2;
pub const LETTER: u8 = 4;
pub const MARK: u8 = 8;
/// It changes places with marks of other classes.
pub const MOVES: u8 = 16;
/// White space that is collapsed.
pub const SPACE: u8 = 32;
/// Its folded form takes one byte; that of others takes as many as itself.
pub const ONE_BYTE: u8 = 64;
/// The folded text does not have it.
pub const DROPPED: u8 = 128;

/// Ranges of characters that no fold changes, too many to be looked up one by one: letters that are words by
/// themselves, U+4E00 to U+9FFF, and syllables of Hangul, U+AC00 to U+D77F. Each has the first two bytes of its
/// first and of its last character, and their flags.
pub const UNCHANGED: [([u8; 2], [u8; 2], u8); 2] = [
    ([0xE4, 0xB8], [0xE9, 0xBF], VALID | ALONE),
    ([0xEA, 0xB0], [0xED, 0x9D], VALID | LETTER),
];

/// How much of a text was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Folded {
    /// Bytes of the text: up to a code point before which nothing behind it changes anything.
    pub done: usize,
    /// Bytes of the words, or characters.
    pub written: usize,
    /// The folded text ends with a word of one character, and of marks; of characters, with white space.
    pub is_after: bool,
}
