//! Folding runs of text: the code points of a row are looked up at once.

use super::super::fold::{
    ALONE, BLOCK, BLOCK_ROOM, FoldRow, Folded, LETTER, MARK, MOVES, UNCHANGED, VALID,
};
use super::{load, store};
use std::arch::x86_64::{
    __m512i, _mm512_castsi512_si256, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu8_mask,
    _mm512_cvtepu8_epi16, _mm512_extracti64x4_epi64, _mm512_mask_mov_epi8,
    _mm512_mask_permutexvar_epi8, _mm512_maskz_compress_epi8, _mm512_maskz_permutex2var_epi8,
    _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_slli_epi16, _mm512_test_epi8_mask,
    _pdep_u64,
};

type Row<'a> = &'a dyn Fn(usize) -> &'static FoldRow;

/// [`super::super::Kernels::fold_words`].
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt"
)]
pub fn fold_words(text: &[u8], is_after_alone: bool, row: Row<'_>, room: &mut [u8]) -> Folded {
    let mut all = Folded {
        is_alone: is_after_alone,
        ..Folded::default()
    };
    let ascii = [row(0), row(1)];
    while let Some(room) = room[all.written..].first_chunk_mut() {
        let rest = &text[all.done..];
        let (block, end) = match rest.first_chunk() {
            Some(bytes) => (FoldedBlock::new(bytes, ascii, row), BLOCK),
            None => {
                let mut bytes = [0; BLOCK + 2];
                bytes[..rest.len()].copy_from_slice(rest);
                (FoldedBlock::new(&bytes, ascii, row), rest.len())
            }
        };
        let starts = (block.ascii | block.leads) & before(end);
        if block.ascii == u64::MAX || starts == 0 {
            break;
        }
        let words = block.words(all.is_alone, end);
        // The last code point in most blocks, which the next block need not wait for.
        let mut done = starts.ilog2() as usize;
        let is_whole = words.bad & before(done) == 0;
        if !is_whole || words.fixed >> done & 1 == 0 {
            done = last_before(words.fixed, words.bad);
        }
        all.written += write(words.text, before(done), words.gaps, room);
        all.done += done;
        all.is_alone = words.after_alone >> done & 1 == 1;
        if !is_whole || done == 0 || end < BLOCK {
            break;
        }
    }
    all
}

/// A block with the folded forms of its code points in their places.
struct FoldedBlock {
    bytes: __m512i,
    /// The flags of a code point, in the place of its first byte.
    flags: __m512i,
    /// The places of ASCII, of first bytes of more than one, and of more than two.
    ascii: u64,
    leads: u64,
    long: u64,
}

impl FoldedBlock {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi1")]
    fn new(text: &[u8; BLOCK + 2], [low, high]: [&FoldRow; 2], row: Row<'_>) -> Self {
        let shifted = |by: usize| load::<[u8; 64]>(text[by..].first_chunk().expect("64 bytes"));
        let (bytes, next, third) = (shifted(0), shifted(1), shifted(2));
        let at_least = |bytes, byte: u8| _mm512_cmpge_epu8_mask(bytes, all(byte));
        let equal = |bytes, byte: u8| _mm512_cmpeq_epi8_mask(bytes, all(byte));
        let (ascii, leads) = (!at_least(bytes, 0x80), at_least(bytes, 0xC0));
        let long = at_least(bytes, 0xE0);
        let of_ascii =
            |low, high| _mm512_maskz_permutex2var_epi8(ascii, load(low), bytes, load(high));
        let mut block = Self {
            bytes: of_ascii(&low.bytes[0], &high.bytes[0]),
            flags: of_ascii(&low.flags, &high.flags),
            ascii,
            leads,
            long,
        };
        let mut rest = leads & !long;
        while rest != 0 {
            let first = text[rest.trailing_zeros() as usize];
            let (places, row) = (equal(bytes, first), row(usize::from(first & 0x1F)));
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
            let row = row(usize::from(first & 0xF) << 6 | usize::from(second & 0x3F));
            block.put(places, third, row, &[third, next, bytes]);
            rest &= !places;
        }
        block
    }

