//! Cuts two documents into segments for a side-by-side view, according to where their words occur in the other
//! document.

use super::alignment::{Alignment, Fate};
use super::chunks::valid_min_words;
use super::explain::{Explanation, explain_aligned};
use super::pace::Pace;
use crate::{Grow, Result};
use std::ops::Range;
use strum::Display;

/// How a segment occurs in the other document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[strum(serialize_all = "lowercase")]
pub enum Standing {
    /// At the same place, outside common chunks; also text between words.
    Same,
    /// A common chunk.
    Chunk,
    /// A common chunk in a different order relative to other chunks.
    Moved,
    /// Not at this place in the other document, and in no common chunk.
    Different,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub bytes: Range<usize>,
    pub standing: Standing,
    /// The number of the common chunk, or None outside chunks. Chunks are numbered from 0 in the order of the first
    /// document.
    pub chunk: Option<u32>,
    pub words: u32,
}

/// Explains the difference between two documents as [`super::explain`] does, and cuts both into segments, which
/// follow each other without gaps. Common chunks have at least `min_words` words. Time O(n log n).
///
/// # Errors
/// `Invalid` if `min_words` is below 1, `TooLarge` above [`super::MAX_UNITS`] words, `OutOfMemory`.
pub fn explain_segments(
    docs: [&[u8]; 2],
    min_words: i64,
    check: &mut dyn FnMut(),
) -> Result<(Explanation, [Vec<Segment>; 2])> {
    let min_words = valid_min_words(min_words)?;
    let pace = &mut Pace::new(check);
    let alignment = Alignment::new(docs, min_words, pace)?;
    let explanation = explain_aligned(&alignment, pace)?;
    let mut of_side = |side| segments(&alignment, side, pace);
    Ok((explanation, [of_side(0)?, of_side(1)?]))
}

fn segments(alignment: &Alignment, side: usize, pace: &mut Pace) -> Result<Vec<Segment>> {
    let doc = alignment.words.sides[side].doc;
    let places = &alignment.words.sides[side].places;
    let mut segments: Vec<Segment> = Vec::new();
    let mut last = Fate::Same;
    let mut end = 0;
    for (place, &fate) in places.iter().zip(&alignment.fates[side]) {
        pace.step();
        // Parts of one character have the same place.
        let word = end.max(place.start as usize)..end.max(place.end as usize);
        if fate != last || segments.is_empty() {
            push(&mut segments, end..word.start, alignment, Fate::Same)?;
            push(&mut segments, word.start..word.start, alignment, fate)?;
        }
        if let Some(segment) = segments.last_mut() {
            segment.bytes.end = word.end;
            segment.words += 1;
        }
        (last, end) = (fate, word.end);
    }
    push(&mut segments, end..doc.len(), alignment, Fate::Same)?;
    segments.retain(|segment| segment.words > 0 || !segment.bytes.is_empty());
    Ok(segments)
}

/// Adds a segment, or extends the last one if both are [`Standing::Same`].
fn push(
    segments: &mut Vec<Segment>,
    bytes: Range<usize>,
    alignment: &Alignment,
    fate: Fate,
) -> Result<()> {
    let (standing, chunk) = match fate {
        Fate::Same => (Standing::Same, None),
        Fate::Different => (Standing::Different, None),
        Fate::Chunk(chunk) if alignment.keeps(fate) => (Standing::Chunk, Some(chunk)),
        Fate::Chunk(chunk) => (Standing::Moved, Some(chunk)),
    };
    match segments.last_mut() {
        Some(last) if last.standing == Standing::Same && standing == Standing::Same => {
            last.bytes.end = bytes.end;
            Ok(())
        }
        _ => segments.try_push(Segment {
            bytes,
            standing,
            chunk,
            words: 0,
        }),
    }
}
