//! Finds the items that may have partners by their tokens, and divides them into batches that fit into memory.

use crate::collection::batch::{Batch, SMALLER_ONLY, entry, rows, same_key};
use crate::collection::documents::record_reader;
use crate::collection::form::{Form, ITEM, Prefilter, Test};
use crate::collection::outlines::{read_tokens, write_tokens};
use crate::collection::sweep::sweep;
use crate::pg::partitions::Partitions;
use crate::pg::prelude::*;
use crate::pg::temporary_file::most_files;
use neardup::candidates::{GroupSizes, choose, keys};
use neardup::cluster::UnionFind;
use neardup::memory::with_room;
use neardup::set::{sort, sort_distinct};
use std::ops::Range;

/// Number of bits of each token that are compared before rows are linked.
const LINK_BITS: u32 = 4;

/// The records of items. The search reads only the tokens and, optionally, the fields of a test.
pub struct TokenSource<'a> {
    pub records: &'a mut Records,
    /// Bytes of a record that hold the tokens.
    pub tokens: Range<usize>,
    /// The test that pairs must pass. Its fields follow the tokens.
    pub test: Option<Test>,
    pub items: u32,
    pub record_of: &'a dyn Fn(u32) -> u32,
    /// Scratch space for parts of records that are in a file.
    pub buffer: Vec<u8>,
}

impl TokenSource<'_> {
    fn bands(&self) -> usize {
        self.tokens.len() / size_of::<u32>()
    }

    /// Appends the range `bytes` of an item's record to `list`.
    fn read(&mut self, item: u32, bytes: Range<usize>, list: &mut Vec<u8>) {
        let record = (self.record_of)(item) as usize;
        let part = self.records.read_part(record, bytes, &mut self.buffer);
        list.try_extend_from_slice(part).or_raise();
    }

    /// Returns the keys of the tokens of all items, partitioned.
    fn keys(&mut self) -> Partitions {
        let (items, tokens) = (self.items, self.tokens.clone());
        let stage = ("dividing bands", items as usize * self.bands());
        Partitions::of_rows(
            stage,
            items,
            &mut |item, list| self.read(item, tokens.clone(), list),
            &|_, tokens, keys| {
                let tokens = read_tokens(tokens).enumerate();
                keys.try_extend(tokens.map(|(band, token)| GroupSizes::key(band, token)))
            },
        )
    }
}

/// The items that may have partners ("kept"), with their tokens. Partners are in the same batch. There is more than one
/// batch only if memory cannot hold all items.
pub type Batches = Box<dyn Iterator<Item = Batch>>;

/// Returns batches of the items that may have partners, that is, share at least `needed` tokens with other items. The
/// iterator loads a batch when it advances.
pub fn search(source: &mut TokenSource<'_>, needed: usize) -> Batches {
    let form = Form {
        bands: source.bands(),
        needed,
        test: source.test,
    };
    let mut kept = keep(source, form);
    if kept.len() > SMALLER_ONLY as usize {
        too_large("more than 2 147 483 648 rows may have partners", "");
    }
    let parts = if kept.is_in_memory() {
        collected([kept]).or_raise()
    } else {
        let sets = link(&mut kept, form);
        divide(kept, form, sets)
    };
    Box::new(parts.into_iter().map(move |part| Batch::load(part, &form)))
}

/// Returns the records of the items that may have partners.
fn keep(source: &mut TokenSource<'_>, form: Form) -> Records {
    let sizes = group_sizes(source);
    let mut kept = Records::new(work_mem_bytes() / 2);
    let make = |part: &[u8], made: &mut Vec<u8>, _: &mut dyn FnMut()| {
        let (tokens, fields) = part.split_at(form.tokens_len());
        let (row, mut chosen) = (collected(read_tokens(tokens))?, Vec::new());
        if choose(&row, form.needed, &sizes, &mut chosen)? {
            write_tokens(chosen.into_iter(), made)?;
            made.try_extend_from_slice(fields)?;
        }
        Ok(())
    };
    let start = source.tokens.start;
    let bytes = start..start + form.len() - ITEM;
    let mut record = Vec::new();
    sweep(
        &mut Progress::begin("choosing bands", source.items as usize),
        0..source.items,
        &mut |item, list| source.read(item, bytes.clone(), list),
        &make,
        &mut |item, made| {
            if !made.is_empty() {
                record.clear();
                record.try_extend_from_slice(&item.to_le_bytes()).or_raise();
                record.try_extend_from_slice(made).or_raise();
                kept.push(&record);
            }
        },
    );
    kept
}

