//! The difference between two documents.

use super::alignment::Alignment;
use super::edit::common_ends;
use super::pace::Pace;
use super::words::{NumberedWords, Side};
use crate::{Grow, Result, collected, copied, filled};
use strum::Display;

/// Minimum number of words in a chunk. Shorter runs are aligned only between chunks.
const MIN_WORDS: u32 = 5;

/// The kind of a difference: how the second document differs from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[strum(serialize_all = "lowercase")]
pub enum DifferenceKind {
    /// The same bytes.
    Identical,
    /// The same words; other case, spacing, punctuation or layout.
    Format,
    /// Every word that differs has a digit in it.
    Numbers,
    #[strum(to_string = "added at start")]
    AddedAtStart,
    #[strum(to_string = "added in middle")]
    AddedInMiddle,
    #[strum(to_string = "added at end")]
    AddedAtEnd,
    #[strum(to_string = "removed at start")]
    RemovedAtStart,
    #[strum(to_string = "removed in middle")]
    RemovedInMiddle,
    /// The end is missing.
    Truncated,
    /// The same words in another order.
    Reordered,
    /// Anything else.
    Rewritten,
}

/// The difference between two documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub kind: DifferenceKind,
    /// Words that are at the same place in both documents, as a share of all word positions: kept / (a + b - kept). 0
    /// for documents without words.
    pub similarity: f64,
    /// Words of the first document that the second lacks, once each, as first written. Moved words are left out,
    /// except numbers if only numbers changed.
    pub only_in_a: Vec<Vec<u8>>,
    /// Words of the second document that the first lacks, as in `only_in_a`.
    pub only_in_b: Vec<Vec<u8>>,
}

/// Returns the difference between `a` and `b`. Time O(n log n), memory about 80 bytes per word.
///
/// # Errors
/// `TooLarge` above [`super::MAX_UNITS`] words, `OutOfMemory`.
pub fn explain(a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<Explanation> {
    let pace = &mut Pace::new(check);
    explain_aligned(&Alignment::new([a, b], MIN_WORDS, pace)?, pace)
}

/// Returns the difference between the documents of `alignment`.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn explain_aligned(alignment: &Alignment, pace: &mut Pace) -> Result<Explanation> {
    let words = &alignment.words;
    let [a, b] = &words.sides;
    let changed = [changed_words(alignment, 0)?, changed_words(alignment, 1)?];
    let kept = a.len() - changed[0].len();
    let unmoved = without_moved(words, &changed, pace)?;
    // Kept words are equal in pairs, so the other words decide.
    let has_same_words = unmoved.iter().all(Vec::is_empty);
    let kind = kind(words, &changed, has_same_words, pace);
    let [gone, new] = match kind {
        DifferenceKind::Numbers => changed,
        _ => unmoved,
    };
    let positions = a.len() + b.len() - kept;
    Ok(Explanation {
        kind,
        similarity: kept as f64 / positions.max(1) as f64,
        only_in_a: written(words, a, &gone, pace)?,
        only_in_b: written(words, b, &new, pace)?,
    })
}

fn changed_words(alignment: &Alignment, side: usize) -> Result<Vec<usize>> {
    let fates = &alignment.fates[side];
    collected((0..fates.len()).filter(|&word| !alignment.keeps(fates[word])))
}

fn kind(
    words: &NumberedWords,
    changed: &[Vec<usize>; 2],
    has_same_words: bool,
    pace: &mut Pace,
) -> DifferenceKind {
    let [a, b] = &words.sides;
    if a.doc == b.doc {
        return DifferenceKind::Identical;
    }
    if a.ids == b.ids {
        return DifferenceKind::Format;
    }
    if a.ids.is_empty() || b.ids.is_empty() {
        return DifferenceKind::Rewritten;
    }
    let mut all_have_digits = |side: &Side, changed: &[usize]| {
        changed.iter().all(|&word| {
            pace.step();
            has_digit(side.written(word))
        })
    };
    if all_have_digits(a, &changed[0]) && all_have_digits(b, &changed[1]) {
        return DifferenceKind::Numbers;
    }
    let others = match has_same_words {
        true => DifferenceKind::Reordered,
        false => DifferenceKind::Rewritten,
    };
    let one_cut = one_block(&a.ids, &b.ids).or_else(|| cut_inside_a_word(a, b));
    one_cut.unwrap_or(others)
}

/// Returns the kind of difference if one document is the other without one block, else None.
fn one_block(a: &[u32], b: &[u32]) -> Option<DifferenceKind> {
    use DifferenceKind as Kind;
    let [start, end] = common_ends(a, b);
    let shorter = a.len().min(b.len());
    let [at_start, in_middle, at_end] = match a.len() < b.len() {
        true => [Kind::AddedAtStart, Kind::AddedInMiddle, Kind::AddedAtEnd],
        false => [Kind::RemovedAtStart, Kind::RemovedInMiddle, Kind::Truncated],
    };
    if start == shorter {
        Some(at_end)
    } else if end == shorter {
        Some(at_start)
    } else {
        (start + end >= shorter).then_some(in_middle)
    }
}

/// Returns the kind of difference if one document is the other up to the middle of a word, else None.
fn cut_inside_a_word(a: &Side, b: &Side) -> Option<DifferenceKind> {
    let (short, long) = if a.len() > b.len() { (b, a) } else { (a, b) };
    let last = short.len() - 1;
    let cut = short.ids[..last] == long.ids[..last]
        && long.written(last).starts_with(short.written(last));
    cut.then_some(DifferenceKind::Truncated)
}

fn has_digit(word: &[u8]) -> bool {
    word.utf8_chunks()
        .any(|chunk| chunk.valid().contains(char::is_numeric))
}

/// Returns both lists of `changed` without the words that also occur in the other list, one for one.
fn without_moved(
    words: &NumberedWords,
    changed: &[Vec<usize>; 2],
    pace: &mut Pace,
) -> Result<[Vec<usize>; 2]> {
    let [ids_a, ids_b] = words.sides.each_ref().map(|side| &side.ids);
    let mut lacking = |of: &[usize], ids: &[u32], others: &[usize], other_ids: &[u32]| {
        let mut there = filled(0u32, words.distinct)?;
        for &word in others {
            pace.step();
            there[other_ids[word] as usize] += 1;
        }
        let is_lacking = |word: &&usize| {
            pace.step();
            let count = &mut there[ids[**word] as usize];
            let is_there = *count > 0;
            *count -= u32::from(is_there);
            !is_there
        };
        collected(of.iter().filter(is_lacking).copied())
    };
    Ok([
        lacking(&changed[0], ids_a, &changed[1], ids_b)?,
        lacking(&changed[1], ids_b, &changed[0], ids_a)?,
    ])
}

/// Returns every distinct word at `positions` of `side` once, as written at its first occurrence there.
fn written(
    words: &NumberedWords,
    side: &Side,
    positions: &[usize],
    pace: &mut Pace,
) -> Result<Vec<Vec<u8>>> {
    let mut seen = filled(false, words.distinct)?;
    let mut written = Vec::new();
    for &word in positions {
        pace.step();
        if !std::mem::replace(&mut seen[side.ids[word] as usize], true) {
            written.try_push(copied(side.written(word))?)?;
        }
    }
    Ok(written)
}
