//! Postings on pages: how the access method stores the keys of rows, and finds the rows that share at least T of a
//! query's keys (T-occurrence).
//!
//! A row has a number and a set of 32-bit keys. New rows are appended to [`log`] pages. A [`Segment`] holds the
//! postings (key, row) of a range of rows, sorted, on immutable [`leaf`] pages below a static tree of [`directory`]
//! pages. [`search`](search()) looks up the keys of a query in segments; [`sweep`](sweep()) reads all postings.
//! [`Merge`] makes one segment from several, leaf by leaf, and [`policy`] decides which.
//!
//! This module works on byte slices, the payloads of pages; their headers and locks are left to the caller. Bytes that
//! it never wrote lead to [`Damaged`], not to a panic. All memory whose size depends on them or on the query is
//! reserved fallibly.
#![allow(clippy::disallowed_methods, reason = "reserved in advance")]

mod bits;
mod comparison;
mod count;
mod cursor;
pub mod directory;
mod estimate;
mod key_list;
mod leaf;
pub mod log;
mod long;
mod lookup;
mod merge;
mod needed;
mod part;
mod passed;
pub mod policy;
mod search;
pub mod sort;
mod walk;

pub use directory::Directory;
pub use estimate::Estimate;
pub use leaf::{Leaf, LeafBuilder};
pub use log::{Log, LogQuery};
pub use merge::Merge;
pub use needed::Needed;
pub use part::split_of_input;
pub use passed::passed;
pub use search::{KeyQuery, search};
pub use sort::sort_distinct;
pub use walk::{KeyAndRow, sweep};

use crate::bands::RowSize;

/// A key and a row that has it, given by the row's distance from [`Segment::lo`]. Ordered by key, then by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Posting {
    pub key: u32,
    pub offset: u32,
}

impl Posting {
    pub const MIN: Self = Self { key: 0, offset: 0 };
    pub const MAX: Self = Self {
        key: u32::MAX,
        offset: u32::MAX,
    };
}

impl From<Posting> for u64 {
    #[inline]
    fn from(posting: Posting) -> Self {
        Self::from(posting.key) << 32 | Self::from(posting.offset)
    }
}

/// Takes the key from the high half. Numbers sort as their postings do.
impl From<u64> for Posting {
    #[inline]
    fn from(number: u64) -> Self {
        Self {
            key: (number >> 32) as u32,
            offset: number as u32,
        }
    }
}

/// The reason why bytes are not a page written by this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub &'static str);

/// Maximum number of rows in the range of a segment: one offset is never used.
pub const MAX_ROWS: u64 = u32::MAX as u64;

/// Maximum number of levels of directory pages of a segment. Even 2^32 pages need fewer.
pub const MAX_DEPTH: u8 = 8;

/// Sorted postings of a range of rows, as the metapage of an index stores them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    /// The segment's number, written on each of its pages and never given to another segment.
    pub number: u64,
    /// The segment's rows are in `lo..hi`, a range of at most [`MAX_ROWS`].
    pub lo: u64,
    pub hi: u64,
    /// Number of postings. If 0, the segment has no pages, and `root` and `depth` have no meaning.
    pub postings: u64,
    /// Number of rows that have postings in the segment.
    pub rows: u64,
    pub root: u32,
    /// Levels of directory pages above the leaves; if 0, the root is a leaf.
    pub depth: u8,
    pub unused: [u8; 3],
    pub leaves: u32,
    pub directory_pages: u32,
}

impl Segment {
    /// Returns the number of rows in the range, or an error if no segment can have this range.
    fn range(&self) -> Result<u64, Damaged> {
        match self.hi.checked_sub(self.lo) {
            Some(rows) if rows <= MAX_ROWS && self.depth <= MAX_DEPTH => Ok(rows),
            _ => Err(Damaged("impossible range of rows or depth of a segment")),
        }
    }
}

/// Segments that are searched as one: a single segment, or a merge in progress.
#[derive(Debug, Clone, Copy)]
pub struct SegmentGroup<'a> {
    /// Segments with disjoint ranges of rows.
    pub inputs: &'a [Segment],
    pub output: Option<MergeOutput>,
}

/// The progress of a merge. Postings below `split`, which counts offsets from the output's `lo`, are in the output;
/// all others are in the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeOutput {
    pub segment: Segment,
    pub split: Posting,
}

impl<'a> SegmentGroup<'a> {
    pub fn alone(segment: &'a Segment) -> Self {
        Self {
            inputs: std::slice::from_ref(segment),
            output: None,
        }
    }

    /// Returns the number of rows in the ranges of the inputs, including dead rows.
    pub fn rows(&self) -> f64 {
        let rows = |input: &Segment| input.hi.saturating_sub(input.lo) as f64;
        self.inputs.iter().map(rows).sum()
    }

    /// Returns the number of directory levels of the deepest tree.
    pub fn depth(&self) -> usize {
        let output = self.output.iter().map(|output| &output.segment);
        let depths = self.inputs.iter().chain(output).map(|of| of.depth);
        depths.max().map_or(0, usize::from)
    }
}

/// Maximum number of pages announced at a time: usually all that a lookup reads on a level.
pub const AHEAD: usize = 512;

/// A page that will be read.
#[derive(Debug, Clone, Copy)]
pub struct PageAhead {
    pub block: u32,
    /// The place on the page that is needed in addition to its beginning: from 0, its first byte, to 1, its last. May
    /// be NaN.
    pub place: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    Leaf,
    Directory,
}

/// The pages of segments, as the storage below provides them.
pub trait Pages {
    type Error: From<Damaged> + From<crate::Error>;

    /// Announces at most [`AHEAD`] pages that will be read next, so that the storage is asked for all of them before
    /// the first one is waited for. If some must be read from storage, moves pages in memory to the front.
    ///
    /// # Errors
    /// Fails if a page cannot be read.
    fn announce<T>(
        &mut self,
        pages: &mut [T],
        ahead: impl Fn(&T) -> PageAhead,
    ) -> Result<(), Self::Error>;

    /// Calls `look` with the payload of page `block` of `segment`, and returns its result. Any bytes may follow the
    /// payload.
    ///
    /// Only one page at a time is looked at, and no reference to it is kept.
    ///
    /// # Errors
    /// Fails if the page cannot be read, is of another kind or another segment, or `look` fails.
    fn read<R>(
        &mut self,
        segment: &Segment,
        kind: PageKind,
        block: u32,
        look: impl FnOnce(&[u8]) -> Result<R, Self::Error>,
    ) -> Result<R, Self::Error>;

    /// Called between pages, and from time to time in long computations.
    ///
    /// # Errors
    /// Fails if the caller wants to stop.
    fn interrupt(&mut self) -> Result<(), Self::Error>;
}

/// Pages of segments whose rows have known sizes.
pub trait RowSizes: Pages {
    /// Calls `look` with the index in `rows` and the size of every row that is not known to be dead. `rows` are in
    /// ascending order.
    ///
    /// # Errors
    /// Fails if a page cannot be read.
    fn sizes(
        &mut self,
        rows: &[u64],
        look: &mut dyn FnMut(usize, RowSize),
    ) -> Result<(), Self::Error>;
}
