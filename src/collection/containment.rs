//! Finds all ordered pairs of rows where the second contains at least a given share of the first, exactly, by their
//! sets.
//!
//! For each set, the search looks up its rarest elements: enough of them that every set with the required share has at
//! least one. Sets that share such an element are sorted into distinct pairs and compared.

use crate::collection::compare::compare_pairs;
use crate::collection::documents::read_set;
use crate::collection::items::Items;
use crate::collection::measured::{MakeOfSet, Visit};
use crate::collection::reading::Collection;
use crate::collection::rows::RecordKind;
use crate::collection::sweep::{read_stored, sweep};
use crate::pg::prelude::*;
use crate::pg::sort::RowSort;
use bitvec::vec::BitVec;
use neardup::bands::element_key;
use neardup::candidates::{Frequencies, Sides, rarest};

/// Maximum number of distinct sets. An entry holds the number of a set and the bit [`LOOKED_UP`].
const MOST: u32 = u32::MAX / 2;

/// Calls `visit` for every ordered pair (a, b) of different rows with containment(a, b) >= threshold, and passes this
/// containment. In a join, a is a row of the first side and b of the second.
///
/// # Errors
/// ERROR `program_limit_exceeded` for too many distinct sets.
pub fn for_each_pair(mut collection: Collection, visit: Visit<'_>) {
    let items = Items::of(&mut collection);
    if items.len() > MOST {
        let message = format!("the query yields more than {MOST} different sets");
        too_large(&message, "");
    }
    let sets = std::mem::replace(&mut collection.values, Records::new(0));
    let mut search = ContainmentSearch {
        collection,
        items,
        sets,
    };
    for item in 0..search.items.len() {
        search.visit_rows((item, item), 1.0, visit);
    }
    let lookups = search.lookups();
    let candidates = search.candidates(lookups);
    search.compare(candidates, visit);
}

/// The rows of one or two queries, and their sets.
struct ContainmentSearch {
    collection: Collection,
    items: Items,
    /// The sorted elements of the rows, 8 bytes each.
    sets: Records,
}

impl ContainmentSearch {
    /// Compares `candidates` with the help of other threads, and calls `visit` for the rows of the pairs that reach the
    /// threshold.
    fn compare(mut self, candidates: RowSort, visit: Visit<'_>) {
        let mut sets = std::mem::replace(&mut self.sets, Records::new(0));
        let mut take = |pair, share: Option<f64>| {
            if let Some(share) = share {
                self.visit_rows(pair, share, visit);
            }
        };
        let mut progress = Progress::begin("comparing", candidates.len());
        let kind = (RecordKind::Contained, self.collection.threshold);
        compare_pairs(kind, &mut read_stored(&mut sets), &mut take, |put| {
            candidates.for_each_group(&mut |a, containing| {
                for &b in containing {
                    progress.step();
                    put((a, b), [a, b].map(|item| self.items.first_row(item)));
                }
            });
        });
    }

    /// Calls `visit` for every pair (x, y) of different rows, x from item a and y from item b, unless it is an
    /// exception. The items may be the same.
    fn visit_rows(&self, (a, b): (u32, u32), share: f64, visit: Visit<'_>) {
        let (items, keys) = (&self.items, &self.collection.keys);
        for x in items.rows(a).filter(|&row| self.collection.sides(row).a) {
            for y in items.rows(b).filter(|&row| self.collection.sides(row).b) {
                check_interrupts();
                if x != y && !self.collection.exceptions.contain([x, y]) {
                    // SAFETY: visitors use a pair's keys before the next pair.
                    visit([x, y].map(|row| unsafe { keys.get(row) }), share);
                }
            }
        }
    }

