//! From the tokens of items to the pairs worth comparing.

use crate::collection::outlines::read_tokens;
use crate::collection::sweep::sweep;
use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory};
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::numbers::Numbers;
use crate::pg::partitions::Partitions;
use crate::pg::parts::Parts;
use crate::pg::progress::Progress;
use crate::pg::query::work_mem_bytes;
use crate::pg::sort::{BigintSort, SortedBigints};
use crate::pg::spool::Records;
use helpers::Work;
use neardup::Result;
use neardup::candidates::{GroupSizes, Sides, Tokens, choose, pairs_of_row};
use neardup::cluster::{Tiles, UnionFind};
use neardup::kernels::count_equal;
use neardup::memory::{Grow, collected, filled, with_room};
use neardup::minhash::Header;
use neardup::set::{sort, sort_distinct};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tokens of items, in parts of records.
pub struct Source<'a> {
    pub records: &'a mut Records,
    /// Bytes of a record that hold the tokens.
    pub bytes: Range<usize>,
    pub items: u32,
    pub record_of: &'a dyn Fn(u32) -> u32,
    /// Room for a part that is in a file.
    pub buffer: Vec<u8>,
}

impl Source<'_> {
    fn bands(&self) -> usize {
        self.bytes.len() / size_of::<u32>()
    }

    /// Appends a part of the record of an item.
    fn read(&mut self, item: u32, bytes: Range<usize>, list: &mut Vec<u8>) {
        let record = (self.record_of)(item) as usize;
        let part = self.records.read_part(record, bytes, &mut self.buffer);
        list.try_extend_from_slice(part).or_raise();
    }

    /// Returns the keys of all tokens, divided.
    fn keys(&mut self) -> Partitions {
        let (bands, items) = (self.bands(), self.items);
        let mut partitions = Partitions::new(items as usize * bands);
        let divider = partitions.divider();
        let work = |tokens: Vec<u8>, _: &mut dyn FnMut()| {
            let mut keys = with_room(tokens.len() / size_of::<u32>())?;
            for row in tokens.chunks_exact(bands * size_of::<u32>()) {
                for (band, token) in read_tokens(row).enumerate() {
                    keys.try_push(GroupSizes::key(band, token))?;
                }
            }
            divider.divide(&keys)
        };
        let mut take = |(), divided: Result<Parts<u8>>| partitions.put(&divided.or_raise());
        let mut progress = Progress::begin("dividing bands", Some(items as usize));
        in_order(&work, &mut take, |line| {
            let mut tokens = Vec::new();
            for item in 0..items {
                progress.step();
                self.read(item, self.bytes.clone(), &mut tokens);
                if tokens.len() >= piece_bytes() || item + 1 == items {
                    let bytes = tokens.len();
                    line.put((), std::mem::take(&mut tokens), bytes);
                }
            }
        });
        partitions
    }
}

/// Pairs that a thread finds in one piece of work, about; beyond it the leader goes on.
const PAIRS: usize = 1 << 16;

/// The items that may have partners, under new numbers ("kept"), with their tokens.
pub struct Search {
    pub tokens: Tokens,
    items: Vec<u32>,
    prefilter: Option<Prefilter>,
}

impl Search {
    /// Keeps the items that may have partners, which share `needed` tokens at least.
    pub fn new(source: &mut Source<'_>, needed: usize) -> Self {
        let sizes = group_sizes(source);
        let (mut tokens, mut kept) = (Tokens::new(source.bands(), needed), Vec::new());
        let make = |part: &[u8], chosen: &mut Vec<u32>, _: &mut dyn FnMut()| {
            let row = collected(read_tokens(part))?;
            choose(&row, needed, &sizes, chosen).map(drop)
        };
        let bytes = source.bytes.clone();
        sweep(
            &mut Progress::begin("choosing bands", Some(source.items as usize)),
            0..source.items,
            &mut |item, list| source.read(item, bytes.clone(), list),
            &make,
            &mut |item, chosen| {
                if !chosen.is_empty() {
                    tokens.push(chosen).or_raise();
                    kept.try_push(item).or_raise();
                }
            },
        );
        Self {
            tokens,
            items: kept,
            prefilter: None,
        }
    }

    /// Adds a prefilter: a part of the records holds the slots of the items as signatures of that
    /// header store them, and pairs with fewer than `equal` equal ones are not compared.
    pub fn prefilter(
        &mut self,
        source: &mut Source<'_>,
        part: Range<usize>,
        header: Header,
        equal: usize,
    ) {
        let mut packed = with_room(header.payload_len() * self.items.len()).or_raise();
        let mut progress = Progress::begin("reading slots", Some(self.items.len()));
        for &item in &self.items {
            progress.step();
            source.read(item, part.clone(), &mut packed);
        }
        self.prefilter = Some(Prefilter {
            packed,
            header,
            equal,
        });
    }

