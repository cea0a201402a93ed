//! All pairs of bit strings within a Hamming distance: exact, any lengths mixed.

use crate::collection::items::Items;
use crate::collection::outlines::write_tokens;
use crate::collection::prefilter::Test;
use crate::collection::search::{Search, Source};
use crate::collection::sweep::{read_stored, sweep};
use crate::collection::verify::HeldRecord;
use crate::pg::bits::Bits;
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, check_interrupts, raise};
use crate::pg::progress::Progress;
use crate::pg::query::{Query, work_mem_bytes};
use crate::pg::spool::Records;
use crate::pg::srf::Rows;
use crate::pg::value::Keys;
use bitvec::prelude::*;
use neardup::bands::HammingBlocks;
use neardup::bands::plan::hamming_blocks;
use neardup::candidates::{Sides, token};
use neardup::hamming;
use neardup::memory::Grow;
use pgrx::prelude::*;
use std::collections::BTreeMap;

/// The bit strings of a query. A record is the stored value: 4 bytes of length, then the bits.
struct BitStrings {
    keys: Keys,
    records: Records,
    /// The string that is compared with many.
    held: HeldRecord,
}

/// Implements `hamming_pairs(key, query, distance)`.
///
/// # Errors
/// `invalid_parameter_value` for a negative or too great distance, `datatype_mismatch` for columns
/// of other types.
#[pg_extern(sql = false)]
fn hamming_pairs(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let distance = call.argument(2, "distance").value() as i32;
    let mut strings = BitStrings::read(&call);
    let items = Items::of_records(&mut strings.records);
    let mut rows = call.rows();
    let mut buffer = Vec::new();
    let mut by_length: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for item in 0..items.len() {
        let record = strings
            .records
            .read(items.first_row(item) as usize, &mut buffer);
        let same_length = by_length.entry(length(record)).or_default();
        same_length.try_push(item).or_raise();
        items.for_each_pair_within(item, &mut |x, y| put(&strings.keys, x, y, 0, &mut rows));
    }
    for (length, same_length) in by_length {
        match hamming_blocks(length, i64::from(distance)).or_raise() {
            Some(blocks) => {
                let mut search = strings.search(&items, &same_length, &blocks, distance as usize);
                search.for_each_batch(&mut |batch| {
                    for (a, b) in batch.pairs(&|_| Sides::BOTH) {
                        let [a, b] = [a, b].map(|kept| same_length[batch.item(kept) as usize]);
                        strings.compare(&items, (a, b), distance as u32, &mut rows);
                    }
                });
            }
            None => for_all_pairs(&same_length, &mut |pair| {
                strings.compare(&items, pair, distance as u32, &mut rows);
            }),
        }
    }
}

/// Returns where all strings are so short that every pair is within the distance.
fn for_all_pairs(items: &[u32], visit: &mut dyn FnMut((u32, u32))) {
    let mut progress = Progress::begin("comparing", Some(items.len()));
    for (number, &later) in items.iter().enumerate() {
        progress.step();
        for &earlier in &items[..number] {
            visit((earlier, later));
        }
    }
}

/// Bytes of bits, at most, by which helpers tell strings apart before they are compared.
const TESTED_BYTES: usize = 32;

/// Bytes of a record before the bits.
const LENGTH_LEN: usize = size_of::<i32>();

fn length(record: &[u8]) -> usize {
    let (length, _) = record
        .split_first_chunk::<LENGTH_LEN>()
        .expect("a bit string has a length");
    i32::from_ne_bytes(*length) as usize
}

fn bits(record: &[u8]) -> &BitSlice<u8, Msb0> {
    &record[LENGTH_LEN..].view_bits()[..length(record)]
}

impl BitStrings {
    fn read(call: &Call) -> Self {
        let key_type = call.argument_type(0);
        let mut strings = Self {
            keys: Keys::new(key_type),
            records: Records::new(work_mem_bytes()),
            held: HeldRecord::default(),
        };
        let query = Query::open(call.argument(1, "query"));
        let columns = query.columns();
        let [key, bits] = columns.as_slice() else {
            raise(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                &format!("the query yields {} columns", columns.len()),
                "Valid are two columns: the key and the bit string.",
            );
        };
        let key = key.of_type(key_type, "first", "key");
        let bits = bits
            .if_type(pg_sys::VARBITOID)
            .unwrap_or_else(|| bits.of_type(pg_sys::BITOID, "second", "bit string"));
        let mut progress = Progress::reading("reading", &query);
        query.for_each(&mut |row| {
            progress.step();
            if let Some(bits) = row.get(bits) {
                // SAFETY: the column's type has been checked; the row outlives the borrow.
                let bits = unsafe { Bits::from_raw(bits) };
                strings.records.push(bits.stored());
                strings.keys.push(row.get(key));
            }
        });
        strings
    }

    fn search(
        &mut self,
        items: &Items,
        same_length: &[u32],
        blocks: &HammingBlocks,
        distance: usize,
    ) -> Search {
        let mut buffer = Vec::new();
        let first = items.first_row(same_length[0]) as usize;
        let record = self.records.read(first, &mut buffer);
        let tokens = size_of::<u32>() * blocks.keys(bits(record)).or_raise().len();
        let tested = (record.len() - LENGTH_LEN).min(TESTED_BYTES);
        let mut records = Records::of_width(tokens + tested, work_mem_bytes());
        let mut stored = read_stored(&mut self.records);
        sweep(
            &mut Progress::begin("cutting blocks", Some(same_length.len())),
            same_length.iter().copied(),
            &mut |item, record| stored(items.first_row(item), record),
            &|record, made, _| {
                let keys = blocks.keys(bits(record))?;
                write_tokens(keys.into_iter().map(|key| token(key as u64)), made)?;
                made.try_extend_from_slice(&record[LENGTH_LEN..][..tested])
            },
            &mut |_, made| records.push(made),
        );
        let mut source = Source {
            tokens: 0..tokens,
            test: Some(Test {
                fields: 8 * tested,
                bits: 1,
                equal: (8 * tested).saturating_sub(distance),
            }),
            items: same_length.len() as u32,
            record_of: &|number| number,
            records: &mut records,
            buffer: Vec::new(),
        };
        Search::new(&mut source, 1)
    }

    /// Puts the pairs of rows of two items, if they are close enough.
    fn compare(&mut self, items: &Items, (a, b): (u32, u32), distance: u32, rows: &mut Rows) {
        let (held, other) = (items.first_row(b), items.first_row(a));
        let (x, y) = self.held.load(&mut self.records, held, other);
        let found = hamming::distance(&x[LENGTH_LEN..], &y[LENGTH_LEN..]);
        if found <= distance {
            items.for_each_pair_across((a, b), &mut |x, y| put(&self.keys, x, y, found, rows));
        }
    }
}

fn put(keys: &Keys, a: u32, b: u32, distance: u32, rows: &mut Rows) {
    rows.put([keys.get(a), keys.get(b), (distance as i32).into_datum()]);
    check_interrupts();
}
