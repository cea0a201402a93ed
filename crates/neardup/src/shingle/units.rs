//! Folded texts from which units are hashed: words separated by spaces, and characters including white space.
#![allow(clippy::disallowed_methods, reason = "at most ROOM tokens at a time")]

use super::Key;
use super::shingler::Shingler;
use crate::kernels::active;
use crate::kernels::fold::Folded;
use crate::text::{Cell, Fold, ROOM, Table, Units};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Words in UTF-8, separated by spaces.
pub(super) struct WordText<'a, 'b> {
    pub key: &'a Key,
    pub shingler: &'a mut Shingler<'b>,
    /// The bits that turn letters into lower case.
    case_bits: u64,
    /// The hash of a long word so far.
    long: Option<SipHasher13>,
}

impl<'a, 'b> WordText<'a, 'b> {
    pub fn new(fold: Fold, key: &'a Key, shingler: &'a mut Shingler<'b>) -> Self {
        Self {
            key,
            shingler,
            case_bits: if fold == Fold::None { 0 } else { each(b' ') },
            long: None,
        }
    }
}

impl Units for WordText<'_, '_> {
    type Item = u8;
    const SPACE: u8 = b' ';

    #[inline(always)]
    fn write(
        &self,
        items: &mut [u8; ROOM],
        end: usize,
        cell: Cell,
        before: Cell,
    ) -> (usize, usize) {
        items[end] = b' ';
        let start = end + cell.gap(before);
        items[start..start + 4].copy_from_slice(&cell.bytes().to_le_bytes());
        (start, start + cell.len_in_word())
    }

    #[inline(always)]
    fn write_ascii<const N: usize>(
        &self,
        items: &mut [u8; ROOM],
        end: usize,
        ascii: &[u8; N],
        count: usize,
        before: Cell,
    ) -> usize {
        items[end] = b' ';
        let start = end + usize::from(before.has(Cell::ALONE));
        if N == 8 {
            let word = ascii.first_chunk().expect("8 characters");
            items[start..start + N].copy_from_slice(&fold_ascii(*word, self.case_bits));
            return start + count;
        }
        let case_bit = self.case_bits as u8;
        for (item, &byte) in items[start..start + N].iter_mut().zip(ascii) {
            let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
            let is_digit = byte.wrapping_sub(b'0') < 10;
            let is_word = is_letter | is_digit;
            *item = if is_word { byte | case_bit } else { b' ' };
        }
        start + count
    }

    #[inline(always)]
    fn write_run(
        &self,
        items: &mut [u8],
        text: &[u8],
        table: &'static Table,
        before: Cell,
    ) -> Folded {
        active().fold_words(text, before.has(Cell::ALONE), table.rows(), items)
    }

    fn take(&mut self, text: &[u8], is_last: bool) -> usize {
        let mut from = 0;
        if let Some(mut hasher) = self.long.take() {
            let space = text.iter().position(|byte| *byte == b' ');
            from = space.unwrap_or(text.len());
            hasher.write(&text[..from]);
            if from == text.len() && !is_last {
                self.long = Some(hasher);
                return from;
            }
            self.shingler.tokens.push(hasher.finish());
        }
        let end = match text[from..].iter().rposition(|byte| *byte == b' ') {
            _ if is_last => text.len(),
            Some(space) => from + space + 1,
            None => {
                let mut hasher = self.key.hasher();
                hasher.write(text);
                self.long = Some(hasher);
                return text.len();
            }
        };
        active().word_hashes(&text[from..end], self.key, &mut self.shingler.tokens);
        self.shingler.flush_if_full();
        end
    }

    fn check(&mut self) {
        self.shingler.heartbeat();
    }
}

/// Returns folded ASCII characters, with spaces in place of all but letters and digits.
#[inline(always)]
fn fold_ascii(ascii: [u8; 8], case_bits: u64) -> [u8; 8] {
    let bytes = u64::from_le_bytes(ascii) & each(0x7F);
    let is_letter = is_within(bytes | each(0x20), b'a', b'z');
    let is_word = is_letter | is_within(bytes, b'0', b'9');
    let kept = is_word * 0xFF;
    ((bytes | case_bits) & kept | each(b' ') & !kept).to_le_bytes()
}

/// Returns ASCII characters with lower-case letters and with spaces for all white space, and the bits of the spaces.
#[inline(always)]
fn fold_spaces(ascii: [u8; 8]) -> ([u8; 8], u64) {
    let bytes = u64::from_le_bytes(ascii) & each(0x7F);
    let spaces = (is_within(bytes, b'\t', b'\r') | is_within(bytes, b' ', b' ')) * 0xFF;
    let small = bytes | is_within(bytes, b'A', b'Z') << 5;
    let folded = small & !spaces | each(b' ') & spaces;
    (folded.to_le_bytes(), spaces)
}

/// Returns 1 in each byte that is ASCII from `first` to `last`, and 0 in the others.
#[inline(always)]
fn is_within(bytes: u64, first: u8, last: u8) -> u64 {
    // Sets the highest bit of each byte that is at least `first`.
    let is_from = |first: u8| bytes + each(0x80 - first);
    (is_from(first) & !is_from(last + 1)) >> 7 & each(1)
}

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Code points; white space is collapsed unless the text is not folded.
pub(super) struct CharText<'a, 'b> {
    pub shingler: &'a mut Shingler<'b>,
    pub hashes: &'a mut CharHashes,
    pub is_folded: bool,
}