    /// Returns the item behind a kept number.
    pub fn item(&self, kept: u32) -> u32 {
        self.items[kept as usize]
    }

    /// Returns whether two kept items pass the prefilter.
    pub fn passes(&self, a: u32, b: u32) -> bool {
        self.prefilter
            .as_ref()
            .is_none_or(|filter| filter.passes(a, b))
    }

    /// Returns each pair of kept items worth comparing, once, of which one has rows on side a and the
    /// other on side b. `sides` is that of a kept number.
    pub fn pairs(&self, sides: &(dyn Fn(u32) -> Sides + Sync)) -> Pairs {
        let pairs = self.pairs_up_to(usize::MAX, sides);
        pairs.expect("there is no limit")
    }

    /// Returns the same; None where there are more than `most`.
    pub fn pairs_up_to(&self, most: usize, sides: &(dyn Fn(u32) -> Sides + Sync)) -> Option<Pairs> {
        let mut pairs = Numbers::new(work_mem_bytes() / 4);
        let mut groups = UnionFind::new();
        or_out_of_memory(groups.grow_to(self.tokens.rows()));
        let are_too_many = AtomicBool::new(false);
        let mut put = |a, b| {
            if pairs.len() >= most {
                are_too_many.store(true, Ordering::Relaxed);
            } else {
                groups.union(a, b);
                pairs.push(u64::from(a) << 32 | u64::from(b));
            }
        };
        let find = |entries, check: &mut dyn FnMut()| match are_too_many.load(Ordering::Relaxed) {
            true => Ok(Found::default()),
            false => self.find(entries, sides, check),
        };
        self.in_key_order(&find, &mut |found| {
            if !are_too_many.load(Ordering::Relaxed) {
                self.put_all(&found.or_raise(), sides, &mut put);
            }
        });
        (!are_too_many.load(Ordering::Relaxed)).then(|| Pairs::of(pairs, groups))
    }

    /// Sorts entries, and finds the pairs of the first of them, in any thread.
    fn find(
        &self,
        mut entries: Vec<u64>,
        sides: &(dyn Fn(u32) -> Sides + Sync),
        check: &mut dyn FnMut(),
    ) -> Result<Found> {
        sort_distinct(&mut entries, check);
        let (mut pairs, mut done) = (Vec::new(), 0);
        for group in entries.chunk_by(same_key) {
            let rows = rows(group)?;
            for &row in &rows {
                check();
                let mut failed = Ok(());
                self.pairs_of(row, &rows, key(group[0]), sides, &mut |a, b| {
                    if failed.is_ok() {
                        failed = pairs.try_push((a, b));
                    }
                });
                failed?;
                done += 1;
                if pairs.len() >= PAIRS {
                    return Ok(Found {
                        pairs,
                        entries,
                        done,
                    });
                }
            }
        }
        Ok(Found {
            pairs,
            entries,
            done,
        })
    }

    /// Puts the pairs found, and finds and puts the others: they were too many to be kept.
    fn put_all(
        &self,
        found: &Found,
        sides: &(dyn Fn(u32) -> Sides + Sync),
        put: &mut dyn FnMut(u32, u32),
    ) {
        found.pairs.iter().for_each(|&(a, b)| put(a, b));
        let mut place = 0;
        for group in found.entries.chunk_by(same_key) {
            let left = found.done.saturating_sub(place).min(group.len());
            place += group.len();
            if left == group.len() {
                continue;
            }
            let rows = rows(group).or_raise();
            for &row in &rows[left..] {
                check_interrupts();
                self.pairs_of(row, &rows, key(group[0]), sides, put);
            }
        }
    }

    /// Visits the pairs of a row with others of its group that pass the prefilter.
    fn pairs_of(
        &self,
        row: u32,
        group: &[u32],
        key: u32,
        sides: &(dyn Fn(u32) -> Sides + Sync),
        visit: &mut dyn FnMut(u32, u32),
    ) {
        pairs_of_row(&self.tokens, row, group, key, sides, &mut |a, b| {
            if self.passes(a, b) {
                visit(a, b);
            }
        });
    }

