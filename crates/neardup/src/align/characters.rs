//! The code points of two documents, numbered together.

use super::pace::Pace;
use super::suffixes::within_limit;
use crate::Result;
use crate::memory::with_room;
use crate::text::pieces;
use std::collections::HashMap;

/// Equal code points have equal numbers, in both documents. A byte that is not UTF-8 (possible in
/// an SQL_ASCII database) is a character of its own.
pub(super) struct Characters {
    pub a: Vec<u32>,
    pub b: Vec<u32>,
    /// Different characters in both: every number is below it.
    pub distinct: usize,
}

impl Characters {
    /// # Errors
    /// `TooLarge` above [`super::MAX_UNITS`] characters, `OutOfMemory`.
    pub fn new(a: &[u8], b: &[u8], pace: &mut Pace) -> Result<Self> {
        let counts = [a, b].map(|doc| count_characters(doc, pace));
        within_limit(counts[0] + counts[1], "characters")?;
        let mut numbers = CharacterNumbers {
            ascii: [None; 128],
            other: HashMap::new(),
            count: 0,
        };
        Ok(Self {
            a: numbers.of(a, counts[0], pace)?,
            b: numbers.of(b, counts[1], pace)?,
            distinct: numbers.count as usize,
        })
    }
}

struct CharacterNumbers {
    ascii: [Option<u32>; 128],
    other: HashMap<u32, u32>,
    count: u32,
}

impl CharacterNumbers {
    #[allow(clippy::disallowed_methods, reason = "reserved before")]
    fn of(&mut self, doc: &[u8], count: usize, pace: &mut Pace) -> Result<Vec<u32>> {
        let mut numbers = with_room(count)?;
        for (character, _) in characters(doc) {
            pace.step();
            let known = match self.ascii.get_mut(character as usize) {
                Some(known) => known,
                None => &mut self.other.get(&character).copied(),
            };
            let number = *known.get_or_insert(self.count);
            if number == self.count {
                self.count += 1;
                if character >= 128 {
                    self.other.try_reserve(1)?;
                    self.other.insert(character, number);
                }
            }
            numbers.push(number);
        }
        Ok(numbers)
    }
}

/// Returns every code point and its length in bytes. A byte that is not UTF-8 has a value above all code
/// points.
fn characters(doc: &[u8]) -> impl Iterator<Item = (u32, usize)> {
    pieces(doc).flat_map(|piece| {
        let valid = piece.text.chars().map(|c| (c as u32, c.len_utf8()));
        let invalid = doc[piece.invalid].iter();
        valid.chain(invalid.map(|&byte| (0x11_0000 + u32::from(byte), 1)))
    })
}

/// Returns the number of characters.
pub(super) fn count_characters(doc: &[u8], pace: &mut Pace) -> usize {
    pieces(doc)
        .map(|piece| {
            pace.steps(1 + piece.text.len() as u32 / 16);
            piece.text.chars().count() + piece.invalid.len()
        })
        .sum()
}

/// Returns the length in bytes of the first `count` characters.
pub(super) fn bytes_of_first(doc: &[u8], count: usize, pace: &mut Pace) -> usize {
    let lengths = characters(doc).take(count).map(|(_, length)| {
        pace.step();
        length
    });
    lengths.sum()
}
