//! The difference between two documents.

use super::alignment::{Alignment, Fate};
use super::edit::common_ends;
use super::pace::Pace;
use super::words::{NumberedWords, Side};
use crate::Result;
use crate::memory::{Grow, collected, copied, filled};
use strum::Display;

/// Runs shorter than this are aligned only between longer ones.
const MIN_WORDS: u32 = 5;

/// The difference, on the way from the first document to the second.
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

/// The kinds of difference between two documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub kind: DifferenceKind,
    /// Words that stand at the same place in both, as a share of the different word positions:
    /// kept / (a + b - kept). 0 for documents without words.
    pub similarity: f64,
    /// Words of the first document that the second lacks, as first written, without repetition.
    /// Words that only moved are not among them, except numbers where nothing but numbers changed.
    pub only_in_a: Vec<Vec<u8>>,
    /// Words of the second document that the first lacks.
    pub only_in_b: Vec<Vec<u8>>,
}

/// Explains the difference between two documents. Time O(n log n), memory about 80 bytes a word.
///
/// # Errors
/// `TooLarge` above [`super::MAX_UNITS`] words, `OutOfMemory`.
pub fn explain(a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<Explanation> {
    let pace = &mut Pace::new(check);
    let words = NumberedWords::new(a, b, pace)?;
    let alignment = Alignment::new(&words, MIN_WORDS, pace)?;
    explain_aligned([a, b], &words, &alignment, pace)
}

/// Explains the difference between two documents that are aligned already.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn explain_aligned(
    [a, b]: [&[u8]; 2],
    words: &NumberedWords,
    alignment: &Alignment,
    pace: &mut Pace,
) -> Result<Explanation> {
    let changed = [
        changed_words(alignment, &alignment.fates[0])?,
        changed_words(alignment, &alignment.fates[1])?,
    ];
    let kept = words.a.len() - changed[0].len();
    let kind = match a == b {
        true => DifferenceKind::Identical,
        false => kind([a, b], words, &changed, pace)?,
    };
    let [gone, new] = match kind {
        DifferenceKind::Numbers => changed,
        _ => without_moved(words, changed, pace)?,
    };
    let positions = words.a.len() + words.b.len() - kept;
    Ok(Explanation {
        kind,
        similarity: if positions == 0 {
            0.0
        } else {
            kept as f64 / positions as f64
        },
        only_in_a: written(a, words, &words.a, &gone, pace)?,
        only_in_b: written(b, words, &words.b, &new, pace)?,
    })
}

fn changed_words(alignment: &Alignment, fates: &[Fate]) -> Result<Vec<usize>> {
    collected((0..fates.len()).filter(|&word| !alignment.keeps(fates[word])))
}

/// The kind of two documents whose bytes differ.
fn kind(
    docs: [&[u8]; 2],
    words: &NumberedWords,
    changed: &[Vec<usize>; 2],
    pace: &mut Pace,
) -> Result<DifferenceKind> {
    let (a, b) = (&words.a.ids[..], &words.b.ids[..]);
    if a == b {
        return Ok(DifferenceKind::Format);
    }
    if a.is_empty() || b.is_empty() {
        return Ok(DifferenceKind::Rewritten);
    }
    let numbers_only = [&words.a, &words.b].into_iter().zip(docs).zip(changed);
    if numbers_only
        .flat_map(|((side, doc), changed)| changed.iter().map(move |&word| side.written(doc, word)))
        .all(|word| {
            pace.step();
            has_digit(word)
        })
    {
        return Ok(DifferenceKind::Numbers);
    }
    if let Some(kind) = one_block(a, b).or_else(|| cut_inside_a_word(docs, words)) {
        return Ok(kind);
    }
    if same_words(words, pace)? {
        return Ok(DifferenceKind::Reordered);
    }
    Ok(DifferenceKind::Rewritten)
}

/// Returns the kind where one of the documents is the other without one block.
fn one_block(a: &[u32], b: &[u32]) -> Option<DifferenceKind> {
    let [start, end] = common_ends(a, b);
    let shorter = a.len().min(b.len());
    let (at_start, in_middle, at_end) = match a.len() < b.len() {
        true => (
            DifferenceKind::AddedAtStart,
            DifferenceKind::AddedInMiddle,
            DifferenceKind::AddedAtEnd,
        ),
        false => (
            DifferenceKind::RemovedAtStart,
            DifferenceKind::RemovedInMiddle,
            DifferenceKind::Truncated,
        ),
    };
    if start == shorter {
        Some(at_end)
    } else if end == shorter {
        Some(at_start)
    } else {
        (start + end >= shorter).then_some(in_middle)
    }
}

/// Returns the kind where one of the documents ends in the middle of a word of the other.
fn cut_inside_a_word(docs: [&[u8]; 2], words: &NumberedWords) -> Option<DifferenceKind> {
    let (mut short, mut long) = ((&words.a, docs[0]), (&words.b, docs[1]));
    if short.0.len() > long.0.len() {
        std::mem::swap(&mut short, &mut long);
    }
    let last = short.0.len() - 1;
    let cut = short.0.ids[..last] == long.0.ids[..last]
        && long
            .0
            .written(long.1, last)
            .starts_with(short.0.written(short.1, last));
    cut.then_some(DifferenceKind::Truncated)
}

fn has_digit(word: &[u8]) -> bool {
    word.utf8_chunks()
        .any(|chunk| chunk.valid().contains(char::is_numeric))
}

/// Returns whether every word occurs as often in one document as in the other.
fn same_words(words: &NumberedWords, pace: &mut Pace) -> Result<bool> {
    let mut surplus = filled(0i32, words.distinct)?;
    for (side, sign) in [(&words.a, 1), (&words.b, -1)] {
        for &id in &side.ids {
            pace.step();
            surplus[id as usize] += sign;
        }
    }
    Ok(surplus.iter().all(|count| *count == 0))
}

/// Removes from both lists the words that the other has as often.
fn without_moved(
    words: &NumberedWords,
    changed: [Vec<usize>; 2],
    pace: &mut Pace,
) -> Result<[Vec<usize>; 2]> {
    let [ids_a, ids_b] = [&words.a.ids, &words.b.ids];
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

/// Returns every different word once, as it is written where it first occurs.
fn written(
    doc: &[u8],
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
            written.try_push(copied(side.written(doc, word))?)?;
        }
    }
    Ok(written)
}
