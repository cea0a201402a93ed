//! The hashes of a document's shingles, as a stream in constant memory.

use super::shingler::Shingler;
use super::units::{CharHashes, CharText, WordText};
use super::{Key, Shingling};
use crate::kernels::active;
use crate::set::Distinct;
use crate::text::{Fold, ROOM, Unit, fold_quickly};
use crate::{Result, with_room};
use std::cell::Cell;
use std::mem::take;

/// Passes the shingle hashes of a document to `sink`, in document order and in blocks of at most [`super::BLOCK`], each
/// shingle as often as it occurs. `doc` is UTF-8; ill-formed bytes stand for U+FFFD.
///
/// `sink` is also called, possibly with an empty block, at least every 64 KiB of the document, so that it can check for
/// interrupts. Linear time. Constant memory, except that sequences of combining marks, which must be ordered, take 16
/// bytes per mark.
///
/// # Errors
/// The first error that `sink` returns, after which it is not called again; `OutOfMemory`.
pub fn for_each_block(
    doc: &[u8],
    shingling: &Shingling,
    key: &Key,
    sink: &mut dyn FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let mut room = ROOM_KEPT.take().unwrap_or_default();
    let mut shingler = Shingler::new(shingling, key, take(&mut room.lists), sink);
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
    let (result, lists) = shingler.finish();
    room.lists = lists;
    ROOM_KEPT.set(Some(room));
    result
}

/// Returns the set of a document's shingle hashes.
///
/// Linear time except for sorting; memory for twice the number of distinct hashes.
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

/// Returns the shingle hashes of a sequence of tokens that were hashed elsewhere. A sequence shorter than k is one
/// shingle.
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
    /// Memory kept for the next document.
    static ROOM_KEPT: Cell<Option<Box<ShingleRoom>>> = const { Cell::new(None) };
}

struct ShingleRoom {
    bytes: [u8; ROOM],
    chars: [u32; ROOM],
    char_hashes: Option<CharHashes>,
    /// Token hashes and shingle hashes.
    lists: (Vec<u64>, Vec<u64>),
}

impl Default for ShingleRoom {
    fn default() -> Self {
        Self {
            bytes: [0; ROOM],
            chars: [0; ROOM],
            char_hashes: None,
            lists: Default::default(),
        }
    }
}
