//! Finds and hashes the words between spaces, except for the loops that differ by processor.

use super::siphash;
use crate::hash::Key;

/// Number of bytes of a piece, whose words are all found before they are hashed. An article of 1.6 kB takes one piece.
/// The scratch space, which is cleared on every call, stays small.
const PIECE: usize = 2048;

/// The start and the end of a word, counted from the beginning of a piece.
pub type WordLimits = [u16; 2];

/// Room for the positions of 64 bits.
pub type Positions = [u16; 64];

/// The rest of a text, which begins with the current piece. 16 bytes can be read at any position.
pub struct PieceText<'a> {
    text: &'a [u8],
    /// The last bytes of the text, followed by zeros.
    end: [u8; 32],
    end_len: usize,
}

impl<'a> PieceText<'a> {
    fn new(text: &'a [u8]) -> Self {
        let end_len = text.len().min(16);
        let mut end = [0; 32];
        end[..end_len].copy_from_slice(&text[text.len() - end_len..]);
        Self { text, end, end_len }
    }

    /// Returns 16 bytes at `start`, with zeros after the end of the text.
    #[inline(always)]
    pub fn bytes(&self, start: usize) -> &[u8; 16] {
        match self.text.get(start..start + 16) {
            Some(bytes) => bytes.first_chunk().expect("16 bytes"),
            None => self.last_bytes(start),
        }
    }

    #[cold]
    fn last_bytes(&self, start: usize) -> &[u8; 16] {
        let at = self.end_len - (self.text.len() - start);
        let bytes = self.end[at..].first_chunk();
        bytes.expect("it begins among the last 16 bytes")
    }
}

/// Steps that differ by processor.
pub struct Steps<C, P, H> {
    /// Returns a mask with a bit for each of 64 bytes that is not a space.
    pub classify: C,
    /// Writes the positions of the set bits, plus a given number, and returns how many there are.
    pub positions: P,
    /// Hashes words of at most [`siphash::LONGEST`] bytes. Returns whether no word is longer; the hash of a longer
    /// one is meaningless.
    pub hash: H,
}

/// Appends the token hashes of the words of `text` to `out`.
#[inline(always)]
pub fn hash_words<const LANES: usize>(
    text: &[u8],
    key: &Key,
    out: &mut Vec<u64>,
    steps: &Steps<
        impl Fn(&[u8; 64]) -> u64,
        impl Fn(u64, u16, &mut Positions) -> usize,
        impl Fn(&PieceText<'_>, &[WordLimits; LANES], &mut [u64; LANES]) -> bool,
    >,
) {
    let mut edges = Edges::new();
    let mut source = PieceText::new(text);
    while !source.text.is_empty() {
        let piece = &source.text[..PIECE.min(source.text.len())];
        edges.find(piece, steps);
        let mut done = piece.len();
        if done < source.text.len()
            && let Some(start) = edges.take_cut_word(done)
        {
            done = start;
        }
        hash_found(&source, &mut edges, key, out, steps);
        if done == 0 {
            let end = source.text.iter().position(|byte| *byte == b' ');
            done = end.unwrap_or(source.text.len());
            out.push(key.token_hash(&source.text[..done]));
        }
        source.text = &source.text[done..];
    }
}

/// Hashes the words that were found in a piece.
#[inline(always)]
fn hash_found<const LANES: usize, C, P>(
    source: &PieceText<'_>,
    edges: &mut Edges,
    key: &Key,
    out: &mut Vec<u64>,
    steps: &Steps<C, P, impl Fn(&PieceText<'_>, &[WordLimits; LANES], &mut [u64; LANES]) -> bool>,
) {
    let words = edges.count / 2;
    let begin = out.len();
    out.resize(begin + words.next_multiple_of(LANES), 0);
    let (hashes, _) = out[begin..].as_chunks_mut::<LANES>();
    for (limits, hashes) in edges.groups().iter().zip(hashes) {
        if !(steps.hash)(source, limits, hashes) {
            for ([start, end], hash) in limits.iter().zip(hashes) {
                let word = &source.text[usize::from(*start)..usize::from(*end)];
                if word.len() > siphash::LONGEST {
                    *hash = key.token_hash(word);
                }
            }
        }
    }
    out.truncate(begin + words);
}

/// The limits of the words of a piece.
struct Edges {
    /// The starts and ends of words, alternating, followed by room for whole vector stores.
    positions: [u16; PIECE + 80],
    count: usize,
}

impl Edges {
    fn new() -> Self {
        Self {
            positions: [0; PIECE + 80],
            count: 0,
        }
    }

    /// Finds the words of `piece`. Cuts the last word off at the end of the piece.
    #[inline(always)]
    fn find<H>(
        &mut self,
        piece: &[u8],
        steps: &Steps<impl Fn(&[u8; 64]) -> u64, impl Fn(u64, u16, &mut Positions) -> usize, H>,
    ) {
        let (blocks, rest) = piece.as_chunks::<64>();
        // The spaces at the end also end the last word.
        let mut last = [b' '; 64];
        last[..rest.len()].copy_from_slice(rest);
        let mut is_in_word = 0;
        self.count = 0;
        for (i, block) in blocks.iter().chain([&last]).enumerate() {
            let is_word = (steps.classify)(block);
            let edges = is_word ^ (is_word << 1 | is_in_word);
            let room = self.positions[self.count..].first_chunk_mut();
            let room = room.expect("at most one edge per byte");
            self.count += (steps.positions)(edges, (i * 64) as u16, room);
            is_in_word = is_word >> 63;
        }
        // Empty words fill the last group.
        self.positions[self.count..][..16].fill(0);
    }

    /// Removes the last word if it touches the end of the piece of `len` bytes, where it may be cut off, and returns
    /// its start.
    fn take_cut_word(&mut self, len: usize) -> Option<usize> {
        match self.positions[..self.count] {
            [.., start, end] if usize::from(end) == len => {
                self.count -= 2;
                self.positions[self.count..][..2].fill(0);
                Some(usize::from(start))
            }
            _ => None,
        }
    }

    /// Returns the limits of the words in groups of `LANES`, with empty words to fill the last group.
    #[inline(always)]
    fn groups<const LANES: usize>(&self) -> &[[WordLimits; LANES]] {
        self.positions.as_chunks::<2>().0.as_chunks().0
    }
}

/// Implements [`Steps::positions`].
#[inline(always)]
pub fn positions(mut bits: u64, from: u16, out: &mut Positions) -> usize {
    let mut count = 0;
    while bits != 0 {
        out[count] = from + bits.trailing_zeros() as u16;
        bits &= bits - 1;
        count += 1;
    }
    count
}