    /// Chooses the elements to look up for every item that can be a part.
    fn lookups(&mut self) -> Lookups {
        let threshold = self.collection.threshold;
        let elements: usize = (0..self.sets.len())
            .map(|row| self.sets.length(row) / size_of::<i64>())
            .sum();
        let mut counts = Frequencies::new(elements, work_mem_bytes()).or_raise();
        self.sweep(
            "counting elements",
            |sides| sides.b,
            &|set, keys| keys.try_extend(set.iter().copied().map(element_key)),
            &mut |_, keys| keys.iter().for_each(|&key| counts.add(&[key])),
        );
        let mut lookups = Lookups::new(elements, self.items.len());
        self.sweep(
            "choosing elements",
            |sides| sides.a,
            &|set, chosen| {
                let mut tokens = Vec::new();
                if let Some(needed) = rarest(set, threshold, &counts, &mut tokens)? {
                    chosen.try_push(needed as u32)?;
                    chosen.try_extend(tokens)?;
                }
                Ok(())
            },
            &mut |item, chosen| {
                if let [needed, tokens @ ..] = chosen {
                    lookups.add(item, *needed, tokens);
                }
            },
        );
        lookups
    }

    /// Calls `make` for the set of every item with a row whose sides satisfy `is_on`, and calls `take` with the results
    /// in order.
    fn sweep<U: Send>(
        &mut self,
        stage: &'static str,
        is_on: fn(Sides) -> bool,
        make: &MakeOfSet<'_, U>,
        take: &mut dyn FnMut(u32, &[U]),
    ) {
        let collection = &self.collection;
        let has_row = |item: &u32| (self.items.rows(*item)).any(|row| is_on(collection.sides(row)));
        let chosen = collected((0..self.items.len()).filter(has_row)).or_raise();
        let mut read = read_stored(&mut self.sets);
        sweep(
            &mut Progress::begin(stage, chosen.len()),
            chosen.into_iter(),
            &mut |item, record| read(self.items.first_row(item), record),
            &|record, made, _| make(&read_set(record)?, made),
            take,
        );
    }

    /// Returns the pairs (part, whole) of items where the whole has enough elements, including one that the part looks
    /// up.
    fn candidates(&mut self, lookups: Lookups) -> RowSort {
        let mut sizes = filled(0u32, self.items.len() as usize).or_raise();
        let Lookups {
            bits,
            mut sort,
            needed,
        } = lookups;
        self.sweep(
            "sorting elements",
            |sides| sides.b,
            &|set, met| {
                met.try_push(set.len() as u32)?;
                let keys = set.iter().copied().map(element_key);
                met.try_extend(keys.filter(|&key| bits[key as usize % bits.len()]))
            },
            &mut |item, met| {
                if let [size, keys @ ..] = met {
                    sizes[item as usize] = *size;
                    keys.iter().for_each(|&key| sort.put(key, item << 1));
                }
            },
        );
        let mut candidates = RowSort::begin();
        let mut progress = Progress::begin("pairing", sort.len());
        let mut seen = 0;
        sort.for_each_group(&mut |_, group| {
            seen += group.len();
            progress.reach(seen);
            let looked_up = group.iter().filter(|&&entry| entry & LOOKED_UP != 0);
            for a in looked_up.map(|entry| entry >> 1) {
                check_interrupts();
                let others = group.iter().filter(|&&entry| entry & LOOKED_UP == 0);
                for b in others.map(|entry| entry >> 1) {
                    if a != b && sizes[b as usize] >= needed[a as usize] {
                        candidates.put(a, b);
                    }
                }
            }
        });
        candidates
    }
}

/// Bit of an entry that is set if the item looks the element up. The other bits are the number of the item.
const LOOKED_UP: u32 = 1;

/// The elements that are looked up.
struct Lookups {
    /// Tokens, each with the items that look it up and the items that have it.
    sort: RowSort,
    /// Filters tokens: the bits of tokens that are looked up are set, the bits of most other tokens are clear.
    bits: BitVec<u64>,
    /// For each item, the minimum number of elements that a set needs to contain enough of it.
    needed: Vec<u32>,
}

impl Lookups {
    fn new(elements: usize, items: u32) -> Self {
        let words = elements.min(work_mem_bytes()).max(64).next_power_of_two() / 8;
        Self {
            sort: RowSort::begin(),
            bits: BitVec::from_vec(filled(0, words).or_raise()),
            needed: filled(0, items as usize).or_raise(),
        }
    }

    fn add(&mut self, item: u32, needed: u32, tokens: &[u32]) {
        self.needed[item as usize] = needed;
        let places = self.bits.len();
        for &token in tokens {
            self.bits.set(token as usize % places, true);
            self.sort.put(token, item << 1 | LOOKED_UP);
        }
    }
}
