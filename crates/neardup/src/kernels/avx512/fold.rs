//! Folds runs of text. The code points of one row are looked up at once.

use super::super::first_bytes;
use super::super::fold::{
    ALONE, BLOCK, BLOCK_ROOM, DROPPED, FoldRow, FoldRows, Folded, LETTER, MARK, MOVES, ONE_BYTE,
    SPACE, UNCHANGED, VALID,
};
use bytemuck::cast;
use std::arch::x86_64::*;

/// Implements [`super::super::Kernels::fold_words`].
#[target_feature(enable = "avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub fn fold_words(
    text: &[u8],
    is_after_alone: bool,
    rows: &'static FoldRows,
    room: &mut [u8],
) -> Folded {
    let items = |block: &FoldedBlock, state| block.words(state);
    let write = |items: &BlockItems, kept, room: &mut _| write_words(items, kept, room);
    let ascii = |block: &FoldedBlock, state, room: &mut _| block.write_ascii_words(state, room);
    fold(text, is_after_alone, rows, room, items, write, ascii)
}

/// Implements [`super::super::Kernels::fold_chars`].
#[target_feature(enable = "avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub fn fold_chars(
    text: &[u8],
    is_after_space: bool,
    rows: &'static FoldRows,
    room: &mut [u32],
) -> Folded {
    let items = |block: &FoldedBlock, state| block.chars(state);
    let write = |items: &BlockItems, kept, room: &mut _| write_chars(items, kept, room);
    let ascii = |block: &FoldedBlock, state, room: &mut _| block.write_ascii_chars(state, room);
    fold(text, is_after_space, rows, room, items, write, ascii)
}

/// Folds blocks. `items` finds the items of a block, `write` writes them, and `write_ascii` writes a block of ASCII
/// except its last character.
#[inline]
#[target_feature(enable = "avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn fold<T>(
    text: &[u8],
    is_after: bool,
    rows: &'static FoldRows,
    room: &mut [T],
    items: impl Fn(&FoldedBlock, bool) -> BlockItems,
    write: impl Fn(&BlockItems, u64, &mut [T; BLOCK_ROOM]) -> usize,
    write_ascii: impl Fn(&FoldedBlock, bool, &mut [T; BLOCK_ROOM]) -> (usize, bool),
) -> Folded {
    let mut all = Folded {
        is_after,
        ..Folded::default()
    };
    let ascii = [rows.row(0), rows.row(1)];
    while let Some(room) = room[all.written..].first_chunk_mut() {
        let rest = &text[all.done..];
        let (block, end) = match rest.first_chunk() {
            Some(bytes) if is_ascii(bytes) => {
                let block = FoldedBlock::of_ascii(bytes, ascii);
                let (written, is_after) = write_ascii(&block, all.is_after, room);
                all.written += written;
                all.done += BLOCK - 1;
                all.is_after = is_after;
                continue;
            }
            Some(bytes) => (FoldedBlock::new(bytes, ascii, rows), BLOCK),
            None => {
                let bytes = first_bytes(rest);
                (FoldedBlock::new(&bytes, ascii, rows), rest.len())
            }
        };
        let starts = (block.ascii | block.leads) & before(end);
        if starts == 0 {
            break;
        }
        let items = items(&block, all.is_after);
        let bad = items.bad | !before(end);
        // Usually the last code point of the block ends it; the next block need not wait for a search.
        let mut done = starts.ilog2() as usize;
        let is_whole = bad & before(done) == 0;
        if !is_whole || items.fixed >> done & 1 == 0 {
            done = last_before(items.fixed, bad);
        }
        all.written += write(&items, before(done) & !items.dropped, room);
        all.done += done;
        all.is_after = items.after >> done & 1 == 1;
        if !is_whole || done == 0 || end < BLOCK {
            break;
        }
    }
    all
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn is_ascii(text: &[u8; BLOCK + 2]) -> bool {
    _mm512_movepi8_mask(load(text, 0)) == 0
}

/// Returns the bytes of the block that begins at `start`.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(text: &[u8; BLOCK + 2], start: usize) -> __m512i {
    cast(*text[start..].first_chunk::<BLOCK>().expect("64 bytes"))
}

