//! Leaf pages: sorted postings in blocks of 64.
//!
//! Payload, little-endian: `postings u16 | bytes used u16 | first key of each block u32... | for each block: first
//! offset u32, end of its bits u16, bits of a key u8, bits of an offset u8 | bits...`. Every block but the last holds
//! 64 postings. Its bits are the differences of each key from the one before (0 for the first), then the offsets; each
//! half begins at a byte. If all keys of a block are equal (0 bits per key), its offsets are stored as differences from
//! its first.

use super::bits::{BLOCK, number_in, pack, packed_len, width};
use super::{Damaged, Posting};
use crate::bisect;
use crate::memory::with_room;
use std::ops::Range;

const HEADER: usize = 4;

/// Number of bytes of a block's head: its first key, and the rest.
const HEAD: usize = KEY + REST;
const KEY: usize = 4;
const REST: usize = 8;

/// Packs ascending postings into the payload of a page.
pub struct LeafBuilder {
    capacity: usize,
    keys: Vec<u8>,
    rests: Vec<u8>,
    bits: Vec<u8>,
    /// The postings of the block that is being filled.
    pending: Vec<Posting>,
    widths: Widths,
    len: usize,
    first: Option<Posting>,
}

/// The numbers of a block or-ed together, which determine its widths.
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

    /// Returns the numbers of bits of a key difference and of an offset.
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
    /// Returns a builder of payloads of at most `capacity` bytes, which is 24 to 65535.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(capacity: usize) -> crate::Result<Self> {
        assert!((24..=usize::from(u16::MAX)).contains(&capacity));
        Ok(Self {
            capacity,
            keys: with_room(capacity / HEAD * KEY)?,
            rests: with_room(capacity / HEAD * REST)?,
            bits: with_room(capacity)?,
            pending: with_room(BLOCK)?,
            widths: Widths::default(),
            len: 0,
            first: None,
        })
    }

    /// Adds `posting`, which must be above all earlier ones. Returns false if the page has no room for it.
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
        // Counted from the end of the heads, because their number is not known yet.
        self.rests
            .extend_from_slice(&(self.bits.len() as u16).to_le_bytes());
        self.rests
            .extend_from_slice(&[key_bits as u8, offset_bits as u8]);
        self.pending.clear();
        self.widths = Widths::default();
    }

    /// Writes the payload to the front of `page`, which must have room for the capacity. Returns its length, and
    /// empties the builder.
    pub fn finish(&mut self, page: &mut [u8]) -> usize {
        self.finish_block();
        let used = HEADER + self.keys.len() + self.rests.len() + self.bits.len();
        let mut end = 0;
        let mut put = |bytes: &[u8]| {
            page[end..end + bytes.len()].copy_from_slice(bytes);
            end += bytes.len();
        };
        put(&(self.len as u16).to_le_bytes());
        put(&(used as u16).to_le_bytes());
        for part in [&mut self.keys, &mut self.rests, &mut self.bits] {
            put(part);
            part.clear();
        }
        self.len = 0;
        self.first = None;
        end
    }

    /// Returns the first posting added, or None if the builder is empty.
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

/// The postings of a leaf page, at least one.
///
/// Reads only the parts that a lookup needs: a block is checked when it is unpacked.
#[derive(Clone, Copy)]
pub struct Leaf<'a> {
    keys: &'a [[u8; KEY]],
    rests: &'a [[u8; REST]],
    bits: &'a [u8],
    len: usize,
}

