//! Leaf pages: sorted postings in blocks of 64.
//!
//! Payload, little-endian: `postings u16 | 0 u16 | first key of each block u32... | of each block:
//! first offset u32, end of its bits u16, bits of a key u8, bits of an offset u8 | bits...`. Every
//! block but the last holds 64 postings. Its bits are the differences of each key to the one before
//! (0 for the first), then the offsets; each half begins at a byte. Where all keys of a block are one
//! (0 bits a key), its offsets are stored as differences to its first.

use super::bits::{BLOCK, pack, packed_len, unpack, width};
use super::{Damaged, Posting};
use std::collections::TryReserveError;

const HEADER: usize = 4;

/// What a block takes besides its bits: its first key, and the rest of its head.
const HEAD: usize = KEY + REST;
const KEY: usize = 4;
const REST: usize = 8;

/// Packs ascending postings into the payload of a page.
pub struct LeafBuilder {
    capacity: usize,
    keys: Vec<u8>,
    rests: Vec<u8>,
    bits: Vec<u8>,
    /// Of the block that is being filled.
    pending: Vec<Posting>,
    widths: Widths,
    len: usize,
    first: Option<Posting>,
}

/// What determines the widths of a block: its numbers or-ed together.
#[derive(Clone, Copy, Default)]
struct Widths {
    differences: u32,
    offsets: u32,
    relative_offsets: u32,
}

impl Widths {
    fn with(self, first: Posting, last: Posting, next: Posting) -> Self {
        Self {
            differences: self.differences | next.key.wrapping_sub(last.key),
            offsets: self.offsets | next.offset,
            relative_offsets: self.relative_offsets | next.offset.wrapping_sub(first.offset),
        }
    }

    /// Bits of a key and of an offset.
    fn bits(self) -> (u32, u32) {
        match width(self.differences) {
            0 => (0, width(self.relative_offsets)),
            key => (key, width(self.offsets)),
        }
    }

    fn block_len(self, postings: usize) -> usize {
        let (key, offset) = self.bits();
        packed_len(postings, key) + packed_len(postings, offset)
    }
}

impl LeafBuilder {
    /// A builder of payloads of at most `capacity` bytes: 24 to 65535.
    ///
    /// # Errors
    /// Where memory does not suffice.
    pub fn new(capacity: usize) -> Result<Self, TryReserveError> {
        assert!((24..=usize::from(u16::MAX)).contains(&capacity));
        let mut builder = Self {
            capacity,
            keys: Vec::new(),
            rests: Vec::new(),
            bits: Vec::new(),
            pending: Vec::new(),
            widths: Widths::default(),
            len: 0,
            first: None,
        };
        builder.keys.try_reserve_exact(capacity / HEAD * KEY)?;
        builder.rests.try_reserve_exact(capacity / HEAD * REST)?;
        builder.bits.try_reserve_exact(capacity)?;
        builder.pending.try_reserve_exact(BLOCK)?;
        Ok(builder)
    }

    /// Takes a posting above those before, or returns false where the page has no room for it.
    #[inline]
    pub fn push(&mut self, posting: Posting) -> bool {
        let (first, last) = match (self.pending.first(), self.pending.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (posting, posting),
        };
        let widths = self.widths.with(first, last, posting);
        let heads = self.keys.len() + self.rests.len() + HEAD;
        let block = widths.block_len(self.pending.len() + 1);
        let full = HEADER + heads + self.bits.len() + block > self.capacity;
        if full || self.len == usize::from(u16::MAX) {
            return false;
        }
        self.widths = widths;
        self.first.get_or_insert(posting);
        self.pending.push(posting);
        self.len += 1;
        if self.pending.len() == BLOCK {
            self.finish_block();
        }
        true
    }

