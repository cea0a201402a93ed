//! Aligns the words of two documents: first the common chunks, then the longest runs of other words between the chunks
//! that keep their order.
//!
//! A textbook diff takes quadratic time on documents that differ everywhere. Crates with heuristics against this have
//! slow cases, too. This takes O(n log n).

use super::minima::RangeMinima;
use super::numbered::Numbered;
use super::pace::Pace;
use super::suffixes::Suffixes;
use super::tiling::{CommonRun, tiles};
use super::words::NumberedWords;
use crate::{Grow, Result, collected, filled, with_room};
use std::cmp::Reverse;
use std::iter::repeat_n;

/// The fate of a word of one document in the other document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// In the common chunk with this number.
    Chunk(u32),
    /// In no chunk, but the other document has the word at the same place.
    Same,
    /// The other document does not have the word there.
    Different,
}

pub(super) struct Alignment<'d> {
    pub words: NumberedWords<'d>,
    /// Common chunks in the order of the first document.
    pub chunks: Vec<CommonRun>,
    /// True for each chunk that keeps its place among the others. The rest moved.
    pub in_order: Vec<bool>,
    /// The fate of each word, in the first document and in the second.
    pub fates: [Vec<Fate>; 2],
}

impl<'d> Alignment<'d> {
    /// Returns the alignment of `docs` by common chunks of at least `min_words` words. Time O(n log n), memory about 80
    /// bytes per word.
    ///
    /// # Errors
    /// `TooLarge` above [`super::MAX_UNITS`] words, `OutOfMemory`.
    pub fn new(docs: [&'d [u8]; 2], min_words: u32, pace: &mut Pace) -> Result<Self> {
        let words = NumberedWords::new(docs, pace)?;
        let suffixes = words.suffixes(pace)?;
        let chunks = tiles(&suffixes, min_words, pace)?;
        drop(suffixes);
        let unmatched = |side: usize| filled(Fate::Different, words.sides[side].len());
        let mut alignment = Self {
            in_order: heaviest_chain(&chunks, pace)?,
            fates: [unmatched(0)?, unmatched(1)?],
            words,
            chunks,
        };
        alignment.note_chunks(pace);
        alignment.match_rest(pace)?;
        Ok(alignment)
    }

    /// Returns whether the other document has a word of this `fate` at the same place.
    pub fn keeps(&self, fate: Fate) -> bool {
        match fate {
            Fate::Chunk(chunk) => self.in_order[chunk as usize],
            Fate::Same => true,
            Fate::Different => false,
        }
    }

    fn note_chunks(&mut self, pace: &mut Pace) {
        for (number, run) in self.chunks.iter().enumerate() {
            for (side, start) in [run.a, run.b].into_iter().enumerate() {
                pace.steps(run.words);
                let places = start as usize..(start + run.words) as usize;
                self.fates[side][places].fill(Fate::Chunk(number as u32));
            }
        }
    }

    /// Pairs words outside the chunks with equal words in the corresponding gap.
    fn match_rest(&mut self, pace: &mut Pace) -> Result<()> {
        let (words_a, rest_a) = self.rest(0, pace)?;
        let (words_b, rest_b) = self.rest(1, pace)?;
        // Equal words in the same gap have equal numbers.
        let numbered = Numbered::new([&rest_a, &rest_b], pace)?;
        let suffixes = Suffixes::new(&numbered.a, &numbered.b, numbered.distinct, pace)?;
        let runs = tiles(&suffixes, 1, pace)?;
        for (run, kept) in runs.iter().zip(heaviest_chain(&runs, pace)?) {
            for i in (0..run.words).filter(|_| kept) {
                pace.step();
                self.fates[0][words_a[(run.a + i) as usize] as usize] = Fate::Same;
                self.fates[1][words_b[(run.b + i) as usize] as usize] = Fate::Same;
            }
        }
        Ok(())
    }

    /// Returns the words of `side` outside the chunks as two lists: the places of the words, and their gaps and
    /// numbers.
    fn rest(&self, side: usize, pace: &mut Pace) -> Result<(Vec<u32>, Vec<GapWord>)> {
        let ids = &self.words.sides[side].ids;
        let (mut words, mut rest) = (Vec::new(), Vec::new());
        let (mut gap, mut chunk_before) = (0, None);
        for (word, &fate) in self.fates[side].iter().enumerate() {
            pace.step();
            if let Fate::Chunk(chunk) = fate {
                gap += u32::from(chunk_before != Some(chunk) && self.in_order[chunk as usize]);
                chunk_before = Some(chunk);
            } else {
                words.try_push(word as u32)?;
                rest.try_push((gap, ids[word]))?;
            }
        }
        Ok((words, rest))
    }
}

/// The number of a gap between chunks in order, and the number of a word in that gap.
type GapWord = (u32, u32);

/// Marks the heaviest sequence of runs, counted in words, that is also in the order of `b`. The runs must be disjoint
/// and in the order of `a`. Time O(n log n).
fn heaviest_chain(runs: &[CommonRun], pace: &mut Pace) -> Result<Vec<bool>> {
    let mut order_in_b = collected(runs.iter().map(|run| run.b))?;
    pace.sort_by_key(&mut order_in_b, |b| *b);
    let none: Chain = Reverse((0, None));
    let mut best = RangeMinima::new(none, repeat_n(none, runs.len()))?;
    let mut before = with_room(runs.len())?;
    for (i, run) in (0..).zip(runs) {
        pace.step();
        let rank = order_in_b.partition_point(|&b| b < run.b);
        let Reverse((weight, last)) = best.least(0..rank);
        before.try_push(last)?;
        best.set(rank, Reverse((weight + run.words, Some(i))));
    }
    let mut kept = filled(false, runs.len())?;
    let Reverse((_, mut next)) = best.least(0..runs.len());
    while let Some(i) = next {
        kept[i as usize] = true;
        next = before[i as usize];
    }
    Ok(kept)
}

/// The weight of a chain, and its last run. The heaviest chain is the least.
type Chain = Reverse<(u32, Option<u32>)>;
