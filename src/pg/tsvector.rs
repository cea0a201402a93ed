//! The lexemes of a `tsvector`, in the order of the document.

use crate::pg::encoding::Utf8;
use crate::pg::error::{OrRaise, corrupted, invalid};
use crate::pg::varlena::{Varlena, argument};
use neardup::memory::{Grow, collected};
use pgrx::pg_sys;

/// The highest position, which PostgreSQL also gives to all later lexemes.
const LAST_POSITION: u16 = 16383;

/// Maximum number of positions per lexeme. PostgreSQL drops further ones.
const MOST_POSITIONS: usize = 255;

/// A `tsvector` argument.
pub struct TsVector<'a>(Varlena<'a>);

/// A lexeme with its frequency and the mean weight of its occurrences.
pub struct Frequency<'a> {
    pub lexeme: Utf8<&'a [u8]>,
    /// The number of positions; 1 after `strip`.
    pub frequency: u32,
    /// The mean of the positions' weights; the weight of class D after `strip`.
    pub mean_weight: f64,
}

/// Default weights of positions in `ts_rank`, in tenths, by the code of their class: D, C, B, A.
const CLASS_TENTHS: [u32; 4] = [1, 2, 4, 10];

impl TsVector<'_> {
    /// Reads a datum of type `tsvector`.
    ///
    /// # Safety
    /// `datum` is a non-null datum of type tsvector that outlives the value.
    unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self(Varlena::from_raw(datum))
    }

    /// Returns the distinct lexemes, in UTF-8.
    pub fn lexemes(&self) -> Vec<Utf8<&[u8]>> {
        let lexemes = self.entries().map(|entry| Utf8::new(entry.lexeme));
        collected(lexemes).or_raise()
    }

    /// Returns the lexemes with their frequencies and weights.
    pub fn frequencies(&self) -> impl Iterator<Item = Frequency<'_>> {
        self.entries().map(|entry| {
            let (mut frequency, mut tenths) = (0, 0);
            for (_, class) in entry.positions() {
                frequency += 1;
                tenths += CLASS_TENTHS[class];
            }
            if frequency == 0 {
                (frequency, tenths) = (1, CLASS_TENTHS[0]);
            }
            Frequency {
                lexeme: Utf8::new(entry.lexeme),
                frequency,
                mean_weight: f64::from(tenths) / f64::from(10 * frequency),
            }
        })
    }

    /// Returns the lexemes ordered by position, then by name; gaps are ignored.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` if positions are missing: after `strip`, at position 16383 or later, or if a
    /// lexeme has 255 occurrences or more.
    pub fn sequence(&self) -> Vec<Utf8<&[u8]>> {
        let mut occurrences = Vec::new();
        for entry in self.entries() {
            check_positions(&entry);
            let positions = entry.positions();
            let more = positions.map(|(position, _)| (position, Utf8::new(entry.lexeme)));
            occurrences.try_extend(more).or_raise();
        }
        occurrences.sort_unstable_by(|(a, x), (b, y)| (a, &**x).cmp(&(b, &**y)));
        collected(occurrences.into_iter().map(|(_, lexeme)| lexeme)).or_raise()
    }

    /// Returns the lexemes as stored. After the varlena header come the number of lexemes (4 bytes); for each lexeme 1
    /// bit "has positions", 11 bits length, 20 bits offset; then the lexemes, each followed, 2-byte aligned, by the
    /// number of its positions (2 bytes) and the positions (2 bits weight, 14 bits position).
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let bytes: &[u8] = &self.0;
        let count = bytes
            .first_chunk()
            .map_or(0, |count| u32::from_ne_bytes(*count));
        let (heads, body) = bytes[bytes.len().min(4)..]
            .split_at_checked(4 * count as usize)
            .unwrap_or_else(|| corrupt());
        let (heads, _) = heads.as_chunks();
        heads.iter().map(move |head| {
            Entry::read(u32::from_ne_bytes(*head), body).unwrap_or_else(|| corrupt())
        })
    }
}

/// A lexeme as stored.
struct Entry<'a> {
    lexeme: &'a [u8],
    /// The positions of the lexeme, two bytes each.
    positions: &'a [u8],
}

impl<'a> Entry<'a> {
    fn read(head: u32, body: &'a [u8]) -> Option<Self> {
        let has_positions = head & 1 != 0;
        let start = (head >> 12) as usize;
        let end = start + (head >> 1 & 0x7FF) as usize;
        let lexeme = body.get(start..end)?;
        let mut positions = &[][..];
        if has_positions {
            let rest = body.get(end.next_multiple_of(2)..)?;
            let (count, rest) = rest.split_first_chunk()?;
            positions = rest.get(..2 * usize::from(u16::from_ne_bytes(*count)))?;
        }
        Some(Self { lexeme, positions })
    }

    /// Returns the positions, each with the code of its weight class.
    fn positions(&self) -> impl ExactSizeIterator<Item = (u16, usize)> + use<'a> {
        let (positions, _) = self.positions.as_chunks();
        positions.iter().map(|bytes| {
            let stored = u16::from_ne_bytes(*bytes);
            (stored & 0x3FFF, usize::from(stored >> 14))
        })
    }
}

fn check_positions(entry: &Entry<'_>) {
    let mut positions = entry.positions();
    let missing = if positions.len() == 0 {
        "the tsvector has no positions"
    } else if positions.len() >= MOST_POSITIONS {
        "a tsvector keeps no more than 255 positions of a lexeme"
    } else if positions.any(|(position, _)| position >= LAST_POSITION) {
        "a tsvector keeps no positions after 16383"
    } else {
        return;
    };
    invalid(
        missing,
        "Use k = 1, which needs no positions, or split the document.",
    )
}

fn corrupt() -> ! {
    corrupted("invalid tsvector")
}

argument!(TsVector, "tsvector");
