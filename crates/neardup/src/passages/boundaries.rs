//! Windows at which the text goes on in different ways.

use super::sort::{HEARTBEAT, Scratch, Sort, Sorted};
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

/// Returns all places of the windows that have several, and different words before or behind them,
/// by their first words. The end of a document is like no other word, nor like another end.
///
/// `windows` are (hash, first word, word before, word behind).
pub(super) fn boundaries<S: Scratch>(
    windows: Sorted<4, S>,
    min_words: usize,
    memory: usize,
    check: &mut dyn FnMut(),
) -> Result<Sort<4, S>> {
    let mut sort = Sort::new(memory);
    let mut places = Places::<S>::new(memory);
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
                places.clear();
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
        let record = [first, hash, right, if is_series { distance } else { 0 }];
        if current.as_ref().is_some_and(|equal| equal.is_boundary) {
            places.drain(&mut |record| sort.push(record, check))?;
            sort.push(record, check)?;
        } else {
            places.push(record)?;
        }
    }
    Ok(sort)
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

/// Places of a window of which it is not known yet that it is a boundary: a text that stands a
/// million times in the collection may have a million.
struct Places<S> {
    records: Vec<[u64; 4]>,
    most: usize,
    spilled: Option<(S, u64)>,
}

const RECORD: usize = size_of::<[u64; 4]>();

impl<S: Scratch> Places<S> {
    fn new(memory: usize) -> Self {
        Self {
            records: Vec::new(),
            most: (memory / RECORD).clamp(1 << 10, 1 << 16),
            spilled: None,
        }
    }

    fn clear(&mut self) {
        self.records.clear();
        self.spilled = None;
    }

    fn push(&mut self, record: [u64; 4]) -> Result<()> {
        if self.records.len() == self.most {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(self.most * RECORD)?;
            bytes.extend(self.records.iter().flatten().flat_map(|n| n.to_le_bytes()));
            let (file, end) = self.spilled.get_or_insert_with(|| (S::create(), 0));
            file.append(&bytes);
            *end += bytes.len() as u64;
            self.records.clear();
        }
        self.records.try_reserve(1)?;
        self.records.push(record);
        Ok(())
    }

    /// Visits the records in the order in which they came, and forgets them.
    fn drain(&mut self, visit: &mut dyn FnMut([u64; 4]) -> Result<()>) -> Result<()> {
        if let Some((mut file, end)) = self.spilled.take() {
            for at in (0..end).step_by(RECORD) {
                let mut bytes = [0; RECORD];
                file.read(at, &mut bytes);
                let (numbers, _) = bytes.as_chunks::<8>();
                visit(std::array::from_fn(|n| u64::from_le_bytes(numbers[n])))?;
            }
        }
        self.records.drain(..).try_for_each(visit)
    }
}
