//! Lists of any length, stored end to end in one list.

use crate::{Grow, Result, with_room};
use std::ops::Range;

#[derive(Default)]
pub struct Parts<T> {
    /// The items of all parts. The items after the last end belong to a part that is still open.
    pub items: Vec<T>,
    /// The end of each part.
    ends: Vec<usize>,
}

impl<T> Parts<T> {
    /// Returns the parts of `items` that end at `ends`.
    pub fn new(items: Vec<T>, ends: Vec<usize>) -> Self {
        Self { items, ends }
    }

    /// Ends a part, which holds the items appended since the last end.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn end(&mut self) -> Result<()> {
        self.ends.try_push(self.items.len())
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns part `number`.
    pub fn part(&self, number: usize) -> &[T] {
        &self.items[self.range(number)]
    }

    /// Returns part `number`.
    pub fn part_mut(&mut self, number: usize) -> &mut [T] {
        let range = self.range(number);
        &mut self.items[range]
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[number]
    }

    /// Returns the size in bytes, without the memory that items refer to.
    pub fn bytes(&self) -> usize {
        size_of_val(self.items.as_slice()) + size_of_val(self.ends.as_slice())
    }

    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.items[start..end])
    }

    /// Returns a new part for every part. `make` appends the items of the new part.
    ///
    /// # Errors
    /// The first error that `make` returns; `OutOfMemory`.
    pub fn each<U>(
        &self,
        mut make: impl FnMut(&[T], &mut Vec<U>) -> Result<()>,
    ) -> Result<Parts<U>> {
        let mut made = Parts {
            items: Vec::new(),
            ends: with_room(self.len())?,
        };
        for part in self.iter() {
            make(part, &mut made.items)?;
            made.end()?;
        }
        Ok(made)
    }
}
