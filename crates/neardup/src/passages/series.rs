//! Long stretches of text that repeat themselves at a short distance, such as rows of zeros, ruled lines and tables
//! of numbers. The middle of such a stretch is treated as a whole; otherwise each of its words would be a boundary.

use super::place::{Chosen, document_of};
use super::windows::NO_WORD;
use crate::Result;
use crate::align::Pace;
use crate::hash::split_mix;
use crate::memory::{Grow, with_room};
use std::collections::VecDeque;

/// The least number of windows that are kept at either end of a series.
const LEAST_EDGE: usize = 1 << 10;

/// A stretch of text in which each window, except the first ones, also occurs `period` words before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series {
    /// The number of its first word.
    pub first: u64,
    pub words: u64,
    pub period: u64,
    /// The hash of its first window. Together with the length it determines all words.
    pub hash: u64,
}

impl Series {
    /// Returns the two places of the series' passage: the series without its last period, and the same words without
    /// its first period.
    pub fn places(&self) -> [u64; 2] {
        [self.first, self.first + self.period]
    }

    pub fn passage_words(&self) -> u64 {
        self.words - self.period
    }
}

/// The long series of a collection, in the order of their first words, each with its passage.
pub(super) struct LongSeries(Vec<(Series, SeriesPassage)>);

/// The passage that all series of the same words share.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesPassage {
    /// The first word of the first of these series.
    first: u64,
    series: u32,
    pub documents: u32,
}

impl LongSeries {
    /// Returns the long series with their passages, given the series in any order, and the documents' first words.
    pub fn new(mut series: Vec<Series>, starts: &[u64], check: &mut dyn FnMut()) -> Result<Self> {
        let pace = &mut Pace::new(check);
        let name = |series: &Series| (series.hash, series.words, series.period);
        pace.sort_by_key(&mut series, |series| (name(series), series.first));
        let document = |series: &Series| document_of(series.first, starts);
        let mut known = with_room(series.len())?;
        for same in series.chunk_by(|a, b| name(a) == name(b)) {
            let documents = same.chunk_by(|a, b| document(a) == document(b));
            let passage = SeriesPassage {
                first: same[0].first,
                series: same.len() as u32,
                documents: documents.count() as u32,
            };
            known.extend(same.iter().map(|series| (*series, passage)));
        }
        pace.sort_by_key(&mut known, |(series, _)| series.first);
        Ok(Self(known))
    }

    /// Returns the places of all passages.
    pub fn places(&self) -> impl Iterator<Item = Chosen> {
        self.0.iter().flat_map(|(series, passage)| {
            series.places().map(|first| Chosen {
                passage: passage.first,
                words: series.passage_words(),
                is_series: true,
                first,
                occurrences: 2 * passage.series,
                documents: passage.documents,
            })
        })
    }

    /// Returns the series in which a run of words lies, and its passage.
    pub fn around(&self, first: u64, words: u64) -> Option<&(Series, SeriesPassage)> {
        let before = self.0.partition_point(|(series, _)| series.first <= first);
        let last = self.0[..before].last();
        last.filter(|(series, _)| first + words <= series.first + series.words)
    }
}

/// Receives windows as (hash, first word, word before, word after).
pub(super) type Emit<'a> = dyn FnMut([u64; 4]) -> Result<()> + 'a;

/// Leaves out the middle of every series of more than twice `edge` windows.
///
/// A name of the whole series replaces the word after the last window before the gap, and the word before the first
/// window after it. So all later steps see the gap as one word, which is the same in series of the same words and
/// length. Constant time a window; memory for `edge` and `min_words` windows, and for the series.
pub(super) struct SeriesFilter {
    min_words: usize,
    longest_period: usize,
    edge: usize,
    /// The hashes of the last consecutive windows: enough to find where a series began.
    recent: VecDeque<u64>,
    /// The window that the next ones are compared with, until a period is found.
    reference: [u64; 2],
    /// The last window's first word.
    last: u64,
    open: Option<OpenSeries>,
    /// Windows after the first `edge` of the open series, up to its last `edge`.
    held: VecDeque<[u64; 4]>,
    /// The series of more than twice `edge` windows.
    pub found: Vec<Series>,
}

