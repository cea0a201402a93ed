//! The code points of two documents, numbered together.

use super::pace::Pace;
use super::suffixes::within_limit;
use crate::text::pieces;
use crate::{Result, collected};

/// Returns the code points of each of `docs`. A byte that is not UTF-8 (possible in an SQL_ASCII database) counts as a
/// character.
///
/// # Errors
/// `TooLarge` above [`super::MAX_UNITS`] characters, `OutOfMemory`.
pub(super) fn code_points(docs: [&[u8]; 2], pace: &mut Pace) -> Result<[Vec<u32>; 2]> {
    let counts = docs.map(|doc| count_characters(doc, pace));
    within_limit(counts[0] + counts[1], "characters")?;
    let mut read = |doc| {
        collected(characters(doc).map(|(character, _)| {
            pace.step();
            character
        }))
    };
    Ok([read(docs[0])?, read(docs[1])?])
}

/// Returns every code point of `doc` and its length in bytes. A byte that is not UTF-8 gets a value above all code
/// points.
fn characters(doc: &[u8]) -> impl Iterator<Item = (u32, usize)> {
    pieces(doc).flat_map(|piece| {
        let valid = piece.text.chars().map(|c| (c as u32, c.len_utf8()));
        let invalid = doc[piece.invalid].iter();
        valid.chain(invalid.map(|&byte| (0x11_0000 + u32::from(byte), 1)))
    })
}

/// Returns the number of characters of `doc`. A byte that is not UTF-8 counts as one.
pub(super) fn count_characters(doc: &[u8], pace: &mut Pace) -> usize {
    pieces(doc)
        .map(|piece| {
            pace.steps(1 + piece.text.len() as u32 / 16);
            piece.text.chars().count() + piece.invalid.len()
        })
        .sum()
}

/// Returns the length in bytes of the first `count` characters of `doc`.
pub(super) fn bytes_of_first(doc: &[u8], count: usize, pace: &mut Pace) -> usize {
    let lengths = characters(doc).take(count).map(|(_, length)| {
        pace.step();
        length
    });
    lengths.sum()
}
