//! Finds all pairs of bit strings of equal length within a Hamming distance, exactly. A collection may have strings of
//! different lengths. The record of a string is the stored value: 4 bytes of length, then the bits.

use crate::collection::documents::record_reader;
use crate::collection::form::Test;
use crate::collection::items::Items;
use crate::collection::outlines::write_tokens;
use crate::collection::search::{self, Batches, TokenSource};
use crate::collection::sweep::sweep;
use crate::pg::prelude::*;
use bitvec::prelude::*;
use neardup::bands::plan::hamming_blocks;
use neardup::candidates::token;
use neardup::hamming;
use std::collections::BTreeMap;

/// Maximum number of bytes of a string that the prefilter tests.
const TESTED_BYTES: usize = 32;

/// Number of bytes of a record before the bits.
const LENGTH_LEN: usize = size_of::<i32>();

/// Splits a record into the length in bits and the bytes.
fn parts(record: &[u8]) -> (usize, &[u8]) {
    let (length, bytes) = record
        .split_first_chunk::<LENGTH_LEN>()
        .expect("a bit string has a length");
    (i32::from_ne_bytes(*length) as usize, bytes)
}

/// Returns the Hamming distance of two bit strings and their share of equal bits, or None if their lengths differ.
pub fn compare(x: &[u8], y: &[u8]) -> Option<(u32, f64)> {
    let ((length, x), (other_length, y)) = (parts(x), parts(y));
    let distance = (length == other_length).then(|| hamming::distance(x, y))?;
    Some((distance, share_of_equal(length, distance)))
}

/// Returns the share of equal bits of two strings of `length` bits that are `distance` apart.
pub fn share_of_equal(length: usize, distance: u32) -> f64 {
    1.0 - f64::from(distance) / length.max(1) as f64
}

/// Returns the items by the length of their strings.
pub fn by_length(strings: &mut Records, items: &Items) -> BTreeMap<usize, Vec<u32>> {
    let (mut by_length, mut buffer) = (BTreeMap::<usize, Vec<u32>>::new(), Vec::new());
    for item in 0..items.len() {
        let row = items.first_row(item) as usize;
        let (length, _) = parts(strings.read_part(row, 0..LENGTH_LEN, &mut buffer));
        let same_length = by_length.entry(length).or_default();
        same_length.try_push(item).or_raise();
    }
    by_length
}

/// Returns batches of the items `same_length`, all of one `length`, that may have partners within `distance`. If
/// strings of this length cannot differ in more than `distance` bits, all share one key.
pub fn search(
    strings: &mut Records,
    items: &Items,
    (length, same_length): (usize, &[u32]),
    distance: u32,
) -> Batches {
    let blocks = hamming_blocks(length, i64::from(distance)).or_raise();
    let keys_of = |bytes: &[u8]| -> Result<Vec<i64>> {
        match &blocks {
            Some(blocks) => blocks.keys(&bytes.view_bits::<Msb0>()[..length]),
            None => collected([0]),
        }
    };
    let tested = length.div_ceil(8).min(TESTED_BYTES);
    let mut records = Records::new(work_mem_bytes());
    let mut stored = record_reader(strings, None);
    sweep(
        &mut Progress::begin("cutting blocks", same_length.len()),
        same_length.iter().copied(),
        &mut |item, record| stored(items.first_row(item), record),
        &|record, made, _| {
            let (_, bytes) = parts(record);
            let tokens = keys_of(bytes)?.into_iter().map(|key| token(key as u64));
            write_tokens(tokens, made)?;
            made.try_extend_from_slice(&bytes[..tested])
        },
        &mut |_, made| records.push(made),
    );
    let mut source = TokenSource {
        tokens: 0..records.length(0) - tested,
        test: Some(Test {
            fields: 8 * tested,
            bits: 1,
            equal: (8 * tested).saturating_sub(distance as usize),
        }),
        items: same_length.len() as u32,
        record_of: &|number| number,
        records: &mut records,
        buffer: Vec::new(),
    };
    search::search(&mut source, 1)
}
