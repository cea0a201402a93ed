//! A batch of items that may have partners, held in memory, and the pairs among them that are worth comparing.

use crate::collection::form::{Form, Prefilter};
use crate::pg::partitions::Partitions;
use crate::pg::prelude::*;
use crate::pg::sort::BigintSort;
use neardup::candidates::{Sides, Tokens, pairs_of_row};
use neardup::cluster::{Tiles, UnionFind};
use neardup::memory::with_room;
use neardup::set::sort_distinct;

/// A helper leaves a work item with this many pairs or more to the leader.
const PAIRS: usize = 1 << 16;

/// Number of entries whose rows are loaded into the processor's cache together, before they are compared.
const AHEAD: usize = 64;

/// Items that may have partners, renumbered from 0 ("kept" numbers), with their tokens.
pub struct Batch {
    pub tokens: Tokens,
    items: Vec<u32>,
    prefilter: Option<Prefilter>,
}

impl Batch {
    /// Loads a batch from the records of kept items.
    pub fn load(mut records: Records, form: &Form) -> Self {
        let rows = records.len();
        let mut tokens = Tokens::new(form.bands, form.needed, rows).or_raise();
        let (mut items, mut packed) = (with_room(rows).or_raise(), Vec::new());
        let mut buffer = Vec::new();
        for row in 0..rows {
            let (item, row, fields) = form.parts(records.read(row, &mut buffer));
            items.try_push(item).or_raise();
            tokens.push(row).or_raise();
            packed.try_extend_from_slice(fields).or_raise();
        }
        Self {
            tokens,
            items,
            prefilter: form.test.map(|test| Prefilter { test, packed }),
        }
    }

    /// Replaces each item i by `items[i]`.
    pub fn renumber(&mut self, items: &[u32]) {
        for item in &mut self.items {
            *item = items[*item as usize];
        }
    }

    /// Returns the item with the kept number `kept`.
    pub fn item(&self, kept: u32) -> u32 {
        self.items[kept as usize]
    }

    /// Returns whether the kept items `a` and `b` pass the prefilter.
    pub fn passes(&self, a: u32, b: u32) -> bool {
        self.prefilter
            .as_ref()
            .is_none_or(|filter| filter.passes(a, b))
    }

    /// Returns the pairs of kept items that are worth comparing, each once. One item of a pair has rows on side a, the
    /// other on side b. `sides` returns the sides of a kept item.
    ///
    /// The pairs are in the order of [`Tiles`], so that rows are not loaded again and again. Also returns the number of
    /// pairs.
    pub fn pairs(
        &self,
        sides: &(dyn Fn(u32) -> Sides + Sync),
    ) -> (impl Iterator<Item = (u32, u32)> + use<>, usize) {
        let mut pairs = Records::new(work_mem_bytes() / 4);
        let groups = UnionFind::new(self.tokens.rows()).or_raise();
        let mut put = |a, b| {
            groups.union(a, b);
            pairs.push(&(u64::from(a) << 32 | u64::from(b)).to_le_bytes());
        };
        for &kind in self.key_kinds() {
            let find = |entries, check: &mut dyn FnMut()| self.find(kind, entries, sides, check);
            let mut take = |(found, left): Found| {
                found.into_iter().for_each(|(a, b)| put(a, b));
                let put = &mut |a, b| {
                    put(a, b);
                    Ok(true)
                };
                let check = &mut check_interrupts;
                self.pairs_among(kind, &left, sides, check, put).or_raise();
            };
            self.partitions(kind)
                .work_on(SEARCHING, &find, None, &mut take);
        }
        let count = pairs.len();
        let tiles = Tiles::of(&groups).or_raise();
        let (mut sort, mut buffer) = (BigintSort::begin(), Vec::new());
        for number in over("sorting pairs", 0..count) {
            let (bytes, _) = pairs.read(number, &mut buffer).as_chunks();
            let pair = u64::from_le_bytes(bytes[0]);
            sort.put(tiles.place((pair >> 32) as u32, pair as u32) as i64);
        }
        let in_tiles = sort.sorted().map(move |place| tiles.pair(place as u64));
        (in_tiles, count)
    }

