//! Looks up ascending keys in a leaf. Unpacks every block only once, and only as far as necessary.

use super::leaf::{DAMAGED, Leaf, StoredBlock};
use super::{Damaged, Posting};

/// A place among the postings of a leaf.
pub(super) struct Cursor<'a> {
    leaf: Leaf<'a>,
    /// The number of `block`.
    number: usize,
    block: StoredBlock<'a>,
    /// The cursor's place in `block`, and the key there. At the end of the block, `place` is the block's length.
    place: usize,
    key: u64,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the beginning of the last block that begins at or before `posting`, or of the first block.
    ///
    /// # Errors
    /// `Damaged` if the block is damaged.
    pub fn new(leaf: &Leaf<'a>, posting: Posting) -> Result<Self, Damaged> {
        let number = leaf.block_of(posting);
        let mut cursor = Self {
            leaf: *leaf,
            number,
            block: leaf.stored(number)?,
            place: 0,
            key: 0,
        };
        cursor.enter(number)?;
        Ok(cursor)
    }

    fn enter(&mut self, number: usize) -> Result<(), Damaged> {
        self.number = number;
        self.block = self.leaf.stored(number)?;
        self.place = 0;
        self.key = u64::from(self.block.first.key);
        match self.block.difference(0) {
            0 => Ok(()),
            _ => Err(DAMAGED),
        }
    }

    /// Moves to the first posting of the block whose key is at least `wanted`, or to the end of the block.
    #[inline]
    fn skip_to(&mut self, wanted: u32) -> Result<(), Damaged> {
        (self.place, self.key) = self.block.seek(self.place, self.key, wanted.into());
        match u32::try_from(self.key) {
            Ok(_) => Ok(()),
            Err(_) => Err(DAMAGED),
        }
    }

    #[inline]
    fn step(&mut self) -> Result<(), Damaged> {
        self.place += 1;
        if self.place < self.block.len {
            self.key += u64::from(self.block.difference(self.place));
        }
        self.skip_to(0)
    }

    /// Calls `visit` with the postings from `first` to `last`, until `visit` returns false. `first` must be after the
    /// postings visited before.
    ///
    /// # Errors
    /// The errors of `visit`; `Damaged` if a block is damaged.
    #[inline]
    pub fn visit(
        &mut self,
        first: Posting,
        last: Posting,
        visit: &mut impl FnMut(Posting) -> Result<bool, Damaged>,
    ) -> Result<(), Damaged> {
        let number = self.leaf.block_from(self.number, first);
        if number > self.number {
            self.enter(number)?;
        }
        loop {
            self.skip_to(first.key)?;
            while self.place < self.block.len {
                if self.key > u64::from(last.key) {
                    return Ok(());
                }
                let posting = Posting {
                    key: self.key as u32,
                    offset: self.block.offset(self.place),
                };
                if posting > last || posting >= first && !visit(posting)? {
                    return Ok(());
                }
                self.step()?;
            }
            let next = self.number + 1;
            if next == self.leaf.blocks() || self.leaf.first_of(next) > last {
                return Ok(());
            }
            self.enter(next)?;
        }
    }
}
