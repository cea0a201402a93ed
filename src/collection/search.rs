//! From the tokens of items to the pairs worth comparing.

use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory};
use crate::pg::helpers::in_order;
use crate::pg::numbers::Numbers;
use crate::pg::partitions::Partitions;
use crate::pg::progress::Progress;
use crate::pg::query::work_mem_bytes;
use helpers::Work;
use neardup::Result;
use neardup::candidates::{Frequencies, Sides, Tokens, choose, pairs_of_row};
use neardup::kernels::count_equal;
use neardup::memory::{Grow, collected, filled};
use neardup::minhash::Header;
use neardup::set::sort_distinct;

/// Goes through all items in order: makes a list of each one's tokens in any thread, and hands it on.
pub type Sweep<'a> = &'a mut dyn FnMut(&mut Progress, &Choose<'_>, &mut dyn FnMut(u32, &[u32]));

/// Appends to a list what is made of the tokens of an item.
pub type Choose<'a> = dyn Fn(&[u32], &mut Vec<u32>) -> Result<()> + Sync + 'a;

/// Pairs that a thread finds in one piece of work, about; beyond it the leader goes on.
const PAIRS: usize = 1 << 16;

/// The items that may have partners, under new numbers ("kept"), with their tokens.
pub struct Search {
    pub tokens: Tokens,
    items: Vec<u32>,
    prefilter: Option<Prefilter>,
}

impl Search {
    /// Goes through the tokens of all `items` items twice: to count them, and to keep those that may
    /// have partners.
    pub fn new(items: usize, bands: usize, needed: usize, sweep: Sweep<'_>) -> Self {
        let mut counts = or_out_of_memory(Frequencies::new(items * bands, work_mem_bytes()));
        sweep(
            &mut Progress::begin("counting bands", Some(items)),
            &|tokens, list| list.try_extend_from_slice(tokens),
            &mut |_, tokens| counts.add(tokens),
        );
        let (mut tokens, mut kept) = (Tokens::new(bands, needed), Vec::new());
        sweep(
            &mut Progress::begin("choosing bands", Some(items)),
            &|tokens, chosen| choose(tokens, needed, &counts, chosen).map(drop),
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

    /// Adds a prefilter: `read` appends the slots of the items as signatures of that header store
    /// them, in order, and pairs with fewer than `equal` equal ones are not compared.
    pub fn prefilter(
        &mut self,
        header: Header,
        equal: usize,
        read: impl FnOnce(&mut Progress, &[u32], &mut Vec<u8>),
    ) {
        let mut packed = Vec::new();
        or_out_of_memory(packed.try_reserve_exact(header.payload_len() * self.items.len()));
        let mut progress = Progress::begin("reading signatures", Some(self.items.len()));
        read(&mut progress, &self.items, &mut packed);
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
        let mut pairs = Numbers::new(work_mem_bytes() / 4);
        let mut put = |a, b| pairs.push(u64::from(a) << 32 | u64::from(b));
        self.in_key_order(
            &|entries, check| self.find(entries, sides, check),
            &mut |found| self.put_all(&found.or_raise(), sides, &mut put),
        );
        Pairs(pairs)
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
        let partitions = self.partitions();
        let mut progress = Progress::begin("searching bands", Some(partitions.len()));
        in_order(work, &mut |(), found| take(found), |line| {
            partitions.for_each(&mut |entries| {
                entries.iter().for_each(|_| progress.step());
                let bytes = size_of_val(entries.as_slice());
                line.put((), entries, bytes);
            });
        });
    }

    /// Returns the keys of all kept items, each with its item, divided by keys.
    fn partitions(&self) -> Partitions {
        let rows = self.tokens.rows();
        let entries = (0..rows).map(|kept| self.tokens.keys(kept).count()).sum();
        let mut partitions = Partitions::new(entries);
        let mut progress = Progress::begin("dividing bands", Some(rows as usize));
        for kept in 0..rows {
            progress.step();
            for key in self.tokens.keys(kept) {
                partitions.put(u64::from(key) << 32 | u64::from(kept));
            }
        }
        partitions
    }
}

/// Pairs of kept items.
pub struct Pairs(Numbers);

impl Pairs {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Visits the pairs, and frees them.
    pub fn for_each(self, visit: &mut dyn FnMut(u32, u32)) {
        self.0
            .for_each(&mut |pair| visit((pair >> 32) as u32, pair as u32));
    }
}

/// Pairs found among entries: those of the first `done` ones.
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