    /// Returns the pairs among `entries` or, if there are [`PAIRS`] or more, the sorted entries whose keys repeat. Runs
    /// in any thread.
    fn find(
        &self,
        kind: KeyKind,
        mut entries: Vec<u64>,
        sides: &(dyn Fn(u32) -> Sides + Sync),
        check: &mut dyn FnMut(),
    ) -> Result<Found> {
        sort_distinct(&mut entries, check);
        let groups = entries.chunk_by(same_key).filter(|group| group.len() > 1);
        let entries = collected(groups.flatten().copied())?;
        let mut pairs = Vec::new();
        let is_all = self.pairs_among(kind, &entries, sides, check, &mut |a, b| {
            pairs.try_push((a, b))?;
            Ok(pairs.len() < PAIRS)
        })?;
        Ok(match is_all {
            true => (pairs, Vec::new()),
            false => (Vec::new(), entries),
        })
    }

    /// Calls `visit` for each pair of kept items among the sorted `entries` that meet under the entries' key and pass
    /// the prefilter, until `visit` returns false. Returns whether `visit` always returned true.
    fn pairs_among(
        &self,
        kind: KeyKind,
        entries: &[u64],
        sides: &(dyn Fn(u32) -> Sides + Sync),
        check: &mut dyn FnMut(),
        visit: &mut dyn FnMut(u32, u32) -> Result<bool>,
    ) -> Result<bool> {
        let (mut done, mut loaded) = (0, 0);
        for group in entries.chunk_by(same_key) {
            if done >= loaded {
                loaded = entries.len().min(done + AHEAD);
                let ahead = entries[done..loaded].iter();
                self.tokens.load(ahead.map(|entry| kept_item(*entry)));
            }
            done += group.len();
            let group = Group::of(group)?;
            let meet = |a, b| match kind {
                KeyKind::Tokens => self.tokens.meet(a, b, group.key),
                KeyKind::Elements => self.tokens.meet_under_element(a, b, group.key),
            };
            for (place, &row) in group.rows.iter().enumerate() {
                check();
                let mut goes_on = Ok(true);
                pairs_of_row(row, group.met(place), &meet, sides, &mut |a, b| {
                    if goes_on == Ok(true) && self.passes(a, b) {
                        goes_on = visit(a, b);
                    }
                });
                if !goes_on? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns sets of kept items, connected by the pairs for which `similar` returns true. Calls `similar` only for
    /// pairs that are not connected yet.
    pub fn connect(&self, similar: &mut dyn FnMut(u32, u32) -> bool) -> UnionFind {
        let sets = UnionFind::new(self.tokens.rows()).or_raise();
        for &kind in self.key_kinds() {
            let mut progress = Progress::begin("connecting", self.keys(kind));
            for_each_group(self.partitions(kind), SEARCHING, &mut |group| {
                let group = Group::of(group).or_raise();
                group.rows.iter().for_each(|_| progress.step());
                let joined = sets.join_group(&group.rows, group.meet_any, &mut |a, b| {
                    check_interrupts();
                    let meet = match kind {
                        KeyKind::Tokens => self.tokens.meet_first(a, b, group.key),
                        KeyKind::Elements => self.tokens.meet_under_element(a, b, group.key),
                    };
                    meet && similar(a, b)
                });
                joined.or_raise();
            });
        }
        sets
    }

    /// Returns, in ascending order, the kept items that are likely to be compared. They are the two items of each pair
    /// that passes the prefilter and consists of an item and the first item of its group, or else of an item and the
    /// item before it.
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
        let tokens = self.partitions(KeyKind::Tokens);
        tokens.work_on(SEARCHING, &work, None, &mut |likely: Vec<u32>| {
            for kept in likely {
                is_likely[kept as usize] = true;
            }
        });
        let likely = (0..).zip(is_likely);
        likely.filter_map(|(kept, is_likely)| is_likely.then_some(kept))
    }

    /// Returns the total number of keys of this kind of all kept items.
    fn keys(&self, kind: KeyKind) -> usize {
        let of_row = |kept| match kind {
            KeyKind::Tokens => self.tokens.keys(kept).count(),
            KeyKind::Elements => self.tokens.prefix(kept).iter().map(|part| part.len()).sum(),
        };
        (0..self.tokens.rows()).map(of_row).sum()
    }

    /// Returns the entries of all kept items, partitioned by key.
    fn partitions(&self, kind: KeyKind) -> Partitions {
        let stage = ("dividing bands", self.keys(kind));
        let rows = self.tokens.rows();
        Partitions::of_rows(
            stage,
            rows,
            &mut |_, _| (),
            &|kept, _, entries| match kind {
                KeyKind::Tokens => {
                    entries.try_extend(self.tokens.keys(kept).map(|key| entry(key, kept)))
                }
                KeyKind::Elements => {
                    let [larger, smaller] = self.tokens.prefix(kept);
                    entries.try_extend(larger.iter().map(|element| entry(*element, kept)))?;
                    let kept = kept | SMALLER_ONLY;
                    entries.try_extend(smaller.iter().map(|element| entry(*element, kept)))
                }
            },
        )
    }

    /// Returns the kinds of keys under which kept items meet.
    fn key_kinds(&self) -> &'static [KeyKind] {
        match self.tokens.has_prefixes() {
            true => &[KeyKind::Tokens, KeyKind::Elements],
            false => &[KeyKind::Tokens],
        }
    }
}

/// Progress stage of every pass over the keys.
const SEARCHING: &str = "searching bands";

/// The pairs among entries, or the entries if there are too many pairs.
type Found = (Vec<(u32, u32)>, Vec<u64>);

/// Calls `visit` with the distinct entries of each key that at least two entries have, in ascending order. Helper
/// threads sort them.
pub fn for_each_group(entries: Partitions, stage: &'static str, visit: &mut dyn FnMut(&[u64])) {
    let sort = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
        sort_distinct(&mut entries, check);
        Ok(entries)
    };
    entries.work_on(stage, &sort, None, &mut |sorted| {
        let groups = sorted.chunk_by(same_key);
        groups.filter(|group| group.len() > 1).for_each(&mut *visit);
    });
}

