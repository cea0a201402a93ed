//! Common chunks, and the similarities S_L and S_J that count their words.

use super::characters::count_characters;
use super::information::information;
use super::pace::Pace;
use super::tiling::tiles;
use super::words::{NumberedWords, Side};
use crate::{Error, Grow, Result, collected, unknown, with_room};
use std::ops::Range;
use strum::{EnumString, VariantNames};

/// The rule by which words of common runs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown_matching)]
pub enum Matching {
    /// One-to-one, longest first: no word is used twice.
    Literal,
    /// Any word of a common run counts, but a run that a document repeats counts once.
    Information,
}

fn unknown_matching(name: &str) -> Error {
    unknown("matching", name, Matching::VARIANTS)
}

/// A maximal common run of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub words: u32,
    pub a: ChunkPlace,
    pub b: ChunkPlace,
}

/// The place of a chunk in one document. Counts start at 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkPlace {
    /// The number of the chunk's first word.
    pub word: u32,
    /// The chunk's code points, including the text between its words.
    pub chars: Range<u32>,
    /// The chunk's bytes, including the text between its words.
    pub bytes: Range<usize>,
}

/// The overlap of two documents, counted in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Similarity {
    /// C: words in common chunks.
    pub common: usize,
    /// L: words of the longer document.
    pub longer: usize,
    /// S: words of the shorter document.
    pub shorter: usize,
}

impl Similarity {
    /// Returns S_L = C / L; 0 for documents without words.
    pub fn s_l(&self) -> f64 {
        share(self.common, self.longer)
    }

    /// Returns S_J = C / (L + S - C); 0 for documents without words.
    pub fn s_j(&self) -> f64 {
        share(self.common, self.longer + self.shorter - self.common)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns the common chunks of at least `min_words` words, in the order of `a`. With [`Matching::Literal`], no two
/// chunks overlap. With [`Matching::Information`], they are the fewest that cover every counted common word of `a` and
/// of `b`, each with its first occurrence in the other document.
///
/// Time O(n log n), memory about 60 bytes per word.
///
/// # Errors
/// `Invalid` if `min_words` is below 1, `TooLarge` above [`super::MAX_UNITS`] words, `OutOfMemory`.
pub fn common_chunks(
    a: &[u8],
    b: &[u8],
    min_words: i64,
    matching: Matching,
    check: &mut dyn FnMut(),
) -> Result<Vec<Chunk>> {
    let min_words = valid_min_words(min_words)?;
    let pace = &mut Pace::new(check);
    let words = NumberedWords::new([a, b], pace)?;
    let suffixes = words.suffixes(pace)?;
    let runs = match matching {
        Matching::Literal => tiles(&suffixes, min_words, pace)?,
        Matching::Information => information(&suffixes, min_words, pace)?.runs,
    };
    let [in_a, in_b] = &words.sides;
    let in_a = places(in_a, runs.iter().map(|run| (run.a, run.words)), pace)?;
    let in_b = places(in_b, runs.iter().map(|run| (run.b, run.words)), pace)?;
    let both = runs.iter().zip(in_a.into_iter().zip(in_b));
    collected(both.map(|(run, (a, b))| Chunk {
        words: run.words,
        a,
        b,
    }))
}

/// Returns C, L and S of `a` and `b`, for chunks of at least `min_words` words. With [`Matching::Information`], L and S
/// leave out the words of every run of at least `min_words` words that started earlier in the same document. C is then
/// the number of remaining words in common runs, counted in the document that has fewer.
///
/// # Errors
/// The errors of [`common_chunks`].
pub fn chunk_similarity(
    a: &[u8],
    b: &[u8],
    min_words: i64,
    matching: Matching,
    check: &mut dyn FnMut(),
) -> Result<Similarity> {
    let min_words = valid_min_words(min_words)?;
    let pace = &mut Pace::new(check);
    let words = NumberedWords::new([a, b], pace)?;
    let suffixes = words.suffixes(pace)?;
    let (common, sizes) = match matching {
        Matching::Literal => {
            let runs = tiles(&suffixes, min_words, pace)?;
            let common = runs.iter().map(|run| run.words as usize).sum();
            (common, words.sides.each_ref().map(Side::len))
        }
        Matching::Information => {
            let found = information(&suffixes, min_words, pace)?;
            (found.common[0].min(found.common[1]), found.counted)
        }
    };
    Ok(Similarity {
        common,
        longer: sizes[0].max(sizes[1]),
        shorter: sizes[0].min(sizes[1]),
    })
}

/// Checks and returns `min_words`. A value above the number of words that a document can have is as good as infinite.
pub(super) fn valid_min_words(min_words: i64) -> Result<u32> {
    if min_words < 1 {
        return Err(Error::invalid(
            format!("min_words = {min_words} is out of range"),
            "Valid values are 1 and above.",
        ));
    }
    Ok(u32::try_from(min_words).unwrap_or(u32::MAX))
}

/// Returns the places of `runs` (first word, number of words) in the document of `side`, in one pass over its text.
fn places(
    side: &Side,
    runs: impl Iterator<Item = (u32, u32)>,
    pace: &mut Pace,
) -> Result<Vec<ChunkPlace>> {
    let runs = collected(runs.map(|(word, count)| (word, side.span(word, count))))?;
    let mut ends = collected(runs.iter().flat_map(|(_, span)| [span.start, span.end]))?;
    pace.sort_by_key(&mut ends, |end| *end);
    ends.dedup();
    let (mut chars, mut from) = (0u32, 0);
    let mut counts = with_room(ends.len())?;
    for &end in &ends {
        pace.step();
        chars += count_characters(&side.doc[from..end], pace) as u32;
        from = end;
        counts.try_push(chars)?;
    }
    let chars_before = |end: usize| counts[ends.partition_point(|&e| e < end)];
    collected(runs.into_iter().map(|(word, bytes)| ChunkPlace {
        word,
        chars: chars_before(bytes.start)..chars_before(bytes.end),
        bytes,
    }))
}