    /// Visits every key with the kept items that look for partners under it, ascending.
    pub fn for_each_group(&self, visit: &mut dyn FnMut(u32, &[u32])) {
        let sort = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
            sort_distinct(&mut entries, check);
            entries
        };
        self.in_key_order(&sort, &mut |entries| {
            for group in entries.chunk_by(same_key).filter(|group| group.len() > 1) {
                visit(key(group[0]), &rows(group).or_raise());
            }
        });
    }

    /// Returns kept items that are likely to be compared, in order: those that pass the prefilter with
    /// the first of a group, or with the one before.
    pub fn likely(&self) -> impl Iterator<Item = u32> {
        let mut is_likely = filled(false, self.items.len()).or_raise();
        let work = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
            sort_distinct(&mut entries, check);
            let mut likely = Vec::new();
            for group in entries.chunk_by(same_key) {
                check();
                let mut before = group[0] as u32;
                for row in group[1..].iter().map(|entry| *entry as u32) {
                    let others = [group[0] as u32, before];
                    if let Some(other) = others.into_iter().find(|other| self.passes(*other, row)) {
                        likely.try_extend([other, row])?;
                    }
                    before = row;
                }
            }
            Ok(likely)
        };
        self.in_key_order(&work, &mut |likely: Result<Vec<u32>>| {
            for kept in likely.or_raise() {
                is_likely[kept as usize] = true;
            }
        });
        let likely = (0..).zip(is_likely);
        likely.filter_map(|(kept, is_likely)| is_likely.then_some(kept))
    }

    /// Works on the entries of all keys, in parts of which each holds all entries of its keys.
    fn in_key_order<R: Send>(&self, work: &Work<'_, Vec<u64>, R>, take: &mut dyn FnMut(R)) {
        self.partitions().work_on("searching bands", work, take);
    }

    /// Returns the keys of all kept items, each with its item, divided by keys.
    fn partitions(&self) -> Partitions {
        let rows = self.tokens.rows();
        let entries = (0..rows).map(|kept| self.tokens.keys(kept).count()).sum();
        let mut partitions = Partitions::new(entries);
        let divider = partitions.divider();
        let work = |kept: Range<u32>, _: &mut dyn FnMut()| {
            let mut entries = Vec::new();
            for kept in kept {
                let entry = |key| u64::from(key) << 32 | u64::from(kept);
                entries.try_extend(self.tokens.keys(kept).map(entry))?;
            }
            divider.divide(&entries)
        };
        let mut take = |(), divided: Result<Parts<u8>>| partitions.put(&divided.or_raise());
        let mut progress = Progress::begin("dividing bands", Some(rows as usize));
        let bytes = self.tokens.bands() * size_of::<u64>();
        let at_once = (piece_bytes() / bytes).max(1);
        in_order(&work, &mut take, |line| {
            for start in (0..rows).step_by(at_once) {
                let end = rows.min(start.saturating_add(at_once as u32));
                (start..end).for_each(|_| progress.step());
                line.put((), start..end, at_once * bytes);
            }
        });
        partitions
    }
}

/// Counts the items that have each token.
fn group_sizes(source: &mut Source<'_>) -> GroupSizes {
    let keys = source.keys();
    let sizes = GroupSizes::new(keys.len(), work_mem_bytes());
    let mut sizes = sizes.or_raise();
    let work = |mut keys: Vec<u64>, check: &mut dyn FnMut()| {
        sort(&mut keys, check);
        let groups = keys.chunk_by(|a, b| a == b).filter(|group| group.len() > 1);
        collected(groups.map(|group| (group[0], group.len())))
    };
    keys.work_on("counting bands", &work, &mut |groups| {
        for (key, rows) in groups.or_raise() {
            sizes.add(key, rows);
        }
    });
    sizes
}

/// Pairs of kept items, in the order in which they are best compared.
pub struct Pairs {
    sorted: SortedBigints,
    tiles: Tiles,
    len: usize,
}

impl Pairs {
    /// Returns how many there are, at most.
    pub fn most(&self) -> usize {
        self.len
    }

    fn of(pairs: Numbers, mut groups: UnionFind) -> Self {
        let len = pairs.len();
        let tiles = Tiles::of(&mut groups).or_raise();
        let mut sort = BigintSort::begin();
        let mut progress = Progress::begin("sorting pairs", Some(len));
        pairs.for_each(&mut |pair| {
            progress.step();
            sort.put(tiles.place((pair >> 32) as u32, pair as u32) as i64);
        });
        Self {
            sorted: sort.sorted(),
            tiles,
            len,
        }
    }
}

impl Iterator for Pairs {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        self.sorted
            .next()
            .map(|place| self.tiles.pair(place as u64))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.len))
    }
}

/// Pairs found among entries: those of the first `done` ones.
#[derive(Default)]
struct Found {
    pairs: Vec<(u32, u32)>,
    entries: Vec<u64>,
    done: usize,
}

fn key(entry: u64) -> u32 {
    (entry >> 32) as u32
}

fn same_key(a: &u64, b: &u64) -> bool {
    key(*a) == key(*b)
}

/// Returns the kept items of a group of entries.
fn rows(group: &[u64]) -> Result<Vec<u32>> {
    collected(group.iter().map(|entry| *entry as u32))
}

/// A few bits of each slot: enough to tell that too few are equal.
struct Prefilter {
    packed: Vec<u8>,
    header: Header,
    equal: usize,
}

impl Prefilter {
    fn passes(&self, a: u32, b: u32) -> bool {
        let (slots, slot_bits) = (self.header.slots, self.header.slot_bits);
        let bytes = self.header.payload_len();
        let of = |kept: u32| &self.packed[kept as usize * bytes..][..bytes];
        count_equal(of(a), of(b), slots.into(), slot_bits.into()) >= self.equal
    }
}
