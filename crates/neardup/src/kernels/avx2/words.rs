//! Words of an ASCII text: found 64 bytes at a time, hashed four at a time.

use super::siphash::{LONGEST, State};
use super::{load, load_half, store, store_half};
use crate::shingle::Key;
use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi16, _mm_and_si128, _mm_cvtepu8_epi16, _mm_cvtsi64_si128,
    _mm_set1_epi16, _mm_set1_epi32, _mm_srli_epi32, _mm_sub_epi32, _mm256_and_si256,
    _mm256_castsi256_pd, _mm256_cmpeq_epi8, _mm256_cmpgt_epi64, _mm256_cvtepu32_epi64,
    _mm256_min_epu8, _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_or_si256, _mm256_set_m128i,
    _mm256_set1_epi8, _mm256_set1_epi64x, _mm256_sub_epi8, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64,
};

/// Bytes that are handled at once. A document of 1.6 kB takes two pieces; the scratch space, which
/// is cleared on every call, stays small.
const PIECE: usize = 1024;

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn ascii_word_hashes(mut text: &[u8], lower: bool, key: &Key, out: &mut Vec<u64>) {
    let mut piece = Piece::new();
    while !text.is_empty() {
        let part = &text[..PIECE.min(text.len())];
        piece.find_words(part, lower);
        let mut done = part.len();
        if part.len() < text.len()
            && let Some(start) = piece.take_cut_word(part.len())
        {
            done = start;
        }
        piece.hash_words(key, out);
        if done == 0 {
            done = hash_long_word(text, lower, key, out);
        }
        text = &text[done..];
    }
}

/// Hashes the word with which `text` begins, and returns its length.
#[cold]
fn hash_long_word(text: &[u8], lower: bool, key: &Key, out: &mut Vec<u64>) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let word = &text[..end.unwrap_or(text.len())];
    out.push(if lower {
        key.token_hash(&word.to_ascii_lowercase())
    } else {
        key.token_hash(word)
    });
    word.len()
}

/// Part of a text and the limits of its words.
struct Piece {
    /// The text, in lower case if asked for; behind it room for a last block and for the loads of
    /// the last words.
    text: [u8; PIECE + 64],
    /// Where words start and end, alternating; behind them room for whole stores.
    edges: [u16; PIECE + 80],
    edge_count: usize,
}

impl Piece {
    fn new() -> Self {
        Self {
            text: [0; PIECE + 64],
            edges: [0; PIECE + 80],
            edge_count: 0,
        }
    }

