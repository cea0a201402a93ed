//! Documents as short sequences: their boundaries, and which way the text goes on between.

use super::boundaries::Boundary;
use super::sort::{HEARTBEAT, Scratch, Sort, Sorted};
use super::windows::NO_WORD;
use crate::hash::split_mix;
use crate::memory::filled;
use crate::{Error, Result};

/// Symbols at most: their numbers, and those of the nodes above them, have 32 bits.
const MAX_SYMBOLS: usize = 1 << 31;

/// The boundaries of all documents.
///
/// A boundary's symbol is its window. Where the next window is no boundary, a symbol for the word
/// behind follows: window and word together decide everything up to the next boundary. At the end
/// of a document stands a symbol that occurs nowhere else. So runs of text that begin and end with
/// boundaries are equal exactly where their symbols are, and a maximal repeat begins and ends with a
/// boundary's symbol: one that begins or ends with another can be extended, always in the same way.
pub(super) struct Sequences {
    /// Every symbol's number.
    pub symbols: Vec<u32>,
    /// Greater than every symbol.
    pub letters: usize,
    /// The number of the first word of a boundary's window; [`BETWEEN`] for other symbols.
    pub firsts: Vec<u64>,
    /// A run of up to that many words that begins here lies in the middle of a series: it stands
    /// also one period before and one behind.
    pub series: Vec<u32>,
    pub min_words: usize,
}

/// In place of a word's number.
pub(super) const BETWEEN: u64 = u64::MAX;

impl Sequences {
    /// Of boundaries in the order of their first words.
    ///
    /// # Errors
    /// `TooLarge` beyond [`MAX_SYMBOLS`]; `OutOfMemory`.
    pub fn new<S: Scratch>(
        boundaries: Sorted<4, S>,
        min_words: usize,
        memory: usize,
        check: &mut dyn FnMut(),
    ) -> Result<Self> {
        let mut names = Sort::<2, S>::new(memory);
        let mut this = Self {
            symbols: Vec::new(),
            letters: 0,
            firsts: Vec::new(),
            series: Vec::new(),
            min_words,
        };
        let mut boundaries = boundaries.map(Boundary::from).peekable();
        while let Some(boundary) = boundaries.next() {
            if this.firsts.len() % HEARTBEAT < 2 {
                check();
            }
            let at = this.push(boundary.first, boundary.period)?;
            names.push([boundary.hash, at], check)?;
            let next = boundaries.peek().map(|next| next.first);
            if boundary.right == NO_WORD {
                this.push(BETWEEN, 0)?;
            } else if next != Some(boundary.first + 1) {
                let at = this.push(BETWEEN, 0)?;
                let name = split_mix(boundary.hash).wrapping_add(boundary.right);
                names.push([split_mix(name), at], check)?;
            }
        }
        this.number(names.sorted(check)?, check)?;
        this.measure_series();
        Ok(this)
    }

    fn push(&mut self, first: u64, period: u64) -> Result<u64> {
        let at = self.firsts.len();
        if at == MAX_SYMBOLS {
            return Err(Error::TooLarge {
                message: "the collection has too many repeats".into(),
                hint: "Raise min_words, or search parts of the collection.".into(),
            });
        }
        self.firsts.try_reserve(1)?;
        self.series.try_reserve(1)?;
        self.firsts.push(first);
        self.series.push(period as u32);
        Ok(at as u64)
    }

    /// Gives equal names equal numbers, and every symbol without a name one of its own.
    fn number<S: Scratch>(&mut self, names: Sorted<2, S>, check: &mut dyn FnMut()) -> Result<()> {
        const NONE: u32 = u32::MAX;
        self.symbols = filled(NONE, self.firsts.len())?;
        let mut last = None;
        for (count, [name, at]) in names.enumerate() {
            if count % HEARTBEAT == 0 {
                check();
            }
            self.letters += usize::from(last != Some(name));
            self.symbols[at as usize] = self.letters as u32 - 1;
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

    /// Turns periods into lengths. Windows that stand also one period before follow each other at
    /// most a period apart as long as a series lasts: its last window is a boundary.
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
