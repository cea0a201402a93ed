//! The code points of two documents, numbered together.

use super::pace::Pace;
use super::suffixes::within_limit;
use crate::Result;
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
    /// `TooLarge` above [`super::MAX_UNITS`] characters.
    pub fn new(a: &[u8], b: &[u8], pace: &mut Pace) -> Result<Self> {
        within_limit(count_characters(a) + count_characters(b), "characters")?;
        let mut numbers = Numbers {
            ascii: [None; 128],
            other: HashMap::new(),
            count: 0,
        };
        Ok(Self {
            a: numbers.of(a, pace),
            b: numbers.of(b, pace),
            distinct: numbers.count as usize,
        })
    }
}

struct Numbers {
    ascii: [Option<u32>; 128],
    other: HashMap<u32, u32>,
    count: u32,
}

impl Numbers {
    fn of(&mut self, doc: &[u8], pace: &mut Pace) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(doc.len());
        each_character(doc, |character, _| {
            pace.step();
            let known = match self.ascii.get_mut(character as usize) {
                Some(known) => known,
                None => &mut self.other.get(&character).copied(),
            };
            let number = *known.get_or_insert(self.count);
            if number == self.count {
                self.count += 1;
                if character >= 128 {
                    self.other.insert(character, number);
                }
            }
            numbers.push(number);
        });
        numbers
    }
}

/// Calls `f` with every code point and its length in bytes; what is not UTF-8, byte by byte with a
/// value above all code points.
fn each_character(doc: &[u8], mut f: impl FnMut(u32, usize)) {
    for chunk in doc.utf8_chunks() {
        for c in chunk.valid().chars() {
            f(c as u32, c.len_utf8());
        }
        for &byte in chunk.invalid() {
            f(0x11_0000 + u32::from(byte), 1);
        }
    }
}

/// Number of characters.
pub(super) fn count_characters(doc: &[u8]) -> usize {
    doc.utf8_chunks()
        .map(|chunk| chunk.valid().chars().count() + chunk.invalid().len())
        .sum()
}

/// Length in bytes of the first `count` characters.
pub(super) fn bytes_of_first(doc: &[u8], count: usize) -> usize {
    let (mut seen, mut bytes) = (0, 0);
    each_character(doc, |_, length| {
        if seen < count {
            bytes += length;
        }
        seen += 1;
    });
    bytes
}
