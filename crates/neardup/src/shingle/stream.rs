//! The hashes of a document's shingles, as a stream in constant memory.

use super::spaces::Spaces;
use super::stop::StopHashes;
use super::{BLOCK, Key, Shingling};
use crate::Result;
use crate::hash::combine;
use crate::kernels::{ascii_word_hashes, combine_windows};
use crate::memory::{FirstError, with_room};
use crate::set::Distinct;
use crate::text::{Class, Fold, FoldedText, Folder, Unit, WordSink, Words, fold_document, pieces};
use siphasher::sip::SipHasher13;
use std::cell::Cell;
use std::hash::Hasher;
use std::ops::Range;

/// The shingle hashes of a document in document order, repeated where shingles repeat, in blocks
/// of at most [`BLOCK`]. `doc` is UTF-8; ill-formed bytes stand for U+FFFD.
///
/// `sink` is also called, possibly with nothing, at least every 64 KiB of the document, so that it
/// can check for interrupts. Linear time; constant memory, except for sequences of combining marks,
/// which have to be brought into order: 8 bytes a mark.
///
/// # Errors
/// The first that `sink` returns, which is not called again; `OutOfMemory`.
pub fn for_each_block(
    doc: &[u8],
    shingling: &Shingling,
    key: &Key,
    sink: &mut dyn FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let mut shingler = Shingler::new(shingling, key, sink);
    match shingling.unit {
        Unit::Word | Unit::Stop => hash_words(doc, shingling.fold, key, &mut shingler)?,
        Unit::Char => hash_chars(doc, shingling.fold, key, &mut shingler)?,
    }
    shingler.finish()
}

/// Returns the set of a document's shingle hashes.
///
/// Time linear but for the sorting; memory for twice the distinct hashes.
///
/// # Errors
/// `OutOfMemory`.
pub fn shingle_hashes(
    doc: &[u8],
    shingling: &Shingling,
    key: &Key,
    check: &mut dyn FnMut(),
) -> Result<Vec<i64>> {
    let mut set = Distinct::new();
    for_each_block(doc, shingling, key, &mut |hashes| {
        check();
        set.extend(hashes.iter().map(|hash| *hash as i64), check)
    })?;
    Ok(set.into_sorted(check))
}

/// Returns the shingle hashes of a sequence of tokens that were hashed elsewhere: of all of it
/// where it is shorter than k.
///
/// # Errors
/// `OutOfMemory`.
pub fn sequence_hashes(tokens: &[u64], k: usize) -> Result<Vec<u64>> {
    let mut hashes = with_room(tokens.len())?;
    if !tokens.is_empty() {
        combine_windows(tokens, k.min(tokens.len()), &mut hashes);
    }
    Ok(hashes)
}

/// Numbers that room is kept for, at most.
const MOST_ROOM: usize = 4 * BLOCK;

thread_local! {
    /// Room for the tokens and hashes of the next document.
    static ROOM: Cell<[Vec<u64>; 2]> = const { Cell::new([const { Vec::new() }; 2]) };
}

/// Makes shingle hashes of token hashes.
struct Shingler<'a> {
    k: usize,
    tokens: Vec<u64>,
    hashes: Vec<u64>,
    stop: Option<StopHashes>,
    is_long_enough: bool,
    sink: &'a mut dyn FnMut(&[u64]) -> Result<()>,
    error: FirstError,
}

impl<'a> Shingler<'a> {
    fn new(
        shingling: &Shingling,
        key: &Key,
        sink: &'a mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Self {
        let [tokens, hashes] = ROOM.take();
        Self {
            k: shingling.k,
            tokens,
            hashes,
            stop: (shingling.unit == Unit::Stop).then(|| StopHashes::new(shingling.fold, key)),
            is_long_enough: false,
            sink,
            error: FirstError::default(),
        }
    }

    #[inline]
    #[allow(clippy::disallowed_methods, reason = "at most BLOCK + k tokens")]
    fn push(&mut self, token: u64) {
        if self.tokens.len() >= BLOCK + self.k - 1 {
            self.flush();
        }
        self.tokens.push(token);
    }

    fn heartbeat(&mut self) {
        self.error.run(|| (self.sink)(&[]));
    }

    /// Hands on the shingles of the tokens so far, and keeps those that begin further ones.
    fn flush(&mut self) {
        if self.tokens.len() < self.k {
            return;
        }
        self.is_long_enough = true;
        self.hashes.clear();
        combine_windows(&self.tokens, self.k, &mut self.hashes);
        if let Some(stop) = &self.stop {
            let mut firsts = self.tokens.iter();
            self.hashes
                .retain(|_| firsts.next().is_some_and(|first| stop.contains(*first)));
        }
        for block in self.hashes.chunks(BLOCK) {
            self.error.run(|| (self.sink)(block));
        }
        self.tokens.drain(..=self.tokens.len() - self.k);
    }

    fn finish(mut self) -> Result<()> {
        self.flush();
        if !self.is_long_enough && !self.tokens.is_empty() && self.stop.is_none() {
            let whole = combine(&self.tokens);
            self.error.run(|| (self.sink)(&[whole]));
        }
        if self.tokens.capacity().max(self.hashes.capacity()) <= MOST_ROOM {
            self.tokens.clear();
            ROOM.set([self.tokens, self.hashes]);
        }
        self.error.into_result()
    }
}

/// Up to here an ASCII document is not decoded, which takes as long as finding its words.
const ASCII_AT_ONCE: usize = 8192;

