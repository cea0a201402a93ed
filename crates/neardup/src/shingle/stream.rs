//! The hashes of a document's shingles, as a stream in constant memory.

use super::stop::StopHashes;
use super::units::{CharHashes, CharText, WordText};
use super::{BLOCK, Key, Shingling};
use crate::Result;
use crate::hash::combine;
use crate::kernels::active;
use crate::memory::{FirstError, with_room};
use crate::set::Distinct;
use crate::text::{Fold, ROOM, Unit, fold_quickly};
use std::cell::Cell;
use std::mem::take;

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
    let mut room = ROOM_KEPT.take().unwrap_or_default();
    let mut shingler = Shingler::new(shingling, key, &mut room, sink);
    let fold = shingling.fold;
    match shingling.unit {
        Unit::Word | Unit::Stop => {
            let words = WordText::new(fold, key, &mut shingler);
            fold_quickly(doc, fold, &mut room.bytes, words)?;
        }
        Unit::Char => {
            let chars = CharText {
                hashes: CharHashes::of(key, &mut room.char_hashes),
                shingler: &mut shingler,
                is_folded: fold != Fold::None,
            };
            fold_quickly(doc, fold, &mut room.chars, chars)?;
        }
    }
    shingler.finish(room)
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
        active().combine_windows(tokens, k.min(tokens.len()), &mut hashes);
    }
    Ok(hashes)
}

thread_local! {
    /// Room for the next document.
    static ROOM_KEPT: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

struct Room {
    bytes: [u8; ROOM],
    chars: [u32; ROOM],
    char_hashes: Option<CharHashes>,
    tokens: Vec<u64>,
    hashes: Vec<u64>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: [0; ROOM],
            chars: [0; ROOM],
            char_hashes: None,
            tokens: Vec::new(),
            hashes: Vec::new(),
        }
    }
}

/// Makes shingle hashes of token hashes.
pub(super) struct Shingler<'a> {
    k: usize,
    /// Tokens whose shingles are not handed on yet.
    pub tokens: Vec<u64>,
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
        room: &mut Room,
        sink: &'a mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Self {
        let (mut tokens, hashes) = (take(&mut room.tokens), take(&mut room.hashes));
        tokens.clear();
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

    pub fn heartbeat(&mut self) {
        self.error.run(|| (self.sink)(&[]));
    }

    /// Hands on shingles where there are enough for a block.
    pub fn flush_if_full(&mut self) {
        if self.tokens.len() >= BLOCK + self.k - 1 {
            self.flush();
        }
    }

    /// Hands on the shingles of the tokens so far, and keeps those that begin further ones.
    fn flush(&mut self) {
        if self.tokens.len() < self.k {
            return;
        }
        self.is_long_enough = true;
        self.hashes.clear();
        active().combine_windows(&self.tokens, self.k, &mut self.hashes);
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

    fn finish(mut self, mut room: Box<Room>) -> Result<()> {
        self.flush();
        if !self.is_long_enough && !self.tokens.is_empty() && self.stop.is_none() {
            let whole = combine(&self.tokens);
            self.error.run(|| (self.sink)(&[whole]));
        }
        (room.tokens, room.hashes) = (self.tokens, self.hashes);
        ROOM_KEPT.set(Some(room));
        self.error.into_result()
    }
}
