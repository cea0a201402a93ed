//! Windows after which the text continues in different ways.

use super::file::{Scratch, Spool};
use super::sort::HEARTBEAT;
use super::windows::NO_WORD;
use crate::Result;

/// A window at one of its places: the number of its first word, its hash, the word after it or [`NO_WORD`], and its
/// period. The period is the distance to its previous place if the two overlap by at least half, otherwise 0.
pub(super) type Boundary = [u64; 4];

/// The boundaries of a part, with their documents. Boundaries with the same window come one after the other.
pub struct Boundaries(pub(super) Vec<(Boundary, u32)>);

/// Visits the places of all windows that have several places with different words before or after them. The places
/// of a window come one after the other. The end of a document differs from every word and from every other end.
///
/// `windows` are (hash, first word, word before, word after), in order. A text that occurs a million times in the
/// collection may have a million places of a window in `waiting` before the window turns out to be a boundary.
pub(super) fn for_each<S: Scratch>(
    windows: impl Iterator<Item = [u64; 4]>,
    min_words: usize,
    mut waiting: Spool<4, S>,
    check: &mut dyn FnMut(),
    visit: &mut dyn FnMut(Boundary) -> Result<()>,
) -> Result<()> {
    let mut current: Option<Equal> = None;
    for (count, [hash, first, left, right]) in windows.enumerate() {
        if count % HEARTBEAT == 0 {
            check();
        }
        let distance = match &mut current {
            Some(equal) if equal.hash == hash => {
                let distance = first - equal.last;
                equal.last = first;
                equal.is_boundary |= equal.neighbors != [left, right] || equal.is_at_end();
                distance
            }
            _ => {
                waiting.clear();
                current = Some(Equal {
                    hash,
                    neighbors: [left, right],
                    last: first,
                    is_boundary: false,
                });
                u64::MAX
            }
        };
        let is_series = distance <= min_words as u64 / 2;
        let place = [first, hash, right, if is_series { distance } else { 0 }];
        if current.as_ref().is_some_and(|equal| equal.is_boundary) {
            waiting.drain(visit)?;
            visit(place)?;
        } else {
            waiting.push(place)?;
        }
    }
    Ok(())
}

/// Windows with the same hash.
struct Equal {
    hash: u64,
    /// The words before and after the first of them.
    neighbors: [u64; 2],
    /// The first word of the last of them.
    last: u64,
    is_boundary: bool,
}

impl Equal {
    fn is_at_end(&self) -> bool {
        self.neighbors.contains(&NO_WORD)
    }
}
