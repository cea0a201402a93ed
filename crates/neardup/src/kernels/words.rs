//! Finding and hashing the words of an ASCII text, but for the two loops that differ by processor.

use super::siphash;
use crate::shingle::Key;

/// Bytes that are handled at once. A document of 1.6 kB takes two pieces; the scratch space, which
/// is cleared on every call, stays small.
const PIECE: usize = 1024;

/// The text of a piece; behind it room for a last block and for loading the last words.
pub type PieceText = [u8; PIECE + 64];

/// Appends the token hashes of the words of `text`.
///
/// `classify` copies 64 bytes, folds their case where that is asked for, and has a bit set for each
/// that belongs to a word. `hash_four` hashes the four words of a piece of which it gets the starts
/// and ends, alternating, and says whether none is longer than [`siphash::LONGEST`], for which its
/// hash means nothing.
#[inline(always)]
pub fn hash_words(
    mut text: &[u8],
    key: &Key,
    out: &mut Vec<u64>,
    classify: impl Fn(&[u8; 64], &mut [u8; 64]) -> u64,
    hash_four: impl Fn(&PieceText, &[u16; 8], &mut [u64; 4]) -> bool,
) {
    let mut piece = Piece::new();
    while !text.is_empty() {
        let part = &text[..PIECE.min(text.len())];
        piece.find_words(part, &classify);
        let mut done = part.len();
        if part.len() < text.len()
            && let Some(start) = piece.take_cut_word(part.len())
        {
            done = start;
        }
        piece.hash_words(key, out, &hash_four);
        if done == 0 {
            done = hash_long_word(text, key, out, &classify);
        }
        text = &text[done..];
    }
}

/// Hashes the word with which `text` begins, and returns its length.
#[cold]
fn hash_long_word(
    text: &[u8],
    key: &Key,
    out: &mut Vec<u64>,
    classify: impl Fn(&[u8; 64], &mut [u8; 64]) -> u64,
) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let mut word = text[..end.unwrap_or(text.len())].to_vec();
    for block in word.chunks_mut(64) {
        let mut from = [0; 64];
        let mut to = [0; 64];
        from[..block.len()].copy_from_slice(block);
        classify(&from, &mut to);
        block.copy_from_slice(&to[..block.len()]);
    }
    out.push(key.token_hash(&word));
    word.len()
}

/// Part of a text and the limits of its words.
struct Piece {
    text: PieceText,
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
    #[inline(always)]
    fn find_words(&mut self, text: &[u8], classify: impl Fn(&[u8; 64], &mut [u8; 64]) -> u64) {
        let (blocks, rest) = text.as_chunks::<64>();
        // Ends the last word, too.
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        let mut is_in_word = 0;
        self.edge_count = 0;
        for (i, block) in blocks.iter().chain([&last]).enumerate() {
            let room = self.text[i * 64..].first_chunk_mut();
            let is_word = classify(block, room.expect("room for a last block"));
            self.push_edges(i * 64, is_word ^ (is_word << 1 | is_in_word));
            is_in_word = is_word >> 63;
        }
    }

    /// Appends the positions of the set bits: those of 8 bits at a time are looked up.
    #[inline(always)]
    fn push_edges(&mut self, at: usize, edges: u64) {
        let room = self.edges[self.edge_count..].first_chunk_mut::<72>();
        let room = room.expect("at most an edge a byte");
        // Counted from the first byte, so that no byte waits for the one before.
        let counts = counts_up_to_bytes(edges);
        let before = (counts << 8).to_le_bytes();
        for (i, byte) in edges.to_le_bytes().into_iter().enumerate() {
            let first = (at + 8 * i) as u16;
            // At most 56, which the compiler cannot know.
            let before = usize::from(before[i]) & 63;
            let room = &mut room[before..before + 8];
            for (position, bit) in room.iter_mut().zip(&POSITIONS[usize::from(byte)]) {
                *position = first + bit;
            }
        }
        self.edge_count += (counts >> 56) as usize;
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

    #[inline(always)]
    fn hash_words(
        &mut self,
        key: &Key,
        out: &mut Vec<u64>,
        hash_four: impl Fn(&PieceText, &[u16; 8], &mut [u64; 4]) -> bool,
    ) {
        let words = self.edge_count / 2;
        // Empty words fill the last group.
        self.edges[self.edge_count..][..8].fill(0);
        let begin = out.len();
        out.resize(begin + words.next_multiple_of(4), 0);
        let (groups, _) = self.edges.as_chunks::<8>();
        let (hashes, _) = out[begin..].as_chunks_mut::<4>();
        for (edges, hashes) in groups.iter().zip(hashes) {
            hash_four(&self.text, edges, hashes);
            let lengths = [0, 2, 4, 6].map(|i| edges[i + 1] - edges[i]);
            if lengths
                .iter()
                .any(|len| usize::from(*len) > siphash::LONGEST)
            {
                self.rehash_long_words(edges, key, hashes);
            }
        }
        out.truncate(begin + words);
    }

    #[cold]
    fn rehash_long_words(&self, edges: &[u16; 8], key: &Key, hashes: &mut [u64; 4]) {
        for (limits, hash) in edges.as_chunks::<2>().0.iter().zip(hashes) {
            let word = &self.text[usize::from(limits[0])..usize::from(limits[1])];
            if word.len() > siphash::LONGEST {
                *hash = key.token_hash(word);
            }
        }
    }
}

/// In each byte the number of bits that are set in it and in those below.
#[inline(always)]
fn counts_up_to_bytes(bits: u64) -> u64 {
    let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    bytes.wrapping_mul(0x0101_0101_0101_0101)
}

/// The positions of the set bits of every byte.
static POSITIONS: [[u16; 8]; 256] = {
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
