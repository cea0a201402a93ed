//! Directory pages, which hold the first postings of the leaves, or of the directory pages on the level below.
//!
//! Payload, little-endian: `entries u16 | level u8 | 0 u8 | for each entry: first posting u64 (the key in the high
//! half), block u32`. Level 1 is directly above the leaves. Entries are only appended.

use super::{Damaged, MAX_DEPTH, Posting, Segment};

const HEADER: usize = 4;
const ENTRY: usize = 12;

/// A page of the level below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub first: Posting,
    pub block: u32,
}

impl DirectoryEntry {
    /// Returns an entry for the root of `segment`. Its first posting is not known, so [`Posting::MIN`] stands for it.
    pub(super) fn of_root(segment: &Segment) -> Self {
        Self {
            first: Posting::MIN,
            block: segment.root,
        }
    }

    fn to_bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&u64::from(self.first).to_le_bytes());
        bytes[8..].copy_from_slice(&self.block.to_le_bytes());
        bytes
    }

    fn from_bytes([f0, f1, f2, f3, f4, f5, f6, f7, block @ ..]: [u8; ENTRY]) -> Self {
        Self {
            first: u64::from_le_bytes([f0, f1, f2, f3, f4, f5, f6, f7]).into(),
            block: u32::from_le_bytes(block),
        }
    }
}

/// Writes an empty directory of `level` (1 to [`MAX_DEPTH`]) to the front of `payload`. Returns the bytes used.
pub fn init(payload: &mut [u8], level: u8) -> usize {
    payload[..HEADER].copy_from_slice(&[0, 0, level, 0]);
    HEADER
}

/// Returns whether a directory of `entries` entries has room for one more in `capacity` bytes.
pub fn has_room(entries: usize, capacity: usize) -> bool {
    HEADER + (entries + 1) * ENTRY <= capacity
}

/// Appends `entry` to a directory. Returns the number of bytes then used, or `None` if the page is full. The entry's
/// first posting must be above the earlier ones.
///
/// # Errors
/// `Damaged` if the payload is not a directory or the entry is out of order.
pub fn append(payload: &mut [u8], entry: DirectoryEntry) -> Result<Option<usize>, Damaged> {
    let directory = Directory::parse(payload)?;
    let used = directory.used();
    let is_after = |last: DirectoryEntry| last.first >= entry.first;
    if directory.last().is_some_and(is_after) {
        return Err(Damaged("directory page that ends above what follows it"));
    }
    let entries = directory.entries.len() as u16 + 1;
    let Some(place) = payload.get_mut(used..used + ENTRY) else {
        return Ok(None);
    };
    place.copy_from_slice(&entry.to_bytes());
    payload[..2].copy_from_slice(&entries.to_le_bytes());
    Ok(Some(used + ENTRY))
}

/// The entries of a directory page.
#[derive(Clone, Copy)]
pub struct Directory<'a> {
    /// The level of the page, 1 if directly above the leaves.
    pub level: u8,
    entries: &'a [[u8; ENTRY]],
}