/// ASCII bytes in a row for which leaving the general path pays: with 32, German, which has an
/// umlaut every other word, took twice as long.
const ASCII_RUN: usize = 128;

/// Words by the general path, and runs of ASCII words, which no other code point touches, by the
/// fast one.
fn hash_words(doc: &[u8], fold: Fold, key: &Key, shingler: &mut Shingler) -> Result<()> {
    let is_lowered = fold != Fold::None;
    let mut hasher = WordHasher {
        key,
        shingler,
        long: None,
    };
    if doc.len() <= ASCII_AT_ONCE && doc.is_ascii() {
        hasher.check();
        hasher.ascii(doc, is_lowered);
        return Ok(());
    }
    let mut folder = Folder::new(fold);
    let mut words = Words::new(hasher);
    let mut is_between_words = true;
    for piece in pieces(doc) {
        words.sink.check();
        let is_last = piece.start + piece.text.len() == doc.len();
        let mut at = 0;
        while at < piece.text.len() {
            if is_between_words {
                let run = ascii_words(&piece.text.as_bytes()[at..], is_last);
                if !run.is_empty() {
                    folder.flush(&mut words);
                    words.end_word();
                    words.sink.ascii(run, is_lowered);
                    at += run.len();
                    continue;
                }
            }
            is_between_words = false;
            let start = at;
            for (offset, c) in piece.text[start..].char_indices() {
                let place = piece.start + start + offset;
                at = start + offset + c.len_utf8();
                folder.push(c, place..piece.start + at, &mut words);
                if c.is_ascii() && !c.is_ascii_alphanumeric() {
                    is_between_words = true;
                    break;
                }
            }
        }
        if !piece.invalid.is_empty() {
            folder.push(char::REPLACEMENT_CHARACTER, piece.invalid, &mut words);
            is_between_words = true;
        }
    }
    folder.finish(&mut words)?;
    words.finish()?;
    Ok(())
}

/// Returns the longest part of `bytes`, which begin between words, that is ASCII and ends between
/// words; nothing where that is too short to pay.
fn ascii_words(bytes: &[u8], is_last: bool) -> &[u8] {
    let probe = &bytes[..ASCII_RUN.min(bytes.len())];
    if !probe.is_ascii() || (probe.len() < ASCII_RUN && !is_last) {
        return &[];
    }
    let blocks = bytes.chunks(ASCII_RUN);
    let run = blocks
        .take_while(|block| block.is_ascii())
        .map(<[u8]>::len)
        .sum();
    if is_last && run == bytes.len() {
        return bytes;
    }
    let end = bytes[..run]
        .iter()
        .rposition(|byte| !byte.is_ascii_alphanumeric());
    &bytes[..end.map_or(0, |last| last + 1)]
}

/// Hashes words as they end.
struct WordHasher<'a, 'b> {
    key: &'a Key,
    shingler: &'a mut Shingler<'b>,
    /// The beginning of a long word.
    long: Option<SipHasher13>,
}

impl WordHasher<'_, '_> {
    fn ascii(&mut self, words: &[u8], is_lowered: bool) {
        if self.shingler.tokens.len() + words.len() / 2 >= BLOCK + self.shingler.k - 1 {
            self.shingler.flush();
        }
        ascii_word_hashes(words, is_lowered, self.key, &mut self.shingler.tokens);
    }
}

impl WordSink for WordHasher<'_, '_> {
    const LONGEST: usize = 1 << 16;

    fn part(&mut self, text: &str) {
        let key = self.key;
        let hasher = self.long.get_or_insert_with(|| key.hasher());
        hasher.write(text.as_bytes());
    }

    #[inline]
    fn word(&mut self, text: &str, _: Range<usize>) {
        let token = match self.long.take() {
            None => self.key.token_hash(text.as_bytes()),
            Some(mut hasher) => {
                hasher.write(text.as_bytes());
                hasher.finish()
            }
        };
        self.shingler.push(token);
    }

    fn check(&mut self) {
        self.shingler.heartbeat();
    }
}

fn hash_chars(doc: &[u8], fold: Fold, key: &Key, shingler: &mut Shingler) -> Result<()> {
    let mut chars = CharHasher {
        key,
        shingler,
        spaces: Spaces::new(fold),
        cache: [(u32::MAX, 0); CACHE],
    };
    fold_document(doc, fold, &mut chars)
}

/// Token hashes of code points that are remembered: most of a text in any alphabet.
const CACHE: usize = 256;

struct CharHasher<'a, 'b> {
    key: &'a Key,
    shingler: &'a mut Shingler<'b>,
    spaces: Spaces,
    cache: [(u32, u64); CACHE],
}

impl CharHasher<'_, '_> {
    #[inline]
    fn push(&mut self, c: char) {
        let remembered = &mut self.cache[c as usize % CACHE];
        if remembered.0 != u32::from(c) {
            let token = self.key.token_hash(c.encode_utf8(&mut [0; 4]).as_bytes());
            *remembered = (u32::from(c), token);
        }
        self.shingler.push(remembered.1);
    }
}

impl FoldedText for CharHasher<'_, '_> {
    #[inline]
    fn put(&mut self, c: char, class: Class, _: Range<usize>) {
        let (space, c) = self.spaces.next(c, class);
        if space {
            self.push(' ');
        }
        if let Some(c) = c {
            self.push(c);
        }
    }

    fn check(&mut self) {
        self.shingler.heartbeat();
    }
}
