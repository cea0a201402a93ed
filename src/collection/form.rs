//! The layout of the records of kept items, and the prefilter on their fields.

use crate::collection::outlines::read_tokens;
use neardup::kernels::active;

/// The layout of the records of kept items: the item, its tokens, and the fields of a test.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub bands: usize,
    /// Minimum number of tokens that partners share.
    pub needed: usize,
    pub test: Option<Test>,
}

/// Number of bytes of a record that hold the item.
pub const ITEM: usize = size_of::<u32>();

impl Form {
    /// Returns how many bytes of a record hold the tokens.
    pub fn tokens_len(&self) -> usize {
        self.bands * size_of::<u32>()
    }

    /// Returns the length of a record in bytes.
    pub fn len(&self) -> usize {
        ITEM + self.tokens_len() + self.test.map_or(0, |test| test.bytes())
    }

    /// Splits a record into item, tokens and fields.
    pub fn parts<'a>(&self, record: &'a [u8]) -> (u32, impl Iterator<Item = u32> + 'a, &'a [u8]) {
        let (item, rest) = record.split_at(ITEM);
        let (tokens, fields) = rest.split_at(self.tokens_len());
        let item = read_tokens(item).next().expect("a record has an item");
        (item, read_tokens(tokens), fields)
    }
}

/// A test on fields of a few bits each. At least `equal` fields are equal in similar rows.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    pub fields: usize,
    pub bits: u32,
    pub equal: usize,
}

impl Test {
    /// Returns how many bytes the fields of a row take.
    pub fn bytes(&self) -> usize {
        (self.fields * self.bits as usize).div_ceil(8)
    }
}

/// A filter on the packed fields of all rows, stored back to back.
pub struct Prefilter {
    pub test: Test,
    pub packed: Vec<u8>,
}

impl Prefilter {
    /// Returns whether rows `a` and `b` have enough equal fields to be compared.
    pub fn passes(&self, a: u32, b: u32) -> bool {
        let bytes = self.test.bytes();
        let of = |row: u32| &self.packed[row as usize * bytes..][..bytes];
        active().count_equal(of(a), of(b), self.test.fields, self.test.bits) >= self.test.equal
    }
}