/// A block with the folded forms of its code points at their places.
struct FoldedBlock {
    bytes: __m512i,
    /// The flags of a code point, at the place of its first byte.
    flags: __m512i,
    /// The places of ASCII, of the first bytes of code points of two or more bytes, and of the first bytes of code
    /// points of three or more bytes.
    ascii: u64,
    leads: u64,
    long: u64,
}

impl FoldedBlock {
    /// Returns a block with only the folded forms of its ASCII.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn of_ascii(text: &[u8; BLOCK + 2], [low, high]: [&FoldRow; 2]) -> Self {
        let bytes = load(text, 0);
        let at_least = |byte: u8| _mm512_cmpge_epu8_mask(bytes, all(byte));
        let ascii = !at_least(0x80);
        let of_ascii = |low: &[u8; 64], high: &[u8; 64]| {
            _mm512_maskz_permutex2var_epi8(ascii, cast(*low), bytes, cast(*high))
        };
        Self {
            bytes: of_ascii(&low.bytes[0], &high.bytes[0]),
            flags: of_ascii(&low.flags, &high.flags),
            ascii,
            leads: at_least(0xC0),
            long: at_least(0xE0),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi1")]
    fn new(text: &[u8; BLOCK + 2], ascii: [&FoldRow; 2], rows: &'static FoldRows) -> Self {
        let (bytes, next, third) = (load(text, 0), load(text, 1), load(text, 2));
        let at_least = |bytes, byte: u8| _mm512_cmpge_epu8_mask(bytes, all(byte));
        let equal = |bytes, byte: u8| _mm512_cmpeq_epi8_mask(bytes, all(byte));
        let mut block = Self::of_ascii(text, ascii);
        let (leads, long) = (block.leads, block.long);
        let mut rest = leads & !long;
        while rest != 0 {
            let first = text[rest.trailing_zeros() as usize];
            let (places, row) = (equal(bytes, first), rows.row(usize::from(first & 0x1F)));
            block.put(places, next, row, &[next, bytes]);
            rest &= !places;
        }
        if long == 0 {
            return block;
        }
        rest = long & !at_least(bytes, 0xF0);
        let from = |[first, second]: [u8; 2]| {
            at_least(bytes, first + 1) | equal(bytes, first) & at_least(next, second)
        };
        for (first, [end, last], flags) in UNCHANGED {
            let places = rest & from(first) & !from([end, last + 1]);
            block.bytes = _mm512_mask_mov_epi8(block.bytes, block.whole(places), bytes);
            block.flags = _mm512_mask_mov_epi8(block.flags, places, all(flags));
            rest &= !places;
        }
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            let [first, second] = [text[at], text[at + 1]];
            let places = equal(bytes, first) & equal(next, second);
            let row = rows.row(usize::from(first & 0xF) << 6 | usize::from(second & 0x3F));
            block.put(places, third, row, &[third, next, bytes]);
            rest &= !places;
        }
        block
    }

