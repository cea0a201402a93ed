//! Finds all ordered pairs of rows where the set of the second contains at least a given share of the set of the first.
//! The result is exact.
//!
//! For each set, the search looks up its rarest elements: enough of them that every set with the required share of the
//! elements has at least one. Pairs of sets that share such an element are sorted, made distinct and compared.

use crate::collection::batch::{entry, for_each_group};
use crate::collection::measured::{Measured, Visit};
use crate::collection::reading::{Collection, MakeOfSet};
use crate::pg::partitions::Partitions;
use crate::pg::prelude::*;
use crate::pg::sort::BigintSort;
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
pub fn for_each_pair(collection: Collection, visit: Visit<'_>) {
    let mut measured = Measured::of(collection);
    if measured.items.len() > MOST {
        let message = format!("the query yields more than {MOST} different sets");
        too_large(&message, "");
    }
    measured.visit_copies(visit);
    let (candidates, count) = Lookups::of(&mut measured).candidates(&mut measured);
    let mut last = None;
    let sorted = candidates.sorted().map(|pair| pair as u64);
    let distinct = sorted.filter(|pair| last.replace(*pair) != Some(*pair));
    let pairs = distinct.map(|pair| ((pair >> 32) as u32, pair as u32));
    measured.visit_pairs(pairs, count, visit);
}

/// Calls `make` for the set of every item with a row whose sides satisfy `is_on`, and calls `take` with each item and
/// its result, in order of the items.
fn for_each_set<U: Send>(
    measured: &mut Measured,
    stage: &'static str,
    is_on: fn(Sides) -> bool,
    make: &MakeOfSet<'_, U>,
    take: &mut dyn FnMut(u32, &[U]),
) {
    let (collection, items) = (&mut measured.collection, &measured.items);
    let chosen = (0..items.len()).filter(|&item| is_on(items.sides(item, collection)));
    let rows = collected(chosen.map(|item| items.first_row(item))).or_raise();
    let mut take = |row, made: &[U]| take(items.of_row(row), made);
    collection.for_each_set((stage, &rows), make, &mut take);
}

/// Bit of an entry that is set if the item looks the element up. The other bits are the number of the item.
const LOOKED_UP: u32 = 1;

/// The elements that items look up, and the entries for them.
struct Lookups {
    /// Tokens, each with the items that look it up and the items that have it.
    entries: Partitions,
    /// Filters tokens: the bits of tokens that are looked up are set, the bits of most other tokens are clear.
    bits: BitVec<u64>,
    /// For each item, the minimum number of elements that a set needs to contain enough of it.
    needed: Vec<u32>,
}

impl Lookups {
    /// Returns the lookups of every item with rows on side a, for the rarest elements of the item's set.
    fn of(measured: &mut Measured) -> Self {
        let (threshold, sets) = (measured.threshold, &measured.collection.records);
        let bytes: usize = (0..sets.len()).map(|row| sets.length(row)).sum();
        let elements = bytes / size_of::<i64>();
        let mut counts = Frequencies::new(elements, work_mem_bytes()).or_raise();
        for_each_set(
            measured,
            "counting elements",
            |sides| sides.b,
            &|set, keys| keys.try_extend(set.iter().copied().map(element_key)),
            &mut |_, keys| keys.iter().for_each(|&key| counts.add(key)),
        );
        let words = elements.min(work_mem_bytes()).max(64).next_power_of_two() / 8;
        let mut lookups = Self {
            entries: Partitions::new(2 * elements),
            bits: BitVec::from_vec(filled(0, words).or_raise()),
            needed: filled(0, measured.items.len() as usize).or_raise(),
        };
        for_each_set(
            measured,
            "choosing elements",
            |sides| sides.a,
            &|set, chosen| rarest(set, threshold, &counts, chosen),
            &mut |item, chosen| {
                if let [needed, tokens @ ..] = chosen {
                    lookups.needed[item as usize] = *needed;
                    let places = lookups.bits.len();
                    for &token in tokens {
                        lookups.bits.set(token as usize % places, true);
                        lookups.entries.push([entry(token, item << 1 | LOOKED_UP)]);
                    }
                }
            },
        );
        lookups
    }

    /// Returns the pairs (part, whole) of items where the whole has enough elements, including one that the part looks
    /// up, each packed into a number, and the number of pairs. A pair occurs once for each such element.
    fn candidates(self, measured: &mut Measured) -> (BigintSort, usize) {
        let (bits, needed, mut entries) = (self.bits, self.needed, self.entries);
        let mut sizes = filled(0u32, needed.len()).or_raise();
        for_each_set(
            measured,
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
                    keys.iter()
                        .for_each(|&key| entries.push([entry(key, item << 1)]));
                }
            },
        );
        let (mut candidates, mut count) = (BigintSort::begin(), 0);
        for_each_group(entries, "pairing", &mut |group| {
            let items = group.iter().map(|entry| *entry as u32);
            for a in items.clone().filter(|item| item & LOOKED_UP != 0) {
                check_interrupts();
                for b in items.clone().filter(|item| item & LOOKED_UP == 0) {
                    let (a, b) = (a >> 1, b >> 1);
                    if a != b && sizes[b as usize] >= needed[a as usize] {
                        candidates.put(entry(a, b) as i64);
                        count += 1;
                    }
                }
            }
        });
        (candidates, count)
    }
}