    fn finish_block(&mut self) {
        let Some(&first) = self.pending.first() else {
            return;
        };
        let (key_bits, offset_bits) = self.widths.bits();
        let mut numbers = [0; BLOCK];
        let mut last_key = first.key;
        for (number, posting) in numbers.iter_mut().zip(&self.pending) {
            *number = posting.key.wrapping_sub(last_key);
            last_key = posting.key;
        }
        pack(&numbers[..self.pending.len()], key_bits, &mut self.bits);
        let bias = if key_bits == 0 { first.offset } else { 0 };
        for (number, posting) in numbers.iter_mut().zip(&self.pending) {
            *number = posting.offset.wrapping_sub(bias);
        }
        pack(&numbers[..self.pending.len()], offset_bits, &mut self.bits);
        self.keys.extend_from_slice(&first.key.to_le_bytes());
        self.rests.extend_from_slice(&first.offset.to_le_bytes());
        // Counted from the end of the heads, whose number is not known yet.
        self.rests
            .extend_from_slice(&(self.bits.len() as u16).to_le_bytes());
        self.rests
            .extend_from_slice(&[key_bits as u8, offset_bits as u8]);
        self.pending.clear();
        self.widths = Widths::default();
    }

    /// Writes the payload to the front of `page`, which has room for the capacity, and returns its
    /// length. The builder is empty then.
    pub fn finish(&mut self, page: &mut [u8]) -> usize {
        self.finish_block();
        let mut end = 0;
        let mut put = |bytes: &[u8]| {
            page[end..end + bytes.len()].copy_from_slice(bytes);
            end += bytes.len();
        };
        put(&(self.len as u16).to_le_bytes());
        put(&[0; 2]);
        for part in [&mut self.keys, &mut self.rests, &mut self.bits] {
            put(part);
            part.clear();
        }
        self.len = 0;
        self.first = None;
        end
    }

    /// The first posting taken.
    pub fn first(&self) -> Option<Posting> {
        self.first
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The postings of a leaf page: at least one.
#[derive(Clone, Copy)]
pub struct Leaf<'a> {
    keys: &'a [[u8; KEY]],
    rests: &'a [[u8; REST]],
    bits: &'a [u8],
    len: usize,
}

/// A block's head.
struct Head {
    first: Posting,
    end: usize,
    key_bits: u32,
    offset_bits: u32,
}

impl<'a> Leaf<'a> {
    /// Checks all that reading relies on, but not the order of the postings within blocks.
    ///
    /// # Errors
    /// Where the payload is none that [`LeafBuilder`] writes.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Damaged> {
        const SHORT: Damaged = Damaged("leaf page shorter than its postings");
        let (header, rest) = payload.split_first_chunk::<HEADER>().ok_or(SHORT)?;
        let len = usize::from(u16::from_le_bytes([header[0], header[1]]));
        if len == 0 || header[2..] != [0; 2] {
            return Err(Damaged("impossible header of a leaf page"));
        }
        let blocks = len.div_ceil(BLOCK);
        let (keys, rest) = rest.split_at_checked(blocks * KEY).ok_or(SHORT)?;
        let (rests, bits) = rest.split_at_checked(blocks * REST).ok_or(SHORT)?;
        let mut leaf = Self {
            keys: keys.as_chunks().0,
            rests: rests.as_chunks().0,
            bits,
            len,
        };
        let mut end = 0;
        for block in 0..blocks {
            let head = leaf.head(block);
            let postings = leaf.block_len(block);
            end += packed_len(postings, head.key_bits) + packed_len(postings, head.offset_bits);
            if head.end != end || head.key_bits > 32 || head.offset_bits > 32 {
                return Err(Damaged("impossible head of a block on a leaf page"));
            }
        }
        leaf.bits = bits.get(..end).ok_or(SHORT)?;
        Ok(leaf)
    }

    /// Bytes of the payload that are used.
    pub fn used(&self) -> usize {
        HEADER + self.keys.len() * HEAD + self.bits.len()
    }