const COLLAPSED: u32 = b' ' as u32;

impl Units for CharText<'_, '_> {
    type Item = u32;
    const SPACE: u32 = COLLAPSED;

    #[inline(always)]
    fn write(
        &self,
        items: &mut [u32; ROOM],
        end: usize,
        cell: Cell,
        before: Cell,
    ) -> (usize, usize) {
        if cell.has(Cell::SEVERAL) {
            widen(&cell.bytes().to_le_bytes(), &mut items[end..end + 4]);
            return (end, end + cell.len());
        }
        let is_collapsed = self.is_folded && cell.has(Cell::SPACE);
        items[end] = if is_collapsed { COLLAPSED } else { cell.code() };
        let is_repeated = is_collapsed && before.has(Cell::SPACE);
        (end, end + usize::from(!is_repeated))
    }

    #[inline(always)]
    fn write_ascii<const N: usize>(
        &self,
        items: &mut [u32; ROOM],
        end: usize,
        ascii: &[u8; N],
        count: usize,
        before: Cell,
    ) -> usize {
        if !self.is_folded {
            widen(ascii, &mut items[end..end + N]);
            return end + count;
        }
        let mut folded = [0; N];
        let (mut repeats, mut before_chunk) = (0, 0);
        for (bytes, folded) in ascii.as_chunks().0.iter().zip(folded.as_chunks_mut().0) {
            let (small, spaces) = fold_spaces(*bytes);
            *folded = small;
            repeats |= spaces & (spaces << 8 | before_chunk);
            before_chunk = spaces >> 56;
        }
        let (mut end, mut was_space) = (end, before.has(Cell::SPACE));
        if repeats == 0 && !(was_space && folded[0] == b' ') {
            widen(&folded, &mut items[end..end + N]);
            return end + count;
        }
        for byte in &folded[..count] {
            let is_space = *byte == b' ';
            items[end] = u32::from(*byte);
            end += usize::from(!(is_space && was_space));
            was_space = is_space;
        }
        end
    }

    #[inline(always)]
    fn write_run(
        &self,
        items: &mut [u32],
        text: &[u8],
        table: &'static Table,
        before: Cell,
    ) -> Folded {
        active().fold_chars(text, before.has(Cell::SPACE), table.rows(), items)
    }

    fn take(&mut self, chars: &[u32], _: bool) -> usize {
        // White space at the end is trimmed.
        let kept = match chars {
            [kept @ .., COLLAPSED] if self.is_folded => kept,
            all => all,
        };
        self.hashes.push(kept, &mut self.shingler.tokens);
        self.shingler.flush_if_full();
        kept.len()
    }

    fn check(&mut self) {
        self.shingler.heartbeat();
    }
}

#[inline(always)]
fn widen(bytes: &[u8], items: &mut [u32]) {
    for (item, byte) in items.iter_mut().zip(bytes) {
        *item = u32::from(*byte);
    }
}

/// Token hashes of characters, remembered from one document to the next.
pub(super) struct CharHashes {
    key: Key,
    /// The last code point seen for each value of the low bits, so that code points of one script do not share a
    /// place; and its hash.
    codes: Vec<u32>,
    hashes: Vec<u64>,
}

impl CharHashes {
    const PLACES: usize = 1 << 13;

    /// Returns the hashes under `key`; discards the hashes in `kept` if they have another key.
    #[allow(clippy::disallowed_macros, reason = "96 KiB")]
    pub fn of<'a>(key: &Key, kept: &'a mut Option<Self>) -> &'a mut Self {
        if kept.as_ref().is_some_and(|kept| kept.key != *key) {
            *kept = None;
        }
        kept.get_or_insert_with(|| Self {
            key: *key,
            codes: vec![u32::MAX; Self::PLACES],
            hashes: vec![0; Self::PLACES],
        })
    }

    /// Appends the token hashes of code points.
    fn push(&mut self, codes: &[u32], tokens: &mut Vec<u64>) {
        let place = |code: u32| code as usize % Self::PLACES;
        let known: &mut [u32; Self::PLACES] = self.codes.first_chunk_mut().expect("as many");
        let hashes: &mut [u64; Self::PLACES] = self.hashes.first_chunk_mut().expect("as many");
        for codes in codes.chunks(RUN) {
            let start = tokens.len();
            let mut unknown = 0;
            tokens.extend(codes.iter().map(|code| {
                unknown |= known[place(*code)] ^ code;
                hashes[place(*code)]
            }));
            if unknown == 0 {
                continue;
            }
            for (token, code) in tokens[start..].iter_mut().zip(codes) {
                let place = place(*code);
                if known[place] != *code {
                    known[place] = *code;
                    hashes[place] = hash_char(*code, &self.key);
                }
                *token = hashes[place];
            }
        }
    }
}

/// Number of characters whose hashes are looked up at once, without a branch.
const RUN: usize = 64;

fn hash_char(code: u32, key: &Key) -> u64 {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    key.token_hash(c.encode_utf8(&mut [0; 4]).as_bytes())
}