impl<'a> Directory<'a> {
    /// Reads the directory in `payload`.
    ///
    /// # Errors
    /// `Damaged` if the header is impossible, or the payload is shorter than its entries. The order of entries is not
    /// checked.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Damaged> {
        const SHORT: Damaged = Damaged("directory page shorter than its entries");
        let (&[low, high, level, zero], rest) = payload.split_first_chunk().ok_or(SHORT)?;
        if level == 0 || level > MAX_DEPTH || zero != 0 {
            return Err(Damaged("impossible header of a directory page"));
        }
        let entries = usize::from(u16::from_le_bytes([low, high]));
        let entries = rest.as_chunks().0.get(..entries).ok_or(SHORT)?;
        Ok(Self { level, entries })
    }

    /// Returns the number of bytes of the payload that are used.
    pub fn used(&self) -> usize {
        HEADER + self.entries.len() * ENTRY
    }

    pub fn children(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<DirectoryEntry> {
        let entry = self.entries.get(index).copied();
        entry.map(DirectoryEntry::from_bytes)
    }

    /// Returns the child at `index`, which comes from [`Self::child_of`].
    ///
    /// # Errors
    /// `Damaged` if the page has no entries.
    #[inline]
    pub(super) fn child(&self, index: usize) -> Result<DirectoryEntry, Damaged> {
        let child = self.get(index);
        child.ok_or(Damaged("directory page without entries"))
    }

    pub fn last(&self) -> Option<DirectoryEntry> {
        self.entries.last().copied().map(DirectoryEntry::from_bytes)
    }

    pub fn iter(&self) -> impl Iterator<Item = DirectoryEntry> + 'a {
        self.entries.iter().copied().map(DirectoryEntry::from_bytes)
    }

    /// Returns the index of the last child that begins at or before `posting`, or 0.
    #[inline]
    pub fn child_of(&self, posting: Posting) -> usize {
        let begins_before =
            |entry: &[u8; ENTRY]| DirectoryEntry::from_bytes(*entry).first <= posting;
        // Searches around the place that the child would have if keys were spread evenly: a bisection of the page would
        // wait for one cache line after another.
        let (mut low, mut high) = (self.guess(posting), self.entries.len());
        let mut step = 1;
        while low > 0
            && self
                .entries
                .get(low)
                .is_none_or(|entry| !begins_before(entry))
        {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while let Some(entry) = self.entries[low..high].get(step) {
            if !begins_before(entry) {
                high = low + step;
                break;
            }
            low += step;
            step *= 2;
        }
        let after = low + self.entries[low..high].partition_point(begins_before);
        after.saturating_sub(1)
    }

    /// Returns the index that the child with `posting` would have if keys were spread evenly.
    #[inline]
    fn guess(&self, posting: Posting) -> usize {
        let (Some(first), Some(last)) = (self.get(0), self.last()) else {
            return 0;
        };
        let number = |posting: Posting| u64::from(posting) as f64;
        let share =
            (number(posting) - number(first.first)) / (number(last.first) - number(first.first));
        // The share is NaN if there is one child; the conversion saturates, and turns NaN into 0.
        ((share * (self.entries.len() - 1) as f64) as usize).min(self.entries.len() - 1)
    }
}

/// The directory pages of a segment that is being written.
pub trait Directories {
    type Error;

    /// Returns the first posting of page `block`, which is a leaf if `level` is 0.
    ///
    /// # Errors
    /// The store's error if the page cannot be read.
    fn first(&mut self, level: u8, block: u32) -> Result<Posting, Self::Error>;

    /// Returns the block of the last entry of directory page `block`.
    ///
    /// # Errors
    /// The store's error if the page cannot be read or is empty.
    fn last(&mut self, level: u8, block: u32) -> Result<u32, Self::Error>;

    /// Appends `entry` to directory page `block` as [`append`] does. Returns false if the page is full.
    ///
    /// # Errors
    /// The store's error if the page cannot be read or written.
    fn append(&mut self, level: u8, block: u32, entry: DirectoryEntry)
    -> Result<bool, Self::Error>;

    /// Writes a new directory page of `level` with `entries`, and returns its block.
    ///
    /// # Errors
    /// The store's error if there is no room for it.
    fn create(&mut self, level: u8, entries: &[DirectoryEntry]) -> Result<u32, Self::Error>;
}

/// Adds the page `leaf`, already written, after all other leaves of `segment`.
///
/// Full pages are not changed. New pages are created in addition, and nothing points to these until the last change: an
/// entry appended to an old page, or a new root. Sets the segment's root and depth; the caller counts the postings
/// afterwards.
///
/// # Errors
/// The errors of `directories`.
pub fn add_leaf<D: Directories>(
    directories: &mut D,
    segment: &mut Segment,
    leaf: DirectoryEntry,
) -> Result<(), D::Error> {
    if segment.postings == 0 {
        (segment.root, segment.depth) = (leaf.block, 0);
        return Ok(());
    }
    let mut path = [segment.root; MAX_DEPTH as usize + 1];
    for level in (1..segment.depth.min(MAX_DEPTH)).rev() {
        let above = path[usize::from(level) + 1];
        path[usize::from(level)] = directories.last(level + 1, above)?;
    }
    let mut entry = leaf;
    for level in 1..=segment.depth.min(MAX_DEPTH) {
        if directories.append(level, path[usize::from(level)], entry)? {
            return Ok(());
        }
        entry.block = directories.create(level, &[entry])?;
    }
    let left = DirectoryEntry {
        first: directories.first(segment.depth, segment.root)?,
        block: segment.root,
    };
    segment.root = directories.create(segment.depth + 1, &[left, entry])?;
    segment.depth += 1;
    Ok(())
}
