//! The search for boundaries, part by part.

use super::batches::{Batches, Groups};
use super::boundaries::{Boundaries, InMemory, for_each};
use super::file::{Scratch, Spool};
use super::parts::{NextPart, WindowPart, WindowParts};
use super::place::document_of;
use super::places::PassageSearch;
use super::repeated::Repeated;
use super::series::{LongSeries, Series};
use super::sort::Sort;
use crate::Result;
use crate::memory::Grow;
use crate::set::sort;

/// The windows of a collection in parts, and the boundaries among those that have been searched.
pub struct Divided<S> {
    memory: usize,
    windows: WindowParts<S>,
    places: Spool<4, S>,
    groups: Groups,
    series: Vec<Series>,
}

impl<S: Scratch> Divided<S> {
    /// Returns the windows and series of that many documents, with nothing searched yet. `memory`, in
    /// bytes, is the limit of sorts.
    pub(super) fn new(
        (windows, series): (WindowParts<S>, Vec<Series>),
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

    /// Returns the number of parts that are left, empty ones among them.
    pub fn parts(&self) -> usize {
        self.windows.len()
    }

    /// Returns the number of boundaries that have been found.
    pub fn boundaries(&self) -> u64 {
        self.places.len()
    }

    /// Returns the next part, to be searched in any thread; None after the last. Those that would take
    /// too much memory are searched at once.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn next(
        &mut self,
        repeated: &Repeated,
        check: &mut dyn FnMut(),
    ) -> Result<Option<WindowPart>> {
        loop {
            let large = match self.windows.next()? {
                None => return Ok(None),
                Some(NextPart::WindowPart(part)) => return Ok(Some(part)),
                Some(NextPart::Large(large)) => large,
            };
            let mut sort = Sort::<4, S>::new(self.memory / 4);
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
                    let document = document_of(place[0], &repeated.starts) as u32;
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

    /// Ends the search for boundaries. Calls `look` with the number of boundaries that it has gone
    /// through. Time O(n log n) for n of them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn batches(
        mut self,
        repeated: Repeated,
        look: &mut dyn FnMut(u64),
    ) -> Result<(Batches<S>, PassageSearch)> {
        let Repeated { reader, starts, .. } = repeated;
        let all = self.places.len();
        let batches = Batches::new(self.places, self.groups, &starts, self.memory / 2, look)?;
        self.series.sort_unstable_by_key(|series| series.first);
        let series = LongSeries::new(self.series, &starts, &mut || look(all))?;
        let search = PassageSearch {
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
    pub fn boundaries(&self, part: WindowPart, check: &mut dyn FnMut()) -> Result<Boundaries> {
        let WindowPart(mut windows) = part;
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
                found
                    .documents
                    .try_push(document_of(place[0], &self.starts) as u32)
            },
        )?;
        Ok(found)
    }
}