    /// The number of postings.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a leaf has at least one posting"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn first(&self) -> Posting {
        self.first_of(0)
    }

    #[inline]
    fn head(&self, block: usize) -> Head {
        let [.., end_low, end_high, key_bits, offset_bits] = self.rests[block];
        Head {
            first: self.first_of(block),
            end: usize::from(u16::from_le_bytes([end_low, end_high])),
            key_bits: u32::from(key_bits),
            offset_bits: u32::from(offset_bits),
        }
    }

    #[inline]
    fn first_of(&self, block: usize) -> Posting {
        let [a, b, c, d, ..] = self.rests[block];
        Posting {
            key: u32::from_le_bytes(self.keys[block]),
            offset: u32::from_le_bytes([a, b, c, d]),
        }
    }

    fn block_len(&self, block: usize) -> usize {
        (self.len - block * BLOCK).min(BLOCK)
    }

    /// The last block that begins at or before a posting, or block 0.
    pub(super) fn block_of(&self, posting: Posting) -> usize {
        let begins_before = |key: &[u8; KEY]| u32::from_le_bytes(*key) < posting.key;
        let below = self.keys.partition_point(begins_before);
        let mut above = below;
        // Blocks that begin with the key itself are many only in the list of a hot key.
        if self.keys.get(below) == Some(&posting.key.to_le_bytes()) {
            let same = |key: &[u8; KEY]| u32::from_le_bytes(*key) == posting.key;
            let end = below + self.keys[below..].partition_point(same);
            let (mut low, mut high) = (below, end);
            while low < high {
                let middle = low.midpoint(high);
                if self.first_of(middle) <= posting {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            above = low;
        }
        above.saturating_sub(1)
    }

    /// Unpacks a block.
    #[inline]
    pub(super) fn block(&self, block: usize) -> Block {
        let head = self.head(block);
        let len = self.block_len(block);
        let offsets_at = head.end - packed_len(len, head.offset_bits);
        let keys_at = offsets_at - packed_len(len, head.key_bits);
        let mut unpacked = Block {
            keys: [0; BLOCK],
            offsets: [0; BLOCK],
            len,
        };
        unpack(
            &self.bits[keys_at..offsets_at],
            head.key_bits,
            &mut unpacked.keys,
        );
        unpack(
            &self.bits[offsets_at..head.end],
            head.offset_bits,
            &mut unpacked.offsets,
        );
        let mut key = head.first.key;
        for difference in &mut unpacked.keys {
            key = key.wrapping_add(*difference);
            *difference = key;
        }
        if head.key_bits == 0 {
            for offset in &mut unpacked.offsets {
                *offset = offset.wrapping_add(head.first.offset);
            }
        }
        unpacked
    }

    pub(super) fn blocks(&self) -> usize {
        self.keys.len()
    }

    pub fn iter(&self) -> Postings<'a> {
        self.seek(Posting::MIN)
    }

    /// The postings from the first at or above `from` on.
    pub fn seek(&self, from: Posting) -> Postings<'a> {
        let number = self.block_of(from);
        let block = self.block(number);
        let at = block.rank(from);
        Postings {
            leaf: *self,
            number,
            block,
            at,
        }
    }

    /// The number of postings below one.
    pub fn rank(&self, posting: Posting) -> usize {
        let block = self.block_of(posting);
        block * BLOCK + self.block(block).rank(posting)
    }

    /// The last posting.
    pub fn last(&self) -> Posting {
        let block = self.block(self.blocks() - 1);
        block.get(block.len - 1)
    }
}

/// The postings of a block.
pub(super) struct Block {
    pub keys: [u32; BLOCK],
    pub offsets: [u32; BLOCK],
    pub len: usize,
}

impl Block {
    #[inline]
    pub fn get(&self, i: usize) -> Posting {
        Posting {
            key: self.keys[i],
            offset: self.offsets[i],
        }
    }

    /// The number of postings below one.
    #[inline]
    pub fn rank(&self, posting: Posting) -> usize {
        let below = |i: &usize| self.get(*i) < posting;
        (0..self.len).filter(below).count()
    }
}

/// Ascending postings of a leaf.
pub struct Postings<'a> {
    leaf: Leaf<'a>,
    number: usize,
    block: Block,
    at: usize,
}

impl Iterator for Postings<'_> {
    type Item = Posting;

    #[inline]
    fn next(&mut self) -> Option<Posting> {
        if self.at == self.block.len {
            if self.number + 1 >= self.leaf.blocks() {
                return None;
            }
            self.number += 1;
            self.block = self.leaf.block(self.number);
            self.at = 0;
        }
        self.at += 1;
        Some(self.block.get(self.at - 1))
    }
}
