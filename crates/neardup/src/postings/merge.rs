//! Merges two or more segments into one, a leaf at a time.

use super::part::split_of_input;
use super::walk::SegmentWalk;
use super::{Damaged, LeafBuilder, MAX_ROWS, Pages, Posting, Segment};
use crate::memory::{collected, with_room};

/// The postings of segments at or after a split, in the order in which they are written to the output segment.
///
/// To continue later, or after a crash, only the split must be remembered. A page of an input is not read again once a
/// later page of its level begins at or before the split. To compare the split with [`Posting`]s of that input, convert
/// it with [`split_of_input`].
pub struct Merge {
    inputs: Vec<Input>,
    /// The next posting of each input, in terms of the output; [`END`] if there is none.
    next: Vec<u64>,
    lo: u64,
    last: Option<u64>,
}

struct Input {
    walk: SegmentWalk,
    /// The distance from the output's first row to the input's.
    shift: u64,
}

/// Maximum number of postings read at once, most of them of dead rows: about 10 ms, or some 400 leaves.
const AT_ONCE: usize = 1 << 20;

/// Not a posting, because its offset would be [`MAX_ROWS`].
const END: u64 = u64::MAX;

impl Merge {
    /// Returns a merge that begins at `split`, whose offset counts from `lo`, the output's first row.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(inputs: &[Segment], lo: u64, split: Posting) -> crate::Result<Self> {
        let input = |segment: &Segment| {
            let shift = segment.lo.saturating_sub(lo);
            let walk = SegmentWalk::new(segment, split_of_input(split, shift));
            Input { walk, shift }
        };
        Ok(Self {
            inputs: collected(inputs.iter().map(input))?,
            next: with_room(inputs.len())?,
            lo,
            last: None,
        })
    }

    /// Moves postings to `leaf` until it is full, [`AT_ONCE`] are read, or none are left. Drops postings of rows that
    /// `keep` rejects. Returns the new split: the first posting that was not taken, or None at the end.
    ///
    /// Takes about 10 ns per posting, and reads as many leaves as it writes unless rows are dropped.
    ///
    /// # Errors
    /// The errors of `pages`; `Damaged` if the inputs are damaged, or their postings are out of order or out of range;
    /// `OutOfMemory`.
    pub fn fill<P: Pages>(
        &mut self,
        pages: &mut P,
        leaf: &mut LeafBuilder,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<Posting>, P::Error> {
        self.begin(pages)?;
        for read in 0.. {
            let (input, number) = self.least();
            if number == END {
                break;
            }
            if self.last.is_some_and(|last| last >= number) {
                return Err(Damaged("a row has postings in two segments").into());
            }
            let posting = Posting::from(number);
            let row = self.lo + u64::from(posting.offset);
            if read == AT_ONCE || keep(row) && !leaf.push(posting) {
                return Ok(Some(posting));
            }
            self.last = Some(number);
            self.inputs[input].walk.skip();
            self.next[input] = self.inputs[input].next(pages)?;
        }
        Ok(None)
    }

    /// Reads the first posting of each input, unless this was done before.
    fn begin<P: Pages>(&mut self, pages: &mut P) -> Result<(), P::Error> {
        for input in self.next.len()..self.inputs.len() {
            let next = self.inputs[input].next(pages)?;
            self.next.push(next);
        }
        Ok(())
    }

    /// Returns the input whose next posting is the least, and this posting. No branch depends on the postings.
    #[inline]
    fn least(&self) -> (usize, u64) {
        let mut least = (0, END);
        for (input, &next) in self.next.iter().enumerate() {
            let smaller = next < least.1;
            least.0 = if smaller { input } else { least.0 };
            least.1 = least.1.min(next);
        }
        least
    }
}

impl Input {
    /// Returns the input's next posting with its offset counted from the output's first row, or [`END`].
    #[inline]
    fn next<P: Pages>(&mut self, pages: &mut P) -> Result<u64, P::Error> {
        let Some(posting) = self.walk.peek(pages)? else {
            return Ok(END);
        };
        let offset = self.shift.saturating_add(u64::from(posting.offset));
        if offset >= MAX_ROWS {
            return Err(Damaged("segments too far apart to be merged").into());
        }
        let offset = offset as u32;
        Ok(Posting { offset, ..posting }.into())
    }
}
