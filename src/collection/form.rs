//! Records of the items that may have partners.

use crate::collection::outlines::read_tokens;
use crate::collection::prefilter::Test;

/// The form of the records of kept items: the item, its tokens, and the fields of a test.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub bands: usize,
    /// Tokens that partners share at least.
    pub needed: usize,
    pub test: Option<Test>,
}

/// Bytes of a record that hold the item.
pub const ITEM: usize = size_of::<u32>();

impl Form {
    /// Returns how many bytes of a record hold the tokens.
    pub fn tokens_len(&self) -> usize {
        self.bands * size_of::<u32>()
    }

    /// Returns how many bytes a record has.
    pub fn len(&self) -> usize {
        ITEM + self.tokens_len() + self.test.map_or(0, |test| test.bytes())
    }

    /// Returns item, tokens and fields of a record.
    pub fn parts<'a>(&self, record: &'a [u8]) -> (u32, impl Iterator<Item = u32> + 'a, &'a [u8]) {
        let (item, rest) = record.split_at(ITEM);
        let (tokens, fields) = rest.split_at(self.tokens_len());
        let item = read_tokens(item).next().expect("a record has an item");
        (item, read_tokens(tokens), fields)
    }
}
