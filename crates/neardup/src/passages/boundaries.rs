//! Windows at which the text goes on in different ways.

use super::batches::Batches;
use super::groups::Groups;
use super::parts::{Next, Part, Parts};
use super::repeated::Repeated;
use super::search::Search;
use super::series::{LongSeries, Series};
use super::sort::{HEARTBEAT, Scratch, Sort, sort};
use super::spool::Spool;
use super::windows::NO_WORD;
use crate::Result;
use crate::memory::Grow;

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

/// The windows of a collection in parts, and the boundaries among those that have been searched.
pub struct Divided<S> {
    memory: usize,
    windows: Parts<S>,
    places: Spool<4, S>,
    groups: Groups,
    series: Vec<Series>,
}

/// The boundaries of a part, those with the same window one after the other, and their documents.
#[derive(Default)]
pub struct Boundaries {
    places: Vec<[u64; 4]>,
    documents: Vec<u32>,
}

impl<S: Scratch> Divided<S> {
    /// Of a collection with so many documents. `memory`, in bytes, is what sorts may take.
    pub(super) fn new(
        (windows, series): (Parts<S>, Vec<Series>),
        documents: usize,
        memory: usize,
    ) -> Result<Self> {
        Ok(Self {
            memory,
            windows,
            places: Spool::new(memory / 4),
            groups: Groups::new(documents)?,
            series,
        })
    }

    /// Returns the next part, to be searched in any thread; None after the last. Those that would take
    /// too much memory are searched at once.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn next(&mut self, repeated: &Repeated, check: &mut dyn FnMut()) -> Result<Option<Part>> {
        loop {
            let large = match self.windows.next()? {
                None => return Ok(None),
                Some(Next::Part(part)) => return Ok(Some(part)),
                Some(Next::Large(large)) => large,
            };
            let mut sort = Sort::<4, S>::new(self.memory / 2);
            large.for_each(&mut |window| sort.push(window, check))?;
            let waiting = Spool::<4, S>::new(self.memory / 4);
            let (places, groups) = (&mut self.places, &mut self.groups);
            let mut last = None;
            let sorted = sort.sorted(check)?;
            for_each(
                sorted,
                repeated.reader.min_words,
                waiting,
                check,
                &mut |place| {
                    let document = repeated.document_of(place[0]);
                    add(groups, &mut last, (place[1], document));
                    places.push(place)
                },
            )?;
        }
    }

    /// Takes the boundaries of a part, in any order.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, found: Boundaries) -> Result<()> {
        let mut last = None;
        for (place, document) in found.places.into_iter().zip(found.documents) {
            add(&mut self.groups, &mut last, (place[1], document));
            self.places.push(place)?;
        }
        Ok(())
    }

    /// Ends the search for boundaries. Time O(n log n) for n of them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn batches(
        mut self,
        repeated: Repeated,
        check: &mut dyn FnMut(),
    ) -> Result<(Batches<S>, Search)> {
        let Repeated { reader, starts, .. } = repeated;
        let batches = Batches::new(self.places, self.groups, &starts, self.memory / 2, check)?;
        self.series.sort_unstable_by_key(|series| series.first);
        let series = LongSeries::new(self.series, &starts, check)?;
        let search = Search {
            min_words: reader.min_words,
            starts,
            series,
        };
        Ok((batches, search))
    }
}

/// Adds a boundary to the groups: its window and its document. `last` is the one before.
fn add(groups: &mut Groups, last: &mut Option<(u64, u32)>, (window, document): (u64, u32)) {
    groups.add(document as usize);
    if let Some((same, other)) = *last
        && same == window
    {
        groups.join(other as usize, document as usize);
    }
    *last = Some((window, document));
}

impl Repeated {
    /// Returns the boundaries among the windows of a part. In any thread. Time O(n log n) for n windows.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn boundaries(&self, part: Part, check: &mut dyn FnMut()) -> Result<Boundaries> {
        let Part(mut windows) = part;
        sort(&mut windows, check);
        let mut found = Boundaries::default();
        let waiting = Spool::<4, InMemory>::new(usize::MAX);
        let windows = windows.into_iter();
        for_each(
            windows,
            self.reader.min_words,
            waiting,
            check,
            &mut |place| {
                found.places.try_push(place)?;
                found.documents.try_push(self.document_of(place[0]))
            },
        )?;
        Ok(found)
    }

    /// Returns the document of a word.
    fn document_of(&self, word: u64) -> u32 {
        self.starts.partition_point(|start| *start <= word) as u32 - 1
    }
}

/// Stands for temporary storage where none is needed.
enum InMemory {}

impl Scratch for InMemory {
    fn create() -> Self {
        unreachable!("memory holds all")
    }

    fn append(&mut self, _: &[u8]) {}

    fn read(&mut self, _: u64, _: &mut [u8]) {}
}

/// Visits all places of the windows that have several, and different words before or behind them: those
/// of a window one after the other. The end of a document is like no other word, nor like another end.
///
/// `windows` are (hash, first word, word before, word behind), in order. A text that stands a million
/// times in the collection may have a million places of a window `waiting` before it is known to be a
/// boundary.
fn for_each<S: Scratch>(
    windows: impl Iterator<Item = [u64; 4]>,
    min_words: usize,
    mut waiting: Spool<4, S>,
    check: &mut dyn FnMut(),
    visit: &mut dyn FnMut([u64; 4]) -> Result<()>,
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