/// A series that may continue.
struct OpenSeries {
    first: u64,
    period: usize,
    hash: u64,
    /// The last window before the gap, once there is a gap.
    before_gap: Option<[u64; 4]>,
}

impl SeriesFilter {
    pub fn new(min_words: usize) -> Result<Self> {
        let longest_period = min_words / 2;
        let edge = LEAST_EDGE.max(min_words);
        let mut this = Self {
            min_words,
            longest_period,
            edge,
            recent: VecDeque::new(),
            reference: [0, u64::MAX],
            last: u64::MAX,
            open: None,
            held: VecDeque::new(),
            found: Vec::new(),
        };
        this.recent.try_reserve_exact(2 * longest_period + 2)?;
        this.held.try_reserve_exact(edge + 2)?;
        Ok(this)
    }

    /// Adds the next window of the document.
    #[inline]
    pub fn push(&mut self, window: [u64; 4], emit: &mut Emit<'_>) -> Result<()> {
        let [hash, first, ..] = window;
        if first != self.last.wrapping_add(1) {
            self.finish(emit)?;
        } else if self
            .open
            .as_ref()
            .is_some_and(|open| !self.goes_on(open, hash))
        {
            self.close(emit)?;
        }
        self.last = first;
        if self.recent.len() > 2 * self.longest_period {
            self.recent.pop_front();
        }
        self.recent.push_back(hash);
        if self.open.is_none() {
            self.look_for_period(hash, first);
        }
        match &self.open {
            Some(open) if first - open.first >= self.edge as u64 - 1 => self.hold(window),
            _ => emit(window),
        }
    }

    /// Ends the document, or a row of consecutive windows.
    pub fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.close(emit)?;
        self.recent.clear();
        self.reference = [0, u64::MAX];
        self.last = u64::MAX - 1;
        Ok(())
    }

    fn goes_on(&self, open: &OpenSeries, hash: u64) -> bool {
        self.recent[self.recent.len() - open.period] == hash
    }

    fn look_for_period(&mut self, hash: u64, first: u64) {
        let [seen, at] = self.reference;
        let distance = first.wrapping_sub(at);
        if at != u64::MAX && seen == hash && distance <= self.longest_period as u64 {
            let period = distance as usize;
            // The series began after the window before the reference, at the reference at the latest.
            let nth = |word: u64| self.recent[self.recent.len() - 1 - (first - word) as usize];
            let oldest = first + 1 - self.recent.len() as u64;
            let mut begin = at;
            while begin > oldest && nth(begin - 1) == nth(begin - 1 + distance) {
                begin -= 1;
            }
            self.open = Some(OpenSeries {
                first: begin,
                period,
                hash: nth(begin),
                before_gap: None,
            });
        } else if at == u64::MAX || distance >= self.longest_period as u64 {
            self.reference = [hash, first];
        }
    }

    fn hold(&mut self, window: [u64; 4]) -> Result<()> {
        let open = self.open.as_mut().expect("held windows are of a series");
        if self.held.len() > self.edge {
            let oldest = self.held.pop_front();
            if open.before_gap.is_none() {
                open.before_gap = oldest;
            }
        }
        self.held.push_back(window);
        Ok(())
    }

    fn close(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.reference = [0, u64::MAX];
        if let Some([hash, first, left, _]) = open.before_gap {
            // One window more than `edge` is held: the first belongs to the gap.
            self.held.pop_front();
            let words = self.last + self.min_words as u64 - open.first;
            self.found.try_push(Series {
                first: open.first,
                words,
                period: open.period as u64,
                hash: open.hash,
            })?;
            let gap = split_mix(words).max(NO_WORD + 1);
            emit([hash, first, left, gap])?;
            if let Some(behind) = self.held.front_mut() {
                behind[2] = gap;
            }
        }
        self.held.drain(..).try_for_each(emit)
    }
}
