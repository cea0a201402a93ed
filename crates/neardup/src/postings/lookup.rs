//! From the root of a segment to the leaves where keys are, and their lists there.

use super::cursor::Cursor;
use super::directory::DirectoryEntry;
use super::part::SegmentPart;
use super::{Damaged, Directory, Leaf, Posting};
use crate::Error;
use std::ops::Range;

/// A page to look at for some of the keys, given by their places, which begin on it if they are there at all.
pub(super) struct PageForKeys {
    pub page: DirectoryEntry,
    /// The beginning of the page behind it.
    pub next: Option<Posting>,
    pub keys: Range<usize>,
}

impl PageForKeys {
    pub fn root(part: &SegmentPart, keys: Range<usize>) -> Self {
        Self {
            page: DirectoryEntry::of_root(part.segment),
            next: None,
            keys,
        }
    }

    /// Hands the pages below a directory to `put`, and calls `goes_on` with the place of every key whose list
    /// goes on to further children, and how many. `key` returns the key at a place; keys ascend.
    ///
    /// # Errors
    /// Those of `put`; a directory without entries.
    pub fn below<E: From<Damaged> + From<Error>>(
        &self,
        directory: &Directory,
        part: &SegmentPart,
        key: impl Fn(usize) -> u32,
        mut put: impl FnMut(Self) -> Result<(), Error>,
        mut goes_on: impl FnMut(usize, usize),
    ) -> Result<(), E> {
        let (mut child, mut end) = (0, None);
        let mut open: Option<Self> = None;
        for place in self.keys.clone() {
            let Some((first, last)) = part.range(key(place)) else {
                continue;
            };
            match &mut open {
                Some(page) if end.is_none_or(|end| first < end) => page.keys.end = place + 1,
                _ => {
                    child = directory.child_of(first);
                    end = directory.get(child + 1).map(|entry| entry.first);
                    let page = Self {
                        page: directory.child(child)?,
                        next: end.or(self.next),
                        keys: place..place + 1,
                    };
                    open.replace(page).map_or(Ok(()), &mut put)?;
                }
            }
            if end.is_some_and(|end| end <= last) {
                goes_on(place, directory.child_of(last).saturating_sub(child));
            }
        }
        Ok(open.map_or(Ok(()), put)?)
    }

    /// Calls `take` with the places of every key, one or several, and the rows that have it on a leaf; None
    /// where these are more than `MOST`, or the list goes on behind the leaf.
    ///
    /// # Errors
    /// Those of `take`; a damaged leaf.
    pub fn read<const MOST: usize, E: From<Damaged>>(
        &self,
        leaf: &Leaf,
        part: &SegmentPart,
        key: impl Fn(usize) -> u32,
        mut take: impl FnMut(Range<usize>, Option<&[u32]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let ranges = self.keys.clone().filter_map(|place| part.range(key(place)));
        let mut firsts = ranges.map(|(first, _)| first).peekable();
        let Some(&first) = firsts.peek() else {
            return Ok(());
        };
        if self.keys.len() > 1 {
            leaf.fetch(firsts);
        }
        let mut cursor = Cursor::new(leaf, first)?;
        let mut rows = [0; MOST];
        let mut places = self.keys.clone();
        while let Some(start) = places.next() {
            while !places.is_empty() && key(places.start) == key(start) {
                places.start += 1;
            }
            let Some((first, last)) = part.range(key(start)) else {
                continue;
            };
            let mut is_long = self.next.is_some_and(|next| next <= last);
            let mut found = 0;
            if !is_long {
                cursor.visit(first, last, &mut |posting| {
                    let Some(row) = rows.get_mut(found) else {
                        is_long = true;
                        return Ok(false);
                    };
                    *row = part.group_offset(posting.into())?;
                    found += 1;
                    Ok(true)
                })?;
            }
            take(start..places.start, (!is_long).then_some(&rows[..found]))?;
        }
        Ok(())
    }
}
