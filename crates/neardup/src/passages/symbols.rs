//! Documents as short sequences of boundaries, and of the ways in which the text continues between them.

use super::boundaries::Boundary;
use super::windows::NO_WORD;
use crate::align::Pace;
use crate::hash::split_mix;
use crate::memory::{Grow, filled, with_room};
use crate::{Error, Result};

/// The most symbols: their numbers, and the numbers of the nodes above them, have 32 bits.
const MAX_SYMBOLS: usize = 1 << 31;

/// The boundaries of documents.
///
/// A boundary's symbol is its window. If the next window is no boundary, a symbol for the word after the boundary
/// follows: window and word together determine everything up to the next boundary. The end of a document has a
/// symbol that occurs nowhere else. So two runs of text that begin and end with boundaries are equal if and only if
/// their symbols are. A maximal repeat begins and ends with a boundary's symbol: a run that begins or ends with
/// another symbol can always be extended in the same way.
pub(super) struct Sequences {
    /// Every symbol's number.
    pub symbols: Vec<u32>,
    /// A number greater than every symbol.
    pub letters: usize,
    /// The number of the first word of a boundary's window; [`BETWEEN`] for other symbols.
    pub firsts: Vec<u64>,
    /// By symbol: a run of up to this many words that begins here lies in the middle of a series, so that it also
    /// occurs one period before and one period later.
    pub series: Vec<u32>,
    pub min_words: usize,
}

/// In place of the number of a first word, for symbols that are not a boundary's window.
pub(super) const BETWEEN: u64 = u64::MAX;

impl Sequences {
    /// Returns the sequences of boundaries, which are given in the order of their first words.
    ///
    /// # Errors
    /// `TooLarge` beyond [`MAX_SYMBOLS`]; `OutOfMemory`.
    pub fn new(boundaries: &[Boundary], min_words: usize, pace: &mut Pace) -> Result<Self> {
        let mut names = with_room(2 * boundaries.len())?;
        let mut this = Self {
            symbols: Vec::new(),
            letters: 0,
            firsts: with_room(2 * boundaries.len())?,
            series: with_room(2 * boundaries.len())?,
            min_words,
        };
        let mut boundaries = boundaries.iter().peekable();
        while let Some(&[first, hash, right, period]) = boundaries.next() {
            pace.step();
            let at = this.push(first, period)?;
            names.try_push((hash, at))?;
            let next = boundaries.peek().map(|next| next[0]);
            if right == NO_WORD {
                this.push(BETWEEN, 0)?;
            } else if next != Some(first + 1) {
                let at = this.push(BETWEEN, 0)?;
                let name = split_mix(hash).wrapping_add(right);
                names.try_push((split_mix(name), at))?;
            }
        }
        pace.sort_by_key(&mut names, |name| *name);
        this.number(&names, pace)?;
        this.measure_series();
        Ok(this)
    }

    fn push(&mut self, first: u64, period: u64) -> Result<u32> {
        let at = self.firsts.len();
        if at == MAX_SYMBOLS {
            return Err(Error::TooLarge {
                message: "the collection has too many repeats".into(),
                hint: "Raise min_words, or search parts of the collection.".into(),
            });
        }
        self.firsts.try_push(first)?;
        self.series.try_push(period as u32)?;
        Ok(at as u32)
    }

    /// Gives equal names equal numbers, and every symbol without a name a number of its own.
    fn number(&mut self, names: &[(u64, u32)], pace: &mut Pace) -> Result<()> {
        const NONE: u32 = u32::MAX;
        self.symbols = filled(NONE, self.firsts.len())?;
        let mut last = None;
        for (name, at) in names {
            pace.step();
            self.letters += usize::from(last != Some(name));
            self.symbols[*at as usize] = self.letters as u32 - 1;
            last = Some(name);
        }
        for symbol in &mut self.symbols {
            if *symbol == NONE {
                *symbol = self.letters as u32;
                self.letters += 1;
            }
        }
        Ok(())
    }

    /// Turns periods into lengths. Within a series, windows that also occur one period before follow each other at
    /// most a period apart; its last window is a boundary.
    fn measure_series(&mut self) {
        // Period, first word of the series' next boundary, end of the series.
        let mut series: Option<(u64, u64, u64)> = None;
        for (first, length) in self.firsts.iter().zip(&mut self.series).rev() {
            let period = u64::from(*length);
            if period == 0 {
                continue;
            }
            let end = match series {
                Some((same, next, end)) if same == period && next - first <= period => end,
                _ => first + self.min_words as u64,
            };
            series = Some((period, *first, end));
            *length = (end - first).saturating_sub(period) as u32;
        }
    }
}
