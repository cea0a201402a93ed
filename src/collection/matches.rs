//! The rows of a collection that are similar enough, and how similar they are.
//!
//! A search numbers the items that may have partners anew; neither those numbers nor those of items
//! and rows leave this module: it yields keys.

use crate::collection::compare::{Batch, Collecting, Compared, Rows};
use crate::collection::items::Items;
use crate::collection::reading::Collection;
use crate::collection::search::{Pairs, Search};
use crate::collection::sweep::{read_stored, sweep};
use crate::collection::verify::{Estimate, Resemblance, Similarity};
use crate::pg::error::{OrRaise, check_interrupts, hold_interrupts, or_out_of_memory};
use crate::pg::helpers::in_order;
use crate::pg::progress::Progress;
use crate::pg::spool::Records;
use neardup::Result;
use neardup::bands::band_hashes;
use neardup::bands::plan::{Plan, VerifiedPlan, lowest_wide_threshold};
use neardup::candidates::token;
use neardup::cluster::{Canonicals, UnionFind, connect_group};
use neardup::memory::{Grow, collected, filled};
use neardup::minhash::{Header, Signature};
use neardup::shingle::{Key, shingle_hashes};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::RefCell;
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
        let items = Items::of(&mut collection);
        let (search, similarity): (_, Box<dyn Similarity>) = if collection.documents.is_some() {
            (
                verified_search(&mut collection, &items, &header, threshold),
                Box::new(Resemblance::of(&collection)),
            )
        } else {
            let slots = usize::from(header.slots);
            let plan = Plan::estimate(slots, u32::from(header.slot_bits), threshold);
            (
                search(&mut collection, &items, plan),
                Box::new(Estimate::default()),
            )
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
        let pairs = search.pairs(&|kept| sides[kept as usize]);
        measured.compare_all(pairs, search, visit);
    }

    /// Visits every row in query order with the canonical row of its star cluster.
    pub fn for_each_in_star(&mut self, visit: Visit<'_>) {
        let kept_of = self.kept_of_items();
        let Self { search, measured } = self;
        measured.compute_sets(search);
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
        measured.compute_sets(search);
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

    /// Computes the sets that comparisons one by one are likely to need.
    fn compute_sets(&mut self, search: &Search) {
        let Some((shingling, documents)) = self
            .collection
            .shingling()
            .zip(self.collection.documents.as_mut())
        else {
            return;
        };
        let rows = search
            .likely()
            .map(|kept| self.items.first_row(search.item(kept)));
        sweep(
            &mut Progress::begin("computing sets", None),
            rows,
            &mut documents.reader(),
            &|text, set, check| {
                set.try_extend(shingle_hashes(text, &shingling, &Key::from_seed(0), check)?)
            },
            &mut |row, set| self.similarity.keep(row, set),
        );
    }

    /// Compares pairs of kept items of a search, and visits the pairs of rows of those that are
    /// similar, in order.
    fn compare_all(&mut self, pairs: Pairs, search: &Search, visit: Visit<'_>) {
        let (threshold, shingling) = (self.threshold, self.collection.shingling());
        let mut progress = Progress::begin("comparing", Some(pairs.len()));
        let measured = RefCell::new(self);
        let work =
            |batch: Batch, check: &mut dyn FnMut()| batch.compare(shingling, threshold, check);
        let mut take = |rows: Rows, compared: Result<Compared>| {
            measured
                .borrow_mut()
                .take(&rows, &compared.or_raise(), visit);
        };
        in_order(&work, &mut take, |line| {
            let mut collecting = Collecting::default();
            pairs.for_each(&mut |a, b| {
                progress.step();
                measured
                    .borrow_mut()
                    .collect((search.item(a), search.item(b)), &mut collecting);
                if collecting.is_full() {
                    let (rows, batch, bytes) = collecting.take();
                    line.put(rows, batch, bytes);
                }
            });
            let (rows, batch, bytes) = collecting.take();
            line.put(rows, batch, bytes);
        });
    }

    /// Adds a pair of items to those that are to be compared.
    fn collect(&mut self, (a, b): (u32, u32), collecting: &mut Collecting) {
        let rows = [a, b].map(|item| self.items.first_row(item));
        let similarity = self.similarity.as_mut();
        collecting.push((a, b), rows, similarity, &mut self.collection);
    }

    /// Takes the results of a comparison.
    fn take(&mut self, rows: &Rows, compared: &Compared, visit: Visit<'_>) {
        rows.keep_sets(compared, self.similarity.as_mut());
        for (&(a, b), similarity) in rows.pairs.iter().zip(&compared.similarities) {
            if let Some(similarity) = *similarity {
                self.visit_across((a, b), similarity, visit);
                if self.collection.first_side.is_some() {
                    self.visit_across((b, a), similarity, visit);
                }
            }
        }
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
    let pack = |record: &[u8], made: &mut Vec<u8>, _: &mut dyn FnMut()| {
        let slots = collected(Signature::from_bytes(record)?.slots())?;
        made.try_reserve(packed.payload_len())?;
        packed.push_slots(&slots, made);
        Ok(())
    };
    search.prefilter(packed, verified.equal_slots, |progress, kept, all| {
        let mut read = read_signatures(collection, items);
        let mut take = |_, made: &[u8]| all.try_extend_from_slice(made).or_raise();
        sweep(progress, kept.iter().copied(), &mut read, &pack, &mut take);
    });
    collection.signatures = Records::new(0);
    search
}

fn search(collection: &mut Collection, items: &Items, plan: Plan) -> Search {
    let Plan { bands, needed } = plan;
    let items_len = items.len();
    Search::new(
        items_len as usize,
        bands.bands,
        needed,
        &mut |progress, choose, take| {
            let mut read = read_signatures(collection, items);
            let make = |record: &[u8], made: &mut Vec<u32>, _: &mut dyn FnMut()| {
                let signature = Signature::from_bytes(record)?;
                choose(
                    &collected(band_hashes(&signature, &bands).map(token))?,
                    made,
                )
            };
            sweep(progress, 0..items_len, &mut read, &make, take);
        },
    )
}

/// Returns how to read the signature of an item.
fn read_signatures(collection: &mut Collection, items: &Items) -> impl FnMut(u32, &mut Vec<u8>) {
    let mut read = read_stored(&mut collection.signatures);
    move |item, record| read(items.first_row(item), record)
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
