//! Walks along the leaves of a segment, and through all postings of an index in order.

use super::bits::BLOCK;
use super::directory::DirectoryEntry;
use super::part::{SegmentPart, parts};
use super::{Damaged, Directory, Leaf, MAX_DEPTH, PageKind, Pages, Posting, Segment, SegmentGroup};
use crate::Error;
use crate::memory::Grow;

/// A walk along the leaves of a segment, starting at a given posting.
///
/// The first postings of the leaves strictly increase, so that a walk ends even if pages are damaged.
pub(super) struct Leaves {
    segment: Segment,
    /// For each level of directories, from the lowest: the page, and the index of the entry to continue with.
    path: [(DirectoryEntry, usize); MAX_DEPTH as usize],
    next: Option<DirectoryEntry>,
}

impl Leaves {
    /// Returns a walk that begins with the last leaf that starts at or before `from`, or with the first leaf.
    pub fn seek<P: Pages>(
        pages: &mut P,
        segment: &Segment,
        from: Posting,
    ) -> Result<Self, P::Error> {
        segment.range()?;
        let root = DirectoryEntry::of_root(segment);
        let mut leaves = Self {
            segment: *segment,
            path: [(root, 0); MAX_DEPTH as usize],
            next: None,
        };
        if segment.postings > 0 {
            leaves.next = Some(leaves.descend(pages, root, segment.depth, from)?);
        }
        Ok(leaves)
    }

    /// Descends from `entry`, a page of `level`, to the leaf that contains `from`.
    fn descend<P: Pages>(
        &mut self,
        pages: &mut P,
        mut entry: DirectoryEntry,
        level: u8,
        from: Posting,
    ) -> Result<DirectoryEntry, P::Error> {
        for level in (1..=level).rev() {
            let page = entry;
            let (child, below) = read_directory(pages, &self.segment, level, page, |directory| {
                let child = directory.child_of(from);
                Ok((child, directory.child(child)?))
            })?;
            self.path[usize::from(level) - 1] = (page, child + 1);
            entry = below;
        }
        Ok(entry)
    }

    /// Returns the leaf that will be visited next, or None at the end. If it is the root, its first posting is
    /// [`Posting::MIN`].
    pub fn next(&self) -> Option<DirectoryEntry> {
        self.next
    }

    /// Calls `look` with the next leaf and moves on to the leaf after it. Returns the result, or None at the end.
    pub fn visit<P: Pages, R>(
        &mut self,
        pages: &mut P,
        look: impl FnOnce(Leaf) -> Result<R, P::Error>,
    ) -> Result<Option<R>, P::Error> {
        let seen = self.look(pages, look)?;
        self.advance(pages)?;
        Ok(seen)
    }

    /// Calls `look` with the next leaf. Returns the result, or None at the end.
    fn look<P: Pages, R>(
        &self,
        pages: &mut P,
        look: impl FnOnce(Leaf) -> Result<R, P::Error>,
    ) -> Result<Option<R>, P::Error> {
        let Some(entry) = self.next else {
            return Ok(None);
        };
        read_leaf(pages, &self.segment, entry, look).map(Some)
    }

    fn advance<P: Pages>(&mut self, pages: &mut P) -> Result<(), P::Error> {
        if let Some(entry) = self.next {
            self.next = self.after(pages, entry.first)?;
            pages.interrupt()?;
        }
        Ok(())
    }

    fn after<P: Pages>(
        &mut self,
        pages: &mut P,
        before: Posting,
    ) -> Result<Option<DirectoryEntry>, P::Error> {
        for level in 1..=self.segment.depth {
            let (page, index) = self.path[usize::from(level) - 1];
            let entry = read_directory(pages, &self.segment, level, page, |d| Ok(d.get(index)))?;
            let Some(entry) = entry else {
                continue;
            };
            if entry.first <= before {
                return Err(Damaged("entries of a directory out of order").into());
            }
            self.path[usize::from(level) - 1].1 += 1;
            return self
                .descend(pages, entry, level - 1, Posting::MIN)
                .map(Some);
        }
        Ok(None)
    }
}

/// Calls `look` with the directory page of `level` to which the entry `page` points, and returns the result. Unless the
/// page is the root, its first posting must match the entry.
pub(super) fn read_directory<P: Pages, R>(
    pages: &mut P,
    segment: &Segment,
    level: u8,
    page: DirectoryEntry,
    look: impl FnOnce(Directory) -> Result<R, P::Error>,
) -> Result<R, P::Error> {
    pages.read(segment, PageKind::Directory, page.block, |payload| {
        let directory = Directory::parse(payload)?;
        if directory.level != level {
            return Err(Damaged("directory page of a different level").into());
        }
        let begins = directory.get(0).map(|entry| entry.first);
        if level < segment.depth && begins != Some(page.first) {
            let reason = "directory page that begins elsewhere than its parent says";
            return Err(Damaged(reason).into());
        }
        look(directory)
    })
}

/// Calls `look` with the leaf to which the entry `page` points, and returns the result. Unless the leaf is the root,
/// its first posting must match the entry.
pub(super) fn read_leaf<P: Pages, R>(
    pages: &mut P,
    segment: &Segment,
    page: DirectoryEntry,
    look: impl FnOnce(Leaf) -> Result<R, P::Error>,
) -> Result<R, P::Error> {
    pages.read(segment, PageKind::Leaf, page.block, |payload| {
        let leaf = Leaf::parse(payload)?;
        if segment.depth > 0 && leaf.first() != page.first {
            let reason = "leaf page that begins elsewhere than its parent says";
            return Err(Damaged(reason).into());
        }
        look(leaf)
    })
}