/// Packs `key` and the kept item `kept` into an entry.
pub fn entry(key: u32, kept: u32) -> u64 {
    u64::from(key) << 32 | u64::from(kept)
}

fn key(entry: u64) -> u32 {
    (entry >> 32) as u32
}

/// Returns the kept item of an entry.
fn kept_item(entry: u64) -> u32 {
    entry as u32 & !SMALLER_ONLY
}

/// Returns whether two entries have the same key.
pub fn same_key(a: &u64, b: &u64) -> bool {
    key(*a) == key(*b)
}

/// A kind of key under which kept items look for partners.
#[derive(Clone, Copy)]
enum KeyKind {
    Tokens,
    /// The elements of the prefixes of hot rows.
    Elements,
}

/// Flag of an entry: under this element, the row meets only rows with smaller sets. Flagged entries sort last in their
/// group.
pub const SMALLER_ONLY: u32 = 1 << 31;

/// The kept items under a key. The first `meet_any` rows meet every other row; the rest meet only the first `meet_any`.
struct Group {
    key: u32,
    rows: Vec<u32>,
    meet_any: usize,
}

impl Group {
    /// Builds a group from the sorted entries of one key.
    fn of(entries: &[u64]) -> Result<Self> {
        let meets_any = |entry: &u64| *entry as u32 & SMALLER_ONLY == 0;
        Ok(Self {
            key: key(entries[0]),
            rows: rows(entries)?,
            meet_any: entries.partition_point(meets_any),
        })
    }

    /// Returns the rows that the row at `place` meets.
    fn met(&self, place: usize) -> &[u32] {
        match place < self.meet_any {
            true => &self.rows,
            false => &self.rows[..self.meet_any],
        }
    }
}

/// Returns the kept items of a group of entries.
pub fn rows(group: &[u64]) -> Result<Vec<u32>> {
    collected(group.iter().map(|entry| kept_item(*entry)))
}