    /// Puts code points of a row into their places. The last bytes are `last` in the places of the first, and
    /// `lasts` in those of each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn put(&mut self, places: u64, last: __m512i, row: &FoldRow, lasts: &[__m512i]) {
        self.flags = _mm512_mask_permutexvar_epi8(self.flags, places, last, load(&row.flags));
        for (i, (index, bytes)) in lasts.iter().zip(&row.bytes).enumerate() {
            self.bytes = _mm512_mask_permutexvar_epi8(self.bytes, places << i, *index, load(bytes));
        }
    }

    /// Returns the places of all bytes of the code points that begin at `first`.
    #[inline]
    fn whole(&self, first: u64) -> u64 {
        first | (first & self.leads) << 1 | (first & self.long) << 2
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn words(&self, is_after_alone: bool, end: usize) -> BlockWords {
        let with = |flag: u8| _mm512_test_epi8_mask(self.flags, all(flag));
        let [valid, alone, letters, marks, moving] = [VALID, ALONE, LETTER, MARK, MOVES].map(with);
        let in_words = self.whole(alone | letters | marks);
        let bad = !valid | marks & !(in_words << 1) | moving & self.whole(moving) << 1;
        let [whole_alone, whole_marks] = [alone, marks].map(|first| self.whole(first));
        // Of the marks in a row behind it, the sum clears all.
        let sum = whole_marks.wrapping_add(whole_alone << 1 & whole_marks);
        let after_alone = (whole_alone | whole_marks & !sum) << 1 | u64::from(is_after_alone);
        BlockWords {
            text: _mm512_mask_mov_epi8(all(b' '), in_words, self.bytes),
            gaps: alone | letters & after_alone,
            bad: bad & (self.ascii | self.leads) | !before(end),
            fixed: valid & !marks,
            after_alone,
        }
    }
}

/// The words of a block.
struct BlockWords {
    /// Its bytes, with spaces for all that is in no word.
    text: __m512i,
    /// The places before which a space is missing.
    gaps: u64,
    /// Code points that no run can contain where they are.
    bad: u64,
    /// Code points before which nothing behind them changes anything.
    fixed: u64,
    /// Places behind a word of one character, and of marks.
    after_alone: u64,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn all(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte as i8)
}

/// Returns a bit for each place before one, at most 64.
#[inline]
fn before(place: usize) -> u64 {
    1u64.checked_shl(place as u32).unwrap_or(0).wrapping_sub(1)
}

/// Returns the last place before all the bad ones; 0 where there is none.
#[cold]
fn last_before(fixed: u64, bad: u64) -> usize {
    let places = fixed & !bad & bad.wrapping_sub(1);
    places.checked_ilog2().unwrap_or(0) as usize
}

/// Writes the bytes kept, with a space at each gap. Returns their number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
fn write(bytes: __m512i, kept: u64, gaps: u64, room: &mut [u8; BLOCK_ROOM]) -> usize {
    let mut written = 0;
    let mut put = |bytes, count: u32| {
        let room = room[written..].first_chunk_mut::<64>();
        store(room.expect("at most a space a byte"), bytes);
        written += count as usize;
    };
    if gaps == 0 {
        put(bytes, kept.count_ones());
        return written;
    }
    let halves = [
        _mm512_castsi512_si256(bytes),
        _mm512_extracti64x4_epi64::<1>(bytes),
    ];
    for (i, half) in halves.into_iter().enumerate() {
        let behind_spaces = _mm512_slli_epi16::<8>(_mm512_cvtepu8_epi16(half));
        let pairs = _mm512_or_si512(behind_spaces, _mm512_set1_epi16(i16::from(b' ')));
        let spread = |bits: u64, to| _pdep_u64(bits >> (32 * i), to);
        let chosen =
            spread(gaps & kept, 0x5555_5555_5555_5555) | spread(kept, 0xAAAA_AAAA_AAAA_AAAA);
        put(
            _mm512_maskz_compress_epi8(chosen, pairs),
            chosen.count_ones(),
        );
    }
    written
}