    /// Puts code points of `row` at `places`. Their last bytes are in `last` at the places of their first bytes, and in
    /// `lasts` at the places of each of their bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn put(&mut self, places: u64, last: __m512i, row: &FoldRow, lasts: &[__m512i]) {
        self.flags = _mm512_mask_permutexvar_epi8(self.flags, places, last, cast(row.flags));
        for (i, (index, bytes)) in lasts.iter().zip(&row.bytes).enumerate() {
            self.bytes =
                _mm512_mask_permutexvar_epi8(self.bytes, places << i, *index, cast(*bytes));
        }
    }

    /// Returns the places of all bytes of the code points that begin at `first`.
    #[inline]
    fn whole(&self, first: u64) -> u64 {
        first | (first & self.leads) << 1 | (first & self.long) << 2
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn with(&self, flag: u8) -> u64 {
        _mm512_test_epi8_mask(self.flags, all(flag))
    }

    /// Writes the words of a block of ASCII except its last character, so that nothing after it can change what is
    /// written. Returns the number of bytes written, and false: the text does not end with a word of one character.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn write_ascii_words(
        &self,
        is_after_alone: bool,
        room: &mut [u8; BLOCK_ROOM],
    ) -> (usize, bool) {
        let letters = self.with(LETTER);
        let gap = usize::from(is_after_alone) & letters as usize & 1;
        room[0] = b' ';
        let text = _mm512_mask_mov_epi8(all(b' '), letters, self.bytes);
        room[gap..][..64].copy_from_slice(&cast::<_, [u8; 64]>(text));
        (BLOCK - 1 + gap, false)
    }

    /// Writes the characters of a block of ASCII except its last one. Returns their number, and whether the last of
    /// them is white space.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn write_ascii_chars(
        &self,
        is_after_space: bool,
        room: &mut [u32; BLOCK_ROOM],
    ) -> (usize, bool) {
        let spaces = self.with(SPACE);
        let kept = !(spaces & (spaces << 1 | u64::from(is_after_space)));
        let text: [[u8; 16]; 4] = cast(_mm512_maskz_compress_epi8(kept, self.bytes));
        for (bytes, room) in text.iter().zip(room.as_chunks_mut::<16>().0) {
            *room = cast(_mm512_cvtepu8_epi32(cast(*bytes)));
        }
        let count = (kept & before(BLOCK - 1)).count_ones() as usize;
        (count, spaces >> (BLOCK - 2) & 1 == 1)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn words(&self, is_after_alone: bool) -> BlockItems {
        let [alone, letters, marks] = [ALONE, LETTER, MARK].map(|flag| self.with(flag));
        let in_words = self.whole(alone | letters | marks);
        let after = self.after(alone, MARK | DROPPED, is_after_alone);
        let text = _mm512_mask_mov_epi8(all(b' '), in_words, self.bytes);
        self.items(text, alone | letters & after, after)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn chars(&self, is_after_space: bool) -> BlockItems {
        let spaces = self.with(SPACE);
        let after = self.after(spaces, DROPPED, is_after_space);
        let items = self.items(self.bytes, 0, after);
        BlockItems {
            dropped: items.dropped | spaces & after,
            ..items
        }
    }

    /// Returns the places after the code points at `first`, and after the code points with a flag of `following`
    /// that come directly after them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn after(&self, first: u64, following: u8, is_after: bool) -> u64 {
        let [whole, following] = [first, self.with(following)].map(|first| self.whole(first));
        // The sum clears those of `following` that come directly after a code point at `first`.
        let sum = following.wrapping_add((whole << 1 | u64::from(is_after)) & following);
        (whole | following & !sum) << 1 | u64::from(is_after)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn items(&self, text: __m512i, gaps: u64, after: u64) -> BlockItems {
        let [valid, marks, moving, short, dropped] =
            [VALID, MARK, MOVES, ONE_BYTE, DROPPED].map(|flag| self.with(flag));
        let in_words = self.whole(self.with(ALONE | LETTER | MARK));
        let bad = !valid | marks & !(in_words << 1) | moving & self.whole(moving) << 1;
        BlockItems {
            text,
            gaps,
            dropped: self.whole(short | dropped) & !short,
            bad: bad & (self.ascii | self.leads),
            fixed: valid & !(marks | dropped),
            after,
        }
    }
}

/// The words or the characters of a block.
struct BlockItems {
    text: __m512i,
    /// The places before which a space is missing.
    gaps: u64,
    /// The places of bytes that the folded text does not contain.
    dropped: u64,
    /// The places of code points that no run can contain there.
    bad: u64,
    /// The places of code points before which no later code point changes anything.
    fixed: u64,
    /// For words, the places after a word of one character and its marks; for characters, the places after white space.
    after: u64,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn all(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte as i8)
}

/// Returns a bit for each place below `place`, which is at most 64.
#[inline]
fn before(place: usize) -> u64 {
    1u64.checked_shl(place as u32).unwrap_or(0).wrapping_sub(1)
}

/// Returns the last fixed place before all bad ones, or 0.
#[cold]
fn last_before(fixed: u64, bad: u64) -> usize {
    let places = fixed & !bad & bad.wrapping_sub(1);
    places.checked_ilog2().unwrap_or(0) as usize
}

/// Writes the `kept` bytes, and the missing spaces before them, to `room`. Returns the number of bytes written.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
fn write_words(items: &BlockItems, kept: u64, room: &mut [u8; BLOCK_ROOM]) -> usize {
    let mut written = 0;
    let mut put = |bytes, count: u32| {
        room[written..][..64].copy_from_slice(&cast::<_, [u8; 64]>(bytes));
        written += count as usize;
    };
    if items.gaps | items.dropped == 0 {
        put(items.text, kept.count_ones());
        return written;
    }
    let halves = [
        _mm512_castsi512_si256(items.text),
        _mm512_extracti64x4_epi64::<1>(items.text),
    ];
    for (i, half) in halves.into_iter().enumerate() {
        let behind_spaces = _mm512_slli_epi16::<8>(_mm512_cvtepu8_epi16(half));
        let pairs = _mm512_or_si512(behind_spaces, _mm512_set1_epi16(i16::from(b' ')));
        let spread = |bits: u64, to| _pdep_u64(bits >> (32 * i), to);
        let chosen =
            spread(items.gaps & kept, 0x5555_5555_5555_5555) | spread(kept, 0xAAAA_AAAA_AAAA_AAAA);
        put(
            _mm512_maskz_compress_epi8(chosen, pairs),
            chosen.count_ones(),
        );
    }
    written
}

/// Writes the `kept` code points to `room`. Returns their number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn write_chars(items: &BlockItems, kept: u64, room: &mut [u32; BLOCK_ROOM]) -> usize {
    let mut text = [0; BLOCK + 16];
    text[..BLOCK].copy_from_slice(&cast::<_, [u8; BLOCK]>(items.text));
    let at_least = |byte: u8| _mm512_cmpge_epu8_mask(items.text, all(byte));
    // Looks at the folded text, because a letter may become several ASCII characters.
    let continues = at_least(0x80) & !at_least(0xC0);
    let (starts, continuing) = (kept & !continues, kept & continues);
    let two_or_more = starts & continuing >> 1;
    let three = two_or_more & continuing >> 2;
    let mut written = 0;
    for quarter in (0..BLOCK).step_by(16) {
        let in_quarter = |places: u64| (places >> quarter) as u16;
        let bits = |place: usize, bits| {
            let bytes: &[u8; 16] = text[quarter + place..].first_chunk().expect("16 bytes");
            let bytes = _mm512_cvtepu8_epi32(cast(*bytes));
            _mm512_and_si512(bytes, _mm512_set1_epi32(bits))
        };
        let mut codes = bits(0, 0xFF);
        if two_or_more != 0 {
            let upper = _mm512_slli_epi32::<6>(bits(0, 0x1F));
            codes = _mm512_mask_or_epi32(codes, in_quarter(two_or_more), upper, bits(1, 0x3F));
        }
        if three != 0 {
            let upper = _mm512_and_si512(_mm512_slli_epi32::<6>(codes), _mm512_set1_epi32(0xFFFF));
            codes = _mm512_mask_or_epi32(codes, in_quarter(three), upper, bits(2, 0x3F));
        }
        let kept = _mm512_maskz_compress_epi32(in_quarter(starts), codes);
        room[written..][..16].copy_from_slice(&cast::<_, [u32; 16]>(kept));
        written += in_quarter(starts).count_ones() as usize;
    }
    written
}
