//! From the root of a segment to the leaves that contain keys, and the lists on these leaves.

use super::cursor::Cursor;
use super::directory::DirectoryEntry;
use super::part::SegmentPart;
use super::{Damaged, Directory, Leaf, Posting};
use crate::Error;
use std::ops::Range;

/// A list with more postings is long.
const SHORT: usize = 128;

/// A page to look at for some of the keys, given by their places: if these keys exist, they begin on the page.
pub(super) struct PageForKeys {
    pub page: DirectoryEntry,
    /// The beginning of the page after it.
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

    /// Passes the pages below a directory to `put`. Calls `goes_on` for every key whose list is on several children, with
    /// the key's place, and these children but for the last; if it returns true, the key is left out. `key` returns the
    /// key at a place; keys ascend.
    ///
    /// # Errors
    /// Those of `put`; a directory without entries.
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
            // Later keys begin on another child, so that a key that is left out is not within a range.
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

    /// Calls `take` for every key with its place and the rows that have it on a leaf. If there are more than [`SHORT`]
    /// rows, or the list continues after the leaf, `take` gets None.
    ///
    /// # Errors
    /// Those of `take`; a damaged leaf.
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
