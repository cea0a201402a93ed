//! The bit strings of a query within a Hamming distance of each other, exactly, any lengths mixed: pairs
//! and clusters.

use crate::collection::batch::Batch;
use crate::collection::form::Test;
use crate::collection::items::Items;
use crate::collection::matches::Visit;
use crate::collection::members::Members;
use crate::collection::outlines::write_tokens;
use crate::collection::search::{PartnerSearch, TokenSource};
use crate::collection::sweep::{read_stored, sweep};
use crate::options;
use crate::pg::bits::Bits;
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory};
use crate::pg::progress::{Progress, over};
use crate::pg::query::{CheckedColumn, Query};
use crate::pg::settings::work_mem_bytes;
use crate::pg::spool::{HeldRecord, Records};
use crate::pg::value::Keys;
use bitvec::prelude::*;
use neardup::bands::HammingBlocks;
use neardup::bands::plan::hamming_blocks;
use neardup::candidates::{Sides, token};
use neardup::cluster::UnionFind;
use neardup::hamming;
use neardup::memory::{Grow, collected};
use pgrx::pg_sys;
use std::collections::BTreeMap;

/// The rows of a query for (key, bit string).
pub struct BitStrings {
    pub keys: Keys,
    /// Keys of rows whose bit string is NULL.
    pub without: Keys,
    strings: Strings,
}

/// Bit strings by row. A record is the stored value: 4 bytes of length, then the bits.
struct Strings {
    distance: u32,
    records: Records,
    /// The string that is compared with many.
    held: HeldRecord,
}

/// Takes items that may be near each other, all of one length, and a batch that has them by their places;
/// None where the strings are so short that all are near each other.
type VisitBatch<'a> = &'a mut dyn FnMut(&mut Strings, &[u32], Option<&Batch>);

/// Takes two items, the earlier first, and their similarity.
type VisitItems<'a> = &'a mut dyn FnMut((u32, u32), f64);

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
    /// Returns the columns of a query for (key, bit string); None if it has others.
    fn columns(query: &Query, key_type: pg_sys::Oid) -> Option<[CheckedColumn; 2]> {
        let columns = query.columns();
        let [key, bits] = columns.as_slice() else {
            return None;
        };
        let bits = bits.if_type(pg_sys::BITOID);
        let bits = bits.or_else(|| columns[1].if_type(pg_sys::VARBITOID))?;
        Some([key.of_type(key_type, "first", "key"), bits])
    }

    /// Returns the bit strings that a call's query, its second argument, yields, to be compared by the
    /// distance that is its third; the query if it yields other columns.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` for a distance that is no whole number from 0.
    pub fn of_call(call: &Call) -> Result<Self, Query> {
        let (query, key_type) = (Query::open(call, 1, "query"), call.argument_type(0));
        match Self::columns(&query, key_type) {
            Some(columns) => {
                let distance = options::distance_argument(call, 2);
                Ok(Self::read(query, columns, key_type, distance))
            }
            None => Err(query),
        }
    }

    fn read(
        query: Query,
        [key, bits]: [CheckedColumn; 2],
        key_type: pg_sys::Oid,
        distance: u32,
    ) -> Self {
        let mut read = Self::new(key_type, distance);
        query.for_each("reading", &mut |row| {
            read.push(row.get(key), row.get(bits));
        });
        read
    }

    /// Returns no rows, to be added one by one.
    pub fn new(key_type: pg_sys::Oid, distance: u32) -> Self {
        Self {
            keys: Keys::new(key_type),
            without: Keys::new(key_type),
            strings: Strings {
                distance,
                records: Records::new(work_mem_bytes()),
                held: HeldRecord::default(),
            },
        }
    }

    /// Adds a row, of values whose types have been checked.
    pub fn push(&mut self, key: Option<pg_sys::Datum>, bits: Option<pg_sys::Datum>) {
        let Some(bits) = bits else {
            return self.without.push(key);
        };
        // SAFETY: vouched for by the caller; the row outlives the borrow.
        let bits = unsafe { Bits::from_raw(bits) };
        self.strings.records.push(bits.stored());
        self.keys.push(key);
    }

    /// Visits every pair of near rows once, the earlier row first, with the share of bits that are equal.
    pub fn for_each_pair(&mut self, visit: Visit<'_>) {
        let items = Items::of_records(&mut self.strings.records);
        let keys = &self.keys;
        let mut visit_rows = |x, y, similarity| {
            visit([keys.get(x), keys.get(y)], similarity);
            check_interrupts();
        };
        for item in 0..items.len() {
            items.for_each_pair_within(item, &mut |x, y| visit_rows(x, y, 1.0));
        }
        self.strings.for_each_near(&items, &mut |pair, similarity| {
            items.for_each_pair_across(pair, &mut |x, y| visit_rows(x, y, similarity));
        });
    }

    /// Visits every row in query order with the canonical row of its star cluster.
    pub fn for_each_in_star(&mut self, visit: Visit<'_>) {
        let items = Items::of_records(&mut self.strings.records);
        let mut members = Members::new(self.keys.len() as u32);
        self.strings
            .for_each_batch(&items, &mut |strings, near, batch| {
                let Some(batch) = batch else {
                    return strings.put_all(&items, near, &mut members);
                };
                let rows = items.rows_of(near.iter().copied());
                members.put_batch(batch, rows, &mut |a, b, least| {
                    let similarity = strings.similarity_in(&items, near, batch, (a, b));
                    similarity.filter(|similarity| *similarity >= least)
                });
            });
        members.for_each(&items, &mut |row, canonical, similarity| {
            visit([row, canonical].map(|row| self.keys.get(row)), similarity);
        });
    }

    /// Visits every row in query order with the first row of its connected component.
    pub fn for_each_in_component(&mut self, visit: Visit<'_>) {
        let items = Items::of_records(&mut self.strings.records);
        let mut sets = UnionFind::new();
        or_out_of_memory(sets.grow_to(items.len()));
        self.strings
            .for_each_batch(&items, &mut |strings, near, batch| {
                let mut connected = batch.map(|batch| {
                    batch.connect(&mut |a, b| {
                        let similarity = strings.similarity_in(&items, near, batch, (a, b));
                        similarity.is_some()
                    })
                });
                for (place, item) in (0..).zip(near) {
                    let first = connected.as_mut().map_or(0, |sets| sets.find(place));
                    sets.union(near[first as usize], *item);
                }
            });
        for row in over("listing rows", 0..self.keys.len() as u32) {
            let first = items.first_row(sets.find(items.of_row(row)));
            let (_, similarity) = self.strings.compare(row, first);
            visit([row, first].map(|row| self.keys.get(row)), similarity);
        }
    }
}

