//! Windows at which the text goes on in different ways.

use super::groups::Groups;
use super::sort::{HEARTBEAT, Scratch, Sorted};
use super::spool::Spool;
use super::windows::NO_WORD;
use crate::Result;

/// A window at one of its places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boundary {
    /// The number of its first word.
    pub first: u64,
    pub hash: u64,
    /// The word behind, or [`NO_WORD`].
    pub right: u64,
    /// The distance to the place before, where the two overlap by at least half; otherwise 0.
    pub period: u64,
}

impl From<[u64; 4]> for Boundary {
    fn from([first, hash, right, period]: [u64; 4]) -> Self {
        Self {
            first,
            hash,
            right,
            period,
        }
    }
}

/// Returns all places of the windows that have several, and different words before or behind them, in
/// any order, and the documents in groups that share no boundary. The end of a document is like no
/// other word, nor like another end.
///
/// `windows` are (hash, first word, word before, word behind), and `starts` the documents' first words.
pub(super) fn boundaries<S: Scratch>(
    windows: Sorted<4, S>,
    min_words: usize,
    starts: &[u64],
    memory: usize,
    check: &mut dyn FnMut(),
) -> Result<(Spool<4, S>, Groups)> {
    let mut found = Found {
        places: Spool::new(memory / 2),
        groups: Groups::new(starts.len())?,
        starts,
        last: None,
    };
    // A text that stands a million times in the collection may have a million places of a window
    // before it is known to be a boundary.
    let mut waiting = Spool::<4, S>::new(memory / 2);
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
            waiting.drain(&mut |place| found.push(place))?;
            found.push(place)?;
        } else {
            waiting.push(place)?;
        }
    }
    Ok((found.places, found.groups))
}

/// Places of boundaries, with those of the same window one after the other.
struct Found<'a, S> {
    places: Spool<4, S>,
    groups: Groups,
    starts: &'a [u64],
    /// The window of the last place, and its document.
    last: Option<(u64, usize)>,
}

impl<S: Scratch> Found<'_, S> {
    fn push(&mut self, place: [u64; 4]) -> Result<()> {
        let [first, hash, ..] = place;
        let document = self.starts.partition_point(|start| *start <= first) - 1;
        self.groups.add(document);
        if let Some((same, other)) = self.last
            && same == hash
        {
            self.groups.join(other, document);
        }
        self.last = Some((hash, document));
        self.places.push(place)
    }
}

/// Windows with the same hash.
struct Equal {
    hash: u64,
    /// The words around the first of them.
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