/// Returns the number of items that have each token.
fn group_sizes(source: &mut TokenSource<'_>) -> GroupSizes {
    let keys = source.keys();
    let mut sizes = GroupSizes::new(keys.len(), work_mem_bytes()).or_raise();
    let work = |mut keys: Vec<u64>, check: &mut dyn FnMut()| {
        sort(&mut keys, check);
        let groups = keys.chunk_by(|a, b| a == b).filter(|group| group.len() > 1);
        collected(groups.map(|group| (group[0], group.len())))
    };
    keys.work_on("counting bands", &work, None, &mut |groups| {
        for (key, rows) in groups {
            sizes.add(key, rows);
        }
    });
    sizes
}

/// Number of items of the largest group whose pairs are compared. A larger one is joined whole: in a table of one
/// template, comparing every pair would take quadratic time.
const MOST_COMPARED: usize = 1 << 10;

/// Returns sets of kept items, numbered by their records. Items that may be partners are in the same set. Holds only a
/// few bits of each item in memory.
fn link(kept: &mut Records, form: Form) -> UnionFind {
    let (entries, prefilter) = entries(kept, form);
    let sets = UnionFind::new(kept.len() as u32).or_raise();
    let work = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
        sort_distinct(&mut entries, check);
        for group in entries.chunk_by(same_key).filter(|group| group.len() > 1) {
            let group = rows(group)?;
            let is_large = group.len() > MOST_COMPARED;
            sets.join_group(&group, group.len(), &mut |a, b| {
                check();
                is_large || prefilter.passes(a, b)
            })?;
        }
        Ok(())
    };
    entries.work_on("linking", &work, None, &mut |()| ());
    sets
}

/// Returns the keys of all kept items, each with the number of its record, and a filter that all partners pass: the
/// test in `form`, or without one a comparison of a few bits of each token.
fn entries(kept: &mut Records, form: Form) -> (Partitions, Prefilter) {
    let rows = kept.len() as u32;
    let test = form.test.unwrap_or(Test {
        fields: form.bands,
        bits: LINK_BITS,
        equal: form.needed,
    });
    let mut packed = with_room(test.bytes() * rows as usize).or_raise();
    let mut read_kept = record_reader(kept, None);
    let mut read = |row, record: &mut Vec<u8>| {
        let start = record.len();
        read_kept(row, record);
        let (tokens, fields) = record[start + ITEM..].split_at(form.tokens_len());
        let put = match form.test {
            Some(_) => packed.try_extend_from_slice(fields),
            None => packed.try_extend(tokens.chunks(2 * size_of::<u32>()).map(low_bits)),
        };
        put.or_raise();
    };
    let count = rows as usize * (form.bands - form.needed + 1);
    let stage = ("dividing bands", count);
    let entries = Partitions::of_rows(stage, rows, &mut read, &|row, record, entries| {
        let tokens = collected(form.parts(record).1)?;
        entries.try_extend(keys(&tokens).map(|key| entry(key, row)))
    });
    (entries, Prefilter { test, packed })
}

/// Packs the lowest bits of two stored tokens into a byte.
fn low_bits(tokens: &[u8]) -> u8 {
    let second = tokens.get(size_of::<u32>()).unwrap_or(&0);
    second << LINK_BITS | tokens[0] & ((1 << LINK_BITS) - 1)
}

/// Divides the records of kept items into parts. Items of the same set are in the same part. A part fits into memory
/// unless it is a single larger set.
fn divide(mut kept: Records, form: Form, sets: UnionFind) -> Vec<Records> {
    let rows = kept.len();
    let most = (work_mem_bytes() / 2 / form.len()).max(rows.div_ceil(most_files()));
    let sizes = filled(1, rows).or_raise();
    let part_of = sets.batches(sizes, u32::try_from(most).unwrap_or(u32::MAX));
    let part = part_of.iter().copied().max().unwrap_or(0);
    let budget = work_mem_bytes() / 4 / (part as usize + 1);
    let empty = (0..=part).map(|_| Records::new(budget));
    let mut parts = collected(empty).or_raise();
    let mut buffer = Vec::new();
    for row in over("dividing documents", 0..rows) {
        parts[part_of[row] as usize].push(kept.read(row, &mut buffer));
    }
    parts
}