impl Strings {
    /// Visits the pairs of items within the distance.
    fn for_each_near(&mut self, items: &Items, visit: VisitItems<'_>) {
        self.for_each_batch(items, &mut |strings, near, batch| {
            let mut visit_if_near = |pair| {
                if let Some(similarity) = strings.similarity(items, pair) {
                    visit(pair, similarity);
                }
            };
            match batch {
                Some(batch) => {
                    let pairs = batch.pairs(&|_| Sides::BOTH);
                    pairs.for_each(|(a, b)| visit_if_near((near[a as usize], near[b as usize])));
                }
                None => for_all_pairs(near, &mut visit_if_near),
            }
        });
    }

    /// Visits the items of one length after the other, those that may be near each other together.
    fn for_each_batch(&mut self, items: &Items, visit: VisitBatch<'_>) {
        let mut buffer = Vec::new();
        let mut by_length: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for item in 0..items.len() {
            let row = items.first_row(item) as usize;
            let length = length(self.records.read(row, &mut buffer));
            by_length
                .entry(length)
                .or_default()
                .try_push(item)
                .or_raise();
        }
        for (length, same_length) in by_length {
            match hamming_blocks(length, i64::from(self.distance)).or_raise() {
                Some(blocks) => {
                    let mut search = self.search(items, &same_length, &blocks);
                    search.for_each_batch(&mut |batch| {
                        let kept = 0..batch.tokens.rows();
                        let near = kept.map(|kept| same_length[batch.item(kept) as usize]);
                        visit(self, &collected(near).or_raise(), Some(&batch));
                    });
                }
                None => visit(self, &same_length, None),
            }
        }
    }

    /// Puts the rows of items that are all near each other into the cluster of the first.
    fn put_all(&mut self, items: &Items, near: &[u32], members: &mut Members) {
        let canonical = items.first_row(near[0]);
        for &item in over("clustering", near[1..].iter()) {
            let (_, similarity) = self.compare(canonical, items.first_row(item));
            for row in items.rows(item) {
                members.put(row, canonical, similarity);
            }
        }
    }

    fn search(
        &mut self,
        items: &Items,
        same_length: &[u32],
        blocks: &HammingBlocks,
    ) -> PartnerSearch {
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
        let mut source = TokenSource {
            tokens: 0..tokens,
            test: Some(Test {
                fields: 8 * tested,
                bits: 1,
                equal: (8 * tested).saturating_sub(self.distance as usize),
            }),
            items: same_length.len() as u32,
            record_of: &|number| number,
            records: &mut records,
            buffer: Vec::new(),
        };
        PartnerSearch::new(&mut source, 1)
    }

    /// Returns the similarity of two items of a batch, given by their places; None beyond the distance.
    fn similarity_in(
        &mut self,
        items: &Items,
        near: &[u32],
        batch: &Batch,
        (a, b): (u32, u32),
    ) -> Option<f64> {
        check_interrupts();
        let pair = (near[a as usize], near[b as usize]);
        batch
            .passes(a, b)
            .then(|| self.similarity(items, pair))
            .flatten()
    }

    /// Returns the similarity of two items, None beyond the distance; calls with one second item after the
    /// other read it once.
    fn similarity(&mut self, items: &Items, (a, b): (u32, u32)) -> Option<f64> {
        let (distance, similarity) = self.compare(items.first_row(b), items.first_row(a));
        (distance <= self.distance).then_some(similarity)
    }

    /// Returns the distance of the strings of two rows, of one length, and the share of bits that are equal.
    fn compare(&mut self, held: u32, other: u32) -> (u32, f64) {
        let (x, y) = self.held.load(&mut self.records, held, other);
        let distance = hamming::distance(&x[LENGTH_LEN..], &y[LENGTH_LEN..]);
        let share = f64::from(distance) / length(x).max(1) as f64;
        (distance, 1.0 - share)
    }
}

/// Visits all pairs, where the strings are so short that each is within the distance.
fn for_all_pairs(items: &[u32], visit: &mut dyn FnMut((u32, u32))) {
    for (number, &later) in over("comparing", items.iter().enumerate()) {
        for &earlier in &items[..number] {
            visit((earlier, later));
        }
    }
}