    /// Finds the words of `text`, the last of which ends at its end if not before.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn find_words(&mut self, text: &[u8], lower: bool) {
        let case_bit = _mm256_set1_epi8(if lower { 0x20 } else { 0 });
        let (blocks, rest) = text.as_chunks::<64>();
        // Ends the last word, too.
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        let mut is_in_word = 0;
        self.edge_count = 0;
        for (i, block) in blocks.iter().chain([&last]).enumerate() {
            let (halves, _) = block.as_chunks::<32>();
            let low = self.copy(i * 64, &halves[0], case_bit);
            let high = self.copy(i * 64 + 32, &halves[1], case_bit);
            let is_word = u64::from(low) | u64::from(high) << 32;
            self.push_edges(i * 64, is_word ^ (is_word << 1 | is_in_word));
            is_in_word = is_word >> 63;
        }
    }

    /// Copies 32 bytes, adding `case_bit` to letters, and says which belong to words.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn copy(&mut self, at: usize, bytes: &[u8; 32], case_bit: __m256i) -> u32 {
        let bytes = load(bytes);
        let lowered = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        let is_letter = is_within(lowered, b'a', 26);
        let is_digit = is_within(bytes, b'0', 10);
        let cased = _mm256_or_si256(bytes, _mm256_and_si256(is_letter, case_bit));
        let room: &mut [u8; 32] = self.text[at..].first_chunk_mut().expect("within the piece");
        store(room, cased);
        _mm256_movemask_epi8(_mm256_or_si256(is_letter, is_digit)) as u32
    }

    /// Appends the positions of the set bits: those of 8 bits at a time are looked up.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn push_edges(&mut self, at: usize, edges: u64) {
        let room = self.edges[self.edge_count..].first_chunk_mut::<72>();
        let room = room.expect("at most an edge a byte");
        let mut first = _mm_set1_epi16(at as i16);
        for (i, byte) in edges.to_le_bytes().into_iter().enumerate() {
            let bits = u64::from_le_bytes(POSITIONS[usize::from(byte)]);
            let bits = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(bits as i64));
            // Counted from the first byte, so that no byte waits for the one before.
            let before = edges & ((1 << (8 * i)) - 1);
            let room = room[before.count_ones() as usize..].first_chunk_mut();
            store_half(room.expect("within 64"), _mm_add_epi16(bits, first));
            first = _mm_add_epi16(first, _mm_set1_epi16(8));
        }
        self.edge_count += edges.count_ones() as usize;
    }

    /// Takes back the last word if it touches the end of the piece of `len` bytes, where it may be
    /// cut off, and returns its start.
    fn take_cut_word(&mut self, len: usize) -> Option<usize> {
        match self.edges[..self.edge_count] {
            [.., start, end] if usize::from(end) == len => {
                self.edge_count -= 2;
                Some(usize::from(start))
            }
            _ => None,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn hash_words(&mut self, key: &Key, out: &mut Vec<u64>) {
        let words = self.edge_count / 2;
        // Empty words fill the last group.
        self.edges[self.edge_count..][..8].fill(0);
        let begin = out.len();
        out.resize(begin + words.next_multiple_of(4), 0);
        let state = State::new(key);
        let (groups, _) = self.edges.as_chunks::<8>();
        let (hashes, _) = out[begin..].as_chunks_mut::<4>();
        for (edges, hashes) in groups.iter().zip(hashes) {
            let lengths = lengths(edges);
            let (first, second) = self.first_bytes(edges);
            store(hashes, state.hash(first, second, lengths));
            let is_long = _mm256_cmpgt_epi64(lengths, _mm256_set1_epi64x(LONGEST as i64));
            if _mm256_movemask_pd(_mm256_castsi256_pd(is_long)) != 0 {
                self.rehash_long_words(edges, key, hashes);
            }
        }
        out.truncate(begin + words);
    }

    /// The first and the second 8 bytes behind each of four starts.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn first_bytes(&self, edges: &[u16; 8]) -> (__m256i, __m256i) {
        let at = |i: usize| {
            let bytes = self.text[usize::from(edges[2 * i])..].first_chunk();
            load_half::<[u8; 16]>(bytes.expect("there is room behind the text"))
        };
        let even = _mm256_set_m128i(at(2), at(0));
        let odd = _mm256_set_m128i(at(3), at(1));
        (
            _mm256_unpacklo_epi64(even, odd),
            _mm256_unpackhi_epi64(even, odd),
        )
    }

    #[cold]
    fn rehash_long_words(&self, edges: &[u16; 8], key: &Key, hashes: &mut [u64; 4]) {
        for (limits, hash) in edges.as_chunks::<2>().0.iter().zip(hashes) {
            let word = &self.text[usize::from(limits[0])..usize::from(limits[1])];
            if word.len() > LONGEST {
                *hash = key.token_hash(word);
            }
        }
    }
}

/// The lengths of four words, from their starts and ends.
#[inline]
#[target_feature(enable = "avx2")]
fn lengths(edges: &[u16; 8]) -> __m256i {
    let edges: __m128i = load_half(edges);
    let starts = _mm_and_si128(edges, _mm_set1_epi32(0xffff));
    _mm256_cvtepu32_epi64(_mm_sub_epi32(_mm_srli_epi32::<16>(edges), starts))
}

/// Ones in the bytes from `first` to `first + count - 1`.
#[inline]
#[target_feature(enable = "avx2")]
fn is_within(bytes: __m256i, first: u8, count: u8) -> __m256i {
    let offset = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first as i8));
    let last = _mm256_set1_epi8((count - 1) as i8);
    _mm256_cmpeq_epi8(_mm256_min_epu8(offset, last), offset)
}

/// The positions of the set bits of every byte.
static POSITIONS: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};
