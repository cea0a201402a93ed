//! The rows of a collection that are similar enough, and how similar they are.
//!
//! A search numbers the items that may have partners anew; neither those numbers nor those of items
//! and rows leave this module: it yields keys.

use crate::collection::items::Items;
use crate::collection::reading::Collection;
use crate::collection::search::Search;
use crate::collection::verify::{Estimate, Resemblance, Sets, Similarity};
use crate::pg::error::{OrRaise, check_interrupts, hold_interrupts, or_out_of_memory};
use crate::pg::progress::Progress;
use crate::pg::spool::Records;
use neardup::bands::band_hashes;
use neardup::bands::plan::{Plan, VerifiedPlan, lowest_wide_threshold};
use neardup::candidates::token;
use neardup::cluster::{Canonicals, UnionFind, connect_group};
use neardup::memory::{Grow, collected, filled};
use neardup::minhash::{Header, Signature};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::num::NonZeroU32;

/// Takes the keys of two rows, and their similarity.
pub type Visit<'a> = &'a mut dyn FnMut([Option<pg_sys::Datum>; 2], f64);

/// Rows from which on narrow bands are slow enough for a warning.
const LARGE: u32 = 100_000;

/// Bits of each slot that the prefilter of verified pairs keeps in memory. In 4 bits one of 16
/// differing slots seems equal; pairs took as long as with 8 bits, which take twice the memory.
const PREFILTER_BITS: u8 = 4;

/// A collection ready to be searched for pairs whose estimate reaches a threshold or, where it has
/// documents, whose true similarity does.
pub struct Matches {
    search: Search,
    measured: Measured,
}

/// The items of a collection, and their similarity.
struct Measured {
    collection: Collection,
    items: Items,
    similarity: Box<dyn Similarity>,
    threshold: f64,
}

impl Matches {
    /// Returns None for a collection without rows.
    pub fn of(mut collection: Collection, threshold: f64) -> Option<Self> {
        let header = collection.header?;
        let sets = Sets::of(&collection);
        let items = Items::of(&mut collection, sets.as_ref());
        let (search, similarity): (_, Box<dyn Similarity>) = match sets {
            None => {
                let slots = usize::from(header.slots);
                let plan = Plan::estimate(slots, u32::from(header.slot_bits), threshold);
                (
                    search(&mut collection, &items, plan),
                    Box::new(Estimate::default()),
                )
            }
            Some(sets) => (
                verified_search(&mut collection, &items, &header, threshold),
                Box::new(Resemblance::new(sets)),
            ),
        };
        Some(Self {
            search,
            measured: Measured {
                collection,
                items,
                similarity,
                threshold,
            },
        })
    }

    /// Visits every pair of similar rows once, the earlier row first; of a join, side a's.
    pub fn for_each_pair(&mut self, visit: Visit<'_>) {
        let Self { search, measured } = self;
        for item in 0..measured.items.len() {
            measured.visit_identical(item, visit);
        }
        let sides = (0..search.tokens.rows()).map(|kept| {
            measured
                .items
                .sides(search.item(kept), &measured.collection)
        });
        let sides = collected(sides).or_raise();
        search.for_each_pair(&|kept| sides[kept as usize], &mut |a, b| {
            let (a, b) = (search.item(a), search.item(b));
            if let Some(similarity) = measured.similarity(a, b) {
                measured.visit_across((a, b), similarity, visit);
                if measured.collection.first_side.is_some() {
                    measured.visit_across((b, a), similarity, visit);
                }
            }
        });
    }

    /// Visits every row in query order with the canonical row of its star cluster.
    pub fn for_each_in_star(&mut self, visit: Visit<'_>) {
        let kept_of = self.kept_of_items();
        let Self { search, measured } = self;
        let mut canonicals = or_out_of_memory(Canonicals::new(&search.tokens));
        let rows = measured.collection.rows();
        let mut progress = Progress::begin("clustering", Some(rows as usize));
        for row in 0..rows {
            progress.step();
            let item = measured.items.of_row(row);
            let mut measure = |a, b| {
                search
                    .passes(a, b)
                    .then(|| measured.similarity(search.item(a), search.item(b)))?
            };
            let joined = kept_of[item as usize].and_then(|kept| {
                or_out_of_memory(canonicals.place(&search.tokens, kept.get() - 1, &mut measure))
            });
            let (canonical, similarity) = match joined {
                Some((kept, similarity)) => (search.item(kept), similarity),
                None => (item, 1.0),
            };
            let canonical = measured.items.first_row(canonical);
            visit(measured.keys(row, canonical), similarity);
        }
    }

    /// Visits every row with the first row of its connected component.
    pub fn for_each_in_component(&mut self, visit: Visit<'_>) {
        let kept_of = self.kept_of_items();
        let Self { search, measured } = self;
        let mut sets = UnionFind::new();
        or_out_of_memory(sets.grow_to(search.tokens.rows()));
        search.for_each_group(&mut |key, group| {
            connect_group(&search.tokens, group, key, &mut sets, &mut |a, b| {
                search.passes(a, b)
                    && measured
                        .similarity(search.item(a), search.item(b))
                        .is_some()
            })
            .or_raise();
        });
        for item in 0..measured.items.len() {
            let canonical = match kept_of[item as usize] {
                Some(kept) => search.item(sets.find(kept.get() - 1)),
                None => item,
            };
            let similarity = match canonical == item {
                true => 1.0,
                false => measured.at_least(canonical, item, 0.0).unwrap_or(0.0),
            };
            let canonical = measured.items.first_row(canonical);
            for row in measured.items.rows(item) {
                visit(measured.keys(row, canonical), similarity);
            }
        }
    }