impl<'a> Leaf<'a> {
    /// Reads the head of the leaf in `payload`.
    ///
    /// # Errors
    /// `Damaged` if the payload has no postings or is too short for them.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Result<Self, Damaged> {
        const SHORT: Damaged = Damaged("leaf page shorter than its postings");
        let (&[l0, l1, u0, u1], _) = payload.split_first_chunk::<HEADER>().ok_or(SHORT)?;
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        let used = usize::from(u16::from_le_bytes([u0, u1]));
        let blocks = len.div_ceil(BLOCK);
        let heads = payload.get(HEADER..used).ok_or(SHORT)?;
        let (keys, heads) = heads.split_at_checked(blocks * KEY).ok_or(SHORT)?;
        let (rests, bits) = heads.split_at_checked(blocks * REST).ok_or(SHORT)?;
        if len == 0 {
            return Err(Damaged("leaf page without postings"));
        }
        Ok(Self {
            keys: keys.as_chunks().0,
            rests: rests.as_chunks().0,
            bits,
            len,
        })
    }

    /// Returns the number of bytes of the payload that are used.
    pub fn used(&self) -> usize {
        HEADER + self.keys.len() * HEAD + self.bits.len()
    }

    /// Returns the number of postings.
    #[expect(clippy::len_without_is_empty, reason = "a leaf has at least one posting")]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn first(&self) -> Posting {
        self.first_of(0)
    }

    /// Returns the last posting.
    ///
    /// # Errors
    /// `Damaged` if its block is damaged.
    pub fn last(&self) -> Result<Posting, Damaged> {
        let block = self.block(self.keys.len() - 1)?;
        Ok(block.numbers[block.len - 1].into())
    }

    /// Returns the number of blocks.
    #[inline]
    pub(super) fn blocks(&self) -> usize {
        self.keys.len()
    }

    /// Returns the first posting of `block`.
    #[inline]
    pub(super) fn first_of(&self, block: usize) -> Posting {
        let [a, b, c, d, ..] = self.rests[block];
        Posting {
            key: u32::from_le_bytes(self.keys[block]),
            offset: u32::from_le_bytes([a, b, c, d]),
        }
    }

    /// Returns the last block that begins at or before `posting`, or 0.
    pub(super) fn block_of(&self, posting: Posting) -> usize {
        // Compares the first keys of all blocks with `posting`, many at a time. They are in two cache lines, which are
        // fetched together.
        let begins_below = |key: &&[u8; KEY]| u32::from_le_bytes(**key) < posting.key;
        let mut blocks = self.keys.iter().filter(begins_below).count();
        // Only in the list of a hot key does more than one block begin with the key.
        if self.keys.get(blocks) == Some(&posting.key.to_le_bytes()) {
            let same = |key: &[u8; KEY]| u32::from_le_bytes(*key) == posting.key;
            let end = blocks + self.keys[blocks..].partition_point(same);
            let begins_after = |block| self.first_of(block as usize) > posting;
            blocks = bisect::first(blocks as u64..end as u64, begins_after) as usize;
        }
        blocks.saturating_sub(1)
    }

    /// Returns the last block after `from` that begins at or before `posting`, or `from` if there is none.
    #[inline]
    pub(super) fn block_from(&self, mut from: usize, posting: Posting) -> usize {
        while let Some(key) = self.keys.get(from + 1)
            && u32::from_le_bytes(*key) <= posting.key
            && self.first_of(from + 1) <= posting
        {
            from += 1;
        }
        from
    }

    /// Reads one byte of each cache line of the blocks that the ascending `postings` are in, so that the processor
    /// waits for all of them at once.
    pub(super) fn fetch(&self, postings: impl Iterator<Item = Posting>) {
        const CACHE_LINE: usize = 64;
        let (mut number, mut fetched, mut looked_at) = (0, 0, 0);
        for posting in postings {
            number = self.block_from(number, posting);
            if number >= fetched {
                fetched = number + 1;
                let bits = self.bits.get(self.range_of(number)).unwrap_or_default();
                let lines = bits.iter().step_by(CACHE_LINE);
                looked_at ^= lines.fold(0, |ored, byte| ored ^ byte);
            }
        }
        std::hint::black_box(looked_at);
    }

    /// Returns the range of the bits of `block`.
    #[inline]
    fn range_of(&self, block: usize) -> Range<usize> {
        let end_of = |block: usize| {
            let [.., low, high, _, _] = self.rests[block];
            usize::from(u16::from_le_bytes([low, high]))
        };
        block.checked_sub(1).map_or(0, end_of)..end_of(block)
    }

    /// Returns block `number` as it is stored.
    ///
    /// # Errors
    /// `Damaged` if its head is impossible.
    #[inline]
    pub(super) fn stored(&self, number: usize) -> Result<StoredBlock<'a>, Damaged> {
        let [.., key_bits, offset_bits] = self.rests[number];
        let (key_bits, offset_bits) = (u32::from(key_bits), u32::from(offset_bits));
        let len = (self.len - number * BLOCK).min(BLOCK);
        let range = self.range_of(number);
        let bits = self.bits.get(range.clone()).ok_or(DAMAGED)?;
        let keys_len = packed_len(len, key_bits);
        let expected_len = keys_len + packed_len(len, offset_bits);
        if key_bits > 32 || offset_bits > 32 || bits.len() != expected_len {
            return Err(DAMAGED);
        }
        let first = self.first_of(number);
        Ok(StoredBlock {
            first,
            len,
            offsets_at: keys_len as u32 * u8::BITS,
            rest: &self.bits[range.start..],
            key_bits,
            offset_bits,
            bias: if key_bits == 0 { first.offset } else { 0 },
        })
    }

    /// Unpacks block `number`.
    ///
    /// # Errors
    /// `Damaged` if its head or its last key is impossible.
    #[inline]
    pub(super) fn block(&self, number: usize) -> Result<Block, Damaged> {
        let stored = self.stored(number)?;
        let mut key = u64::from(stored.first.key);
        let mut numbers = [0; BLOCK];
        for (place, number) in numbers[..stored.len].iter_mut().enumerate() {
            key += u64::from(stored.difference(place));
            *number = key << 32 | u64::from(stored.offset(place));
        }
        let begins_as_said = numbers[0] == u64::from(stored.first);
        if key > u64::from(u32::MAX) || !begins_as_said {
            return Err(DAMAGED);
        }
        Ok(Block {
            numbers,
            len: stored.len,
        })
    }

    /// Calls `visit` with the postings from `first` to `last`, as numbers, once per block, until `visit` returns false.
    ///
    /// # Errors
    /// The errors of `visit`; `Damaged` if a block is damaged.
    #[inline]
    pub fn visit(
        &self,
        first: Posting,
        last: Posting,
        visit: &mut impl FnMut(&[u64]) -> Result<bool, Damaged>,
    ) -> Result<(), Damaged> {
        let (first_number, last_number) = (u64::from(first), u64::from(last));
        for number in self.block_of(first)..self.keys.len() {
            let block = self.block(number)?;
            let numbers = block.numbers();
            let start = numbers.partition_point(|number| *number < first_number);
            let end = numbers.partition_point(|number| *number <= last_number);
            let wanted = numbers.get(start..end).unwrap_or_default();
            if !(wanted.is_empty() || visit(wanted)?) || end < block.len {
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of postings below `posting`.
    ///
    /// # Errors
    /// `Damaged` if the block that `posting` would be in is damaged.
    pub fn rank(&self, posting: Posting) -> Result<usize, Damaged> {
        let number = self.block_of(posting);
        let block = self.block(number)?;
        let below = |number: &u64| *number < u64::from(posting);
        Ok(number * BLOCK + block.numbers().partition_point(below))
    }
}

pub(super) const DAMAGED: Damaged = Damaged("impossible block of a leaf page");

/// A block of a leaf page, packed.
pub(super) struct StoredBlock<'a> {
    pub first: Posting,
    pub len: usize,
    /// The block's key differences and offsets, followed by the bits of all later blocks.
    rest: &'a [u8],
    /// The bit at which the offsets begin.
    offsets_at: u32,
    key_bits: u32,
    offset_bits: u32,
    /// Added to every offset.
    bias: u32,
}

impl StoredBlock<'_> {
    /// Returns the difference between the key at `place` and the key before it.
    #[inline]
    pub fn difference(&self, place: usize) -> u32 {
        number_in(self.rest, place as u32 * self.key_bits, self.key_bits)
    }

    /// Returns the first place whose key is at least `wanted`, and that key. Searches from `place`, where the key is
    /// `key`. If there is none, returns the block's length and the last key.
    #[inline]
    pub fn seek(&self, mut place: usize, mut key: u64, wanted: u64) -> (usize, u64) {
        let (bits, width, len) = (self.rest, self.key_bits, self.len);
        while key < wanted && place < len {
            place += 1;
            if place < len {
                key += u64::from(number_in(bits, place as u32 * width, width));
            }
        }
        (place, key)
    }

    /// Returns the offset at `place`.
    #[inline]
    pub fn offset(&self, place: usize) -> u32 {
        let at = self.offsets_at + place as u32 * self.offset_bits;
        let offset = number_in(self.rest, at, self.offset_bits);
        offset.wrapping_add(self.bias)
    }
}

/// The postings of a block as numbers.
pub(super) struct Block {
    numbers: [u64; BLOCK],
    len: usize,
}

impl Block {
    #[inline]
    pub fn numbers(&self) -> &[u64] {
        &self.numbers[..self.len]
    }
}
