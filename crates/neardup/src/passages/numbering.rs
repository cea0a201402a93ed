//! The passages of all batches, numbered in the order of the documents.

use super::file::Scratch;
use super::place::{Chosen, PassagePlace, VisitPlace};
use super::places::{FoundPlaces, PassagePlaces, PassageSearch};
use super::sort::{HEARTBEAT, Sort, SortedRecords};
use crate::Result;
use std::cell::RefCell;
use std::ops::ControlFlow;

/// Listed places, to be numbered.
pub struct Numbering<S> {
    memory: usize,
    /// By passage: its first word and name, then the first word of the place and the counts.
    sort: Sort<4, S>,
}

impl<S: Scratch> Numbering<S> {
    /// Returns an empty list. `memory`, in bytes, limits the sorts.
    pub fn new(memory: usize) -> Self {
        Self {
            memory: memory / 2,
            sort: Sort::new(memory / 2),
        }
    }

    /// Takes the places that a search has found in a batch. If they were too many to hold, it finds them again.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(
        &mut self,
        places: PassagePlaces,
        search: &PassageSearch,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        match places.0 {
            FoundPlaces::All(places) => places.iter().try_for_each(|place| self.push(place, check)),
            FoundPlaces::TooMany(batch) => {
                let check = RefCell::new(check);
                search.for_each(&batch, &mut || check.borrow_mut()(), &mut |place| {
                    self.push(place, &mut || check.borrow_mut()())
                        .map(ControlFlow::Continue)
                })
            }
        }
    }

    fn push(&mut self, place: &Chosen, check: &mut dyn FnMut()) -> Result<()> {
        let counts = u64::from(place.occurrences) << 32 | u64::from(place.documents);
        let record = [place.passage, name(place), place.first, counts];
        self.sort.push(record, check)
    }

    /// Returns the number of places.
    pub fn places(&self) -> u64 {
        self.sort.len()
    }

    /// Numbers the passages by their first places, longer passages first. Calls `look` with the number of places
    /// processed so far.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn passages(
        mut self,
        search: PassageSearch,
        look: &mut dyn FnMut(u64),
    ) -> Result<Passages<S>> {
        for place in search.series.places() {
            self.push(&place, &mut || look(0))?;
        }
        let mut by_place = Sort::new(self.memory);
        let (mut number, mut last) = (0, None);
        let (mut done, all) = (0, self.sort.len());
        for [passage, name, first, counts] in self.sort.sorted(&mut || look(0))? {
            if done % HEARTBEAT as u64 == 0 {
                look(done);
            }
            done += 1;
            number += u64::from(last != Some([passage, name]));
            last = Some([passage, name]);
            by_place.push([first, name, number, counts], &mut || look(done))?;
        }
        Ok(Passages {
            places: by_place.sorted(&mut || look(all))?,
            starts: search.starts,
        })
    }
}

/// More words than any run can have.
const LONGEST: u64 = u64::MAX >> 1;

/// Returns a name for a place's run: of two runs that begin at the same word, the longer has the smaller name.
fn name(place: &Chosen) -> u64 {
    ((LONGEST - place.words) << 1) | u64::from(place.is_series)
}

/// Returns the number of words of a run with this name.
fn words(name: u64) -> u64 {
    LONGEST - (name >> 1)
}

/// The passages of a collection.
///
/// A passage has many places within longer passages. These are listed:
/// - the places that do not lie within a place of a longer passage of the same documents; but of a series in which a
///   passage repeatedly overlaps itself by half of `min_words` or more, only the first and the last place;
/// - the places, except a passage's first, that do not lie within a longer run that occurred before;
/// - the first place of every passage with a listed place.
///
/// Consequences, for a word anywhere in a run of at least `min_words` words that occurs more than once: it lies in a
/// listed place. If the run occurred before, it lies in one that is not the first of its passage. So the text that
/// is left after cutting all listed places, except the first of each passage, does not repeat; and every word that
/// is cut stands at the same place of a passage that is left.
pub struct Passages<S> {
    /// By first word and name, followed by the passage's number and the counts.
    places: SortedRecords<4, S>,
    starts: Vec<u64>,
}

impl<S: Scratch> Passages<S> {
    /// Visits the listed places in the order of the documents, in each document by their first words, longer places
    /// first.
    ///
    /// # Errors
    /// `OutOfMemory`; the errors of `visit`.
    pub fn for_each(
        self,
        check: &mut dyn FnMut(),
        visit: &mut VisitPlace<'_, PassagePlace>,
    ) -> Result<()> {
        let mut document = 0;
        for (count, [first, name, number, counts]) in self.places.enumerate() {
            if count % HEARTBEAT == 0 {
                check();
            }
            let later = self.starts[document..].partition_point(|start| *start <= first);
            document += later - 1;
            let place = PassagePlace {
                passage: number as u32,
                document,
                word: first - self.starts[document],
                words: words(name),
                occurrences: (counts >> 32) as u32,
                documents: counts as u32,
            };
            visit(&place)?;
        }
        Ok(())
    }
}
