//! Descends from the root of a segment to the leaves that contain keys, and reads the lists on these leaves.

use super::cursor::Cursor;
use super::directory::DirectoryEntry;
use super::part::SegmentPart;
use super::{Damaged, Directory, Leaf, Posting};
use crate::Error;
use std::ops::Range;

/// Maximum number of postings of a short list.
const SHORT: usize = 128;

/// A page to read for the keys at the places `keys`. If the segment has such a key, its list begins on this page.
pub(super) struct PageForKeys {
    pub page: DirectoryEntry,
    /// The first posting of the next page, or None for the last page.
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

    /// Calls `put` with every child of `directory` on which lists of keys begin. `key` returns the key at a place; keys
    /// are in ascending order. For every key whose list spans two or more children, calls `goes_on` with the key's
    /// place and all of these children except the last. If `goes_on` returns true, leaves the key out.
    ///
    /// # Errors
    /// The errors of `put` and `goes_on`; `Damaged` for a directory without entries.
    pub fn below<E: From<Damaged> + From<Error>>(
        &self,
        directory: &Directory,
        part: &SegmentPart,
        key: impl Fn(usize) -> u32,
        mut put: impl FnMut(Self) -> Result<(), Error>,
        mut goes_on: impl FnMut(usize, Range<usize>) -> Result<bool, Error>,
    ) -> Result<(), E> {
        let (mut child, mut end) = (0, None);
        let mut open: Option<Self> = None;
        for place in self.keys.clone() {
            let Some((first, last)) = part.range(key(place)) else {
                continue;
            };
            let is_here = open.is_some() && end.is_none_or(|end| first < end);
            if !is_here {
                child = directory.child_of(first);
                end = directory.get(child + 1).map(|entry| entry.first);
            }
            let further = match end {
                Some(end) if end <= last => directory.child_of(last).saturating_sub(child),
                _ => 0,
            };
            // Later keys begin on another child, so a key that is left out never lies within a range.
            let is_left_out = further > 0 && goes_on(place, child..child + further)?;
            match &mut open {
                _ if is_left_out => {}
                Some(page) if is_here => page.keys.end = place + 1,
                _ => {
                    let page = Self {
                        page: directory.child(child)?,
                        next: end.or(self.next),
                        keys: place..place + 1,
                    };
                    open.replace(page).map_or(Ok(()), &mut put)?;
                }
            }
        }
        Ok(open.map_or(Ok(()), put)?)
    }

    /// Calls `take` with the place of every key and the rows on `leaf` that have it. Passes None if there are more than
    /// [`SHORT`] rows, or if the list continues after the leaf.
    ///
    /// # Errors
    /// The errors of `take`; `Damaged` for a damaged leaf.
    pub fn read<E: From<Damaged>>(
        &self,
        leaf: &Leaf,
        part: &SegmentPart,
        key: impl Fn(usize) -> u32,
        mut take: impl FnMut(usize, Option<&[u32]>) -> Result<(), E>,
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
        let mut rows = [0; SHORT];
        for place in self.keys.clone() {
            let Some((first, last)) = part.range(key(place)) else {
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
            take(place, (!is_long).then_some(&rows[..found]))?;
        }
        Ok(())
    }
}
