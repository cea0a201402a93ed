//! Makes one segment of several, a leaf at a time.

use super::walk::Walk;
use super::{Damaged, LeafBuilder, Pages, Posting, Segment};
use std::collections::TryReserveError;

/// The postings of some segments from a split on, in the order of their merged segment.
///
/// Nothing but the split has to be remembered to go on later, or after a crash. A page of an input
/// is not looked at again once a later page of its level begins at or before the split, which
/// [`Posting`]s of that input are to be compared with as [`split_of_input`] says.
pub struct Merge {
    inputs: Vec<Walk>,
    lo: u64,
    last: Option<Posting>,
}

/// What [`Merge::fill`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// The new split: the first posting not taken, `None` at the end.
    pub next: Option<Posting>,
    /// Postings taken for rows that are not kept.
    pub dropped: u64,
}

impl Merge {
    /// Begins at `split`, which counts offsets from `lo`, the output's first row.
    ///
    /// # Errors
    /// Where memory does not suffice.
    pub fn new(inputs: &[Segment], lo: u64, split: Posting) -> Result<Self, TryReserveError> {
        let mut walks = Vec::new();
        walks.try_reserve_exact(inputs.len())?;
        walks.extend(inputs.iter().map(|input| {
            let shift = input.lo.saturating_sub(lo);
            Walk::new(input, split_of_input(split, shift))
        }));
        Ok(Self {
            inputs: walks,
            lo,
            last: None,
        })
    }

    /// Takes postings until `leaf` is full or there are no more; those of rows that `keep` refuses
    /// are dropped.
    ///
    /// About 10 ns a posting, and as many leaves read as written unless rows are dropped.
    ///
    /// # Errors
    /// Those of `pages`, and where the inputs' postings are out of order or range.
    pub fn fill<P: Pages>(
        &mut self,
        pages: &mut P,
        leaf: &mut LeafBuilder,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Result<Filled, P::Error> {
        let mut dropped = 0;
        loop {
            let Some((input, next)) = self.least(pages)? else {
                let next = None;
                return Ok(Filled { next, dropped });
            };
            if self.last.is_some_and(|last| last >= next) {
                return Err(Damaged("a row has postings in two segments").into());
            }
            if !keep(self.lo + u64::from(next.offset)) {
                dropped += 1;
            } else if !leaf.push(next) {
                let next = Some(next);
                return Ok(Filled { next, dropped });
            }
            self.last = Some(next);
            self.inputs[input].skip();
        }
    }

    /// The input whose next posting is the least, and that posting in terms of the output.
    #[inline]
    fn least<P: Pages>(&mut self, pages: &mut P) -> Result<Option<(usize, Posting)>, P::Error> {
        let mut least = None;
        for (i, input) in self.inputs.iter_mut().enumerate() {
            let posting = match input.loaded() {
                Some(posting) => posting,
                None => match input.peek(pages)? {
                    Some(posting) => posting,
                    None => continue,
                },
            };
            let shift = input.segment().lo.wrapping_sub(self.lo);
            let offset = u32::try_from(shift.saturating_add(u64::from(posting.offset)));
            let Ok(offset) = offset else {
                return Err(Damaged("segments too far apart to be merged").into());
            };
            let posting = Posting { offset, ..posting };
            if least.is_none_or(|(_, other)| posting < other) {
                least = Some((i, posting));
            }
        }
        Ok(least)
    }
}

/// The first posting of an input that is not below a split, in terms of the input, whose rows begin
/// `shift` after those of the output.
pub fn split_of_input(split: Posting, shift: u64) -> Posting {
    let offset = u64::from(split.offset).saturating_sub(shift) as u32;
    Posting { offset, ..split }
}