/// Minimum number of postings that a walk loads, except at the end of a leaf. A merge of four segments takes about as
/// many from each to fill a leaf; any more would be unpacked again after a restart.
const LOADED: usize = 512;

/// A walk through the postings of a segment, starting at a given posting.
pub(super) struct SegmentWalk {
    segment: Segment,
    /// A posting at or before the first one that has not been loaded yet.
    from: Posting,
    leaves: Option<Leaves>,
    postings: Vec<u64>,
    at: usize,
    last: Option<u64>,
}

impl SegmentWalk {
    pub fn new(segment: &Segment, from: Posting) -> Self {
        Self {
            segment: *segment,
            from,
            leaves: None,
            postings: Vec::new(),
            at: 0,
            last: None,
        }
    }

    /// Returns the next posting, or None if it is not in memory.
    #[inline]
    fn loaded(&self) -> Option<Posting> {
        self.postings.get(self.at).copied().map(Posting::from)
    }

    /// Returns the next posting.
    #[inline]
    pub fn peek<P: Pages>(&mut self, pages: &mut P) -> Result<Option<Posting>, P::Error> {
        match self.loaded() {
            Some(posting) => Ok(Some(posting)),
            None => self.load_next(pages),
        }
    }

    #[cold]
    fn load_next<P: Pages>(&mut self, pages: &mut P) -> Result<Option<Posting>, P::Error> {
        while self.at == self.postings.len() {
            if !self.load(pages)? {
                return Ok(None);
            }
        }
        Ok(self.loaded())
    }

    #[inline]
    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// Loads the next postings of the leaf, possibly none, and moves on after the last of them. Returns false at the
    /// end.
    fn load<P: Pages>(&mut self, pages: &mut P) -> Result<bool, P::Error> {
        let leaves = match &mut self.leaves {
            Some(leaves) => leaves,
            None => self
                .leaves
                .insert(Leaves::seek(pages, &self.segment, self.from)?),
        };
        let rows = self.segment.range()?;
        let (postings, last) = (&mut self.postings, &mut self.last);
        postings.clear();
        postings.try_reserve(LOADED + BLOCK).map_err(Error::from)?;
        self.at = 0;
        let seen = leaves.look(pages, |leaf| {
            leaf.visit(self.from, Posting::MAX, &mut |run| {
                for number in run {
                    let in_order = last.is_none_or(|last| last < *number);
                    if !in_order || u64::from(Posting::from(*number).offset) >= rows {
                        return Err(Damaged("postings of a leaf page out of order or range"));
                    }
                    *last = Some(*number);
                }
                postings.extend_from_slice(run);
                Ok(postings.len() < LOADED)
            })?;
            Ok(())
        })?;
        match self.last {
            Some(last) if self.postings.len() >= LOADED => {
                self.from = last.saturating_add(1).into();
            }
            _ => leaves.advance(pages)?,
        }
        Ok(seen.is_some())
    }
}

/// A key and the number of a row that has it. Merges move postings, but do not change these.
pub type KeyAndRow = (u32, u64);

/// Greater than any posting: row numbers are far below.
const END: KeyAndRow = (u32::MAX, u64::MAX);

/// Calls `take` with every posting of `groups` at or after `from`, in ascending order, until it returns false. Returns
/// the posting that was not taken, or `None` at the end. A later sweep can continue there, even after merges.
///
/// # Errors
/// The errors of `pages`; `Damaged` if pages or postings are damaged or out of order; `OutOfMemory`.
pub fn sweep<P: Pages>(
    pages: &mut P,
    groups: &[SegmentGroup],
    from: KeyAndRow,
    take: &mut impl FnMut(KeyAndRow) -> bool,
) -> Result<Option<KeyAndRow>, P::Error> {
    let mut sources = Vec::new();
    for group in groups {
        for part in &parts::<P::Error>(group)?.1 {
            sources.try_push(SweptSegment::new(part, from))?;
        }
    }
    for source in &mut sources {
        source.load(pages)?;
    }
    while let Some(source) = sources.iter_mut().min_by_key(|source| source.next)
        && source.next != END
    {
        if !take(source.next) {
            return Ok(Some(source.next));
        }
        source.walk.skip();
        source.load(pages)?;
    }
    Ok(None)
}

/// The valid postings of a segment.
struct SweptSegment {
    walk: SegmentWalk,
    lo: u64,
    last: u64,
    next: KeyAndRow,
}

impl SweptSegment {
    fn new(part: &SegmentPart, (key, row): KeyAndRow) -> Self {
        let lo = part.segment.lo;
        // An offset above all others stands for rows after the segment's.
        let offset = row.saturating_sub(lo).min(u64::from(u32::MAX)) as u32;
        let from = Posting { key, offset }.max(part.first.into());
        Self {
            walk: SegmentWalk::new(part.segment, from),
            lo,
            last: part.last,
            next: END,
        }
    }

    #[inline]
    fn load<P: Pages>(&mut self, pages: &mut P) -> Result<(), P::Error> {
        let next = self.walk.peek(pages)?;
        let within = next.filter(|posting| u64::from(*posting) <= self.last);
        self.next = within.map_or(END, |posting| {
            (posting.key, self.lo + u64::from(posting.offset))
        });
        Ok(())
    }
}