    /// Returns the document of the row of this number, in `buffer` if it was on disk.
    pub fn document<'a>(&'a mut self, row: u32, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let documents = self.measured.collection.documents.as_mut();
        let documents = documents.expect("there are documents");
        documents.read(row, buffer)
    }

    /// Returns one more than the number under which the search kept each item.
    fn kept_of_items(&self) -> Vec<Option<NonZeroU32>> {
        let items = self.measured.items.len() as usize;
        let mut kept_of = filled(None, items).or_raise();
        for kept in 0..self.search.tokens.rows() {
            kept_of[self.search.item(kept) as usize] = NonZeroU32::new(kept + 1);
        }
        kept_of
    }
}

impl Measured {
    /// Returns the similarity of two items; None below the threshold.
    fn similarity(&mut self, a: u32, b: u32) -> Option<f64> {
        self.at_least(a, b, self.threshold)
    }

    fn at_least(&mut self, a: u32, b: u32, threshold: f64) -> Option<f64> {
        let (a, b) = (self.items.first_row(a), self.items.first_row(b));
        self.similarity
            .at_least(&mut self.collection, a, b, threshold)
    }

    fn keys(&self, x: u32, y: u32) -> [Option<pg_sys::Datum>; 2] {
        [self.collection.keys.get(x), self.collection.keys.get(y)]
    }

    /// Visits the pairs among the rows of one item.
    fn visit_identical(&self, item: u32, visit: Visit<'_>) {
        if self.collection.first_side.is_some() {
            return self.visit_across((item, item), 1.0, visit);
        }
        self.items
            .for_each_pair_within(item, &mut |x, y| self.visit_pair(x, y, 1.0, visit));
    }

    /// Visits the pairs of side a's rows of one item and side b's rows of another.
    fn visit_across(&self, (a, b): (u32, u32), similarity: f64, visit: Visit<'_>) {
        let theirs = self.items.rows(b).find(|&row| self.collection.sides(row).b);
        let ours = self
            .items
            .rows(a)
            .take_while(|&row| self.collection.sides(row).a);
        for x in ours {
            for y in theirs
                .into_iter()
                .flat_map(|first| self.items.rows_from(first))
            {
                self.visit_pair(x.min(y), x.max(y), similarity, visit);
            }
        }
    }

    fn visit_pair(&self, x: u32, y: u32, similarity: f64, visit: Visit<'_>) {
        visit(self.keys(x, y), similarity);
        check_interrupts();
    }
}

/// Prepares the search for pairs whose documents reach the threshold. From then on only the
/// documents are asked.
fn verified_search(
    collection: &mut Collection,
    items: &Items,
    header: &Header,
    threshold: f64,
) -> Search {
    let slots = usize::from(header.slots);
    let verified = VerifiedPlan::new(slots, threshold);
    warn_of_narrow_bands(&verified, collection.rows(), threshold);
    let mut search = search(collection, items, verified.plan);
    let packed = Header {
        slot_bits: header.slot_bits.min(PREFILTER_BITS),
        ..*header
    };
    let (mut buffer, mut slots) = (Vec::new(), Vec::new());
    search.prefilter(packed, verified.equal_slots, &mut |item, bytes| {
        let row = items.first_row(item) as usize;
        slots.clear();
        let signature = read_signature(collection, row, &mut buffer);
        slots.try_extend(signature.slots()).or_raise();
        packed.push_slots(&slots, bytes);
    });
    collection.signatures = Records::new(0);
    search
}

fn search(collection: &mut Collection, items: &Items, plan: Plan) -> Search {
    let Plan { bands, needed } = plan;
    let mut buffer = Vec::new();
    let all = collected(0..items.len()).or_raise();
    Search::new(&all, bands.bands, needed, &mut |item, tokens| {
        let row = items.first_row(item) as usize;
        let signature = read_signature(collection, row, &mut buffer);
        let hashes = band_hashes(&signature, &bands);
        tokens.try_extend(hashes.map(token)).or_raise();
    })
}

fn read_signature<'a>(
    collection: &'a mut Collection,
    row: usize,
    buffer: &'a mut Vec<u8>,
) -> Signature<'a> {
    Signature::from_bytes(collection.signatures.read(row, buffer)).or_raise()
}

fn warn_of_narrow_bands(plan: &VerifiedPlan, rows: u32, threshold: f64) {
    let slots = plan.plan.bands.slots;
    let problem = if plan.lossy {
        "may miss pairs"
    } else if plan.narrow() && rows >= LARGE {
        "may take very long"
    } else {
        return;
    };
    let lowest = lowest_wide_threshold(slots);
    let message = format!(
        "threshold {threshold} is low for signatures of {slots} slots, the search {problem}: use a threshold of {lowest} or more, or more slots"
    );
    hold_interrupts(|| warning!("{message}"));
}
