//! The pairs of similar rows in a collection, and their similarities.
//!
//! A batch renumbers its items. The numbers of rows, items and kept items are internal: callers receive keys.

use crate::collection::batch::Batch;
use crate::collection::bit_strings;
use crate::collection::compare::compare_pairs;
use crate::collection::documents::set_of_document;
use crate::collection::form::Test;
use crate::collection::items::Items;
use crate::collection::members::Members;
use crate::collection::outlines::{Outlining, Verified};
use crate::collection::partners::Lacking;
use crate::collection::reading::Collection;
use crate::collection::search::{PartnerSearch, TokenSource};
use crate::collection::sweep::{read_stored, sweep};
use crate::collection::verify::RowSimilarity;
use crate::pg::error::hold_interrupts;
use crate::pg::prelude::*;
use neardup::bands::element_key;
use neardup::bands::plan::VerifiedPlan;
use neardup::candidates::{Frequencies, Prefixes, choose_prefix};
use pgrx::prelude::*;

/// Appends values made from a set to a list. Runs in any thread.
pub type MakeOfSet<'a, U> = dyn Fn(&[i64], &mut Vec<U>) -> Result<()> + Sync + 'a;

/// Receives the keys of two rows and their similarity.
pub type Visit<'a> = &'a mut dyn FnMut([Option<pg_sys::Datum>; 2], f64);

/// Receives two kept items and their similarity, or None below the threshold.
type HandOn<'a> = &'a mut dyn FnMut(&Measured, (u32, u32), Option<f64>);

/// Elements of a set for which counters are sized. With fewer counters, more elements share one.
const ELEMENTS: usize = 256;

/// Minimum rows for a warning that narrow bands are slow.
const LARGE: u32 = 100_000;

/// A collection prepared for the search for pairs at or above a threshold: by the true similarity of documents and bit
/// strings, by the estimate for signatures.
pub struct Matches {
    /// None for bit strings, which are searched one length at a time.
    search: Option<PartnerSearch>,
    measured: Measured,
}

/// The items of a collection, and their similarity.
pub struct Measured {
    collection: Collection,
    pub items: Items,
    similarity: RowSimilarity,
    threshold: f64,
}

impl Matches {
    /// Prepares the search; returns None for a collection without rows.
    pub fn of(mut collection: Collection) -> Option<Self> {
        let (rows, threshold) = (collection.rows(), collection.threshold);
        if rows == 0 {
            return None;
        }
        let items = Items::of(&mut collection);
        let mut outlines = std::mem::replace(&mut collection.outlines, Records::new(0));
        if let Some(Verified { plan, .. }) = collection.outlining.and_then(|of| of.verified) {
            check_bands(&plan, rows, threshold);
        }
        let similarity = RowSimilarity::of(&collection);
        let outlining = collection.outlining.as_ref();
        Some(Self {
            search: outlining.map(|outlining| search(outlining, &mut outlines, &items)),
            measured: Measured {
                collection,
                items,
                similarity,
                threshold,
            },
        })
    }

    /// Calls `visit` for batches of the items that may have partners. Partners are in the same batch.
    fn for_each_batch(&mut self, visit: &mut dyn FnMut(&mut Measured, Batch)) {
        let Self { search, measured } = self;
        if let Some(search) = search {
            return search.for_each_batch(&mut |mut batch| {
                measured.tell_apart(&mut batch);
                visit(measured, batch);
            });
        }
        let distance = measured.collection.distance.unwrap_or(0);
        let strings = &mut measured.collection.values;
        for (length, items) in bit_strings::by_length(strings, &measured.items) {
            let strings = &mut measured.collection.values;
            let same_length = (length, &items[..]);
            let mut search = bit_strings::search(strings, &measured.items, same_length, distance);
            measured.threshold = bit_strings::share_of_equal(length, distance);
            search.for_each_batch(&mut |mut batch| {
                batch.renumber(&items);
                visit(measured, batch);
            });
        }
    }

    /// Calls `visit` for every pair of similar rows, once. The earlier row comes first; in a join this is the row of
    /// side a.
    pub fn for_each_pair(&mut self, visit: Visit<'_>) {
        for item in over("pairing copies", 0..self.measured.items.len()) {
            self.measured.visit_identical(item, visit);
        }
        self.for_each_batch(&mut |measured, batch| {
            let sides_of = |kept| measured.items.sides(batch.item(kept), &measured.collection);
            let sides = collected((0..batch.tokens.rows()).map(sides_of)).or_raise();
            let pairs = batch.pairs(&|kept| sides[kept as usize]);
            let threshold = measured.threshold;
            measured.compare_all(pairs, &batch, threshold, &mut |measured, (a, b), found| {
                if let Some(similarity) = found {
                    let items = (batch.item(a), batch.item(b));
                    measured.visit_similar(items, similarity, visit);
                }
            });
        });
    }

    /// Calls `visit` for pairs of similar rows, each once, the earlier row first, until every row has `most` partners
    /// or all that exist. Copies are paired first. A row that other rows chose can have more than `most` partners.
    pub fn for_each_partner(&mut self, most: u32, visit: Visit<'_>) {
        let measured = &self.measured;
        let mut lacking = Lacking::after_copies(&measured.items, most, &mut |x, y, similarity| {
            visit(measured.keys(x.min(y), x.max(y)), similarity);
        });
        self.for_each_batch(&mut |measured, batch| {
            measured.compute_sets(&batch);
            lacking.search(measured, &batch, &mut |measured, x, y, similarity| {
                visit(measured.keys(x.min(y), x.max(y)), similarity);
            });
        });
    }

    /// Calls `visit` for every row, in query order, with the canonical row of its star cluster.
    pub fn for_each_in_star(&mut self, visit: Visit<'_>) {
        let mut members = Members::new(self.measured.collection.rows());
        self.for_each_batch(&mut |measured, batch| {
            measured.compute_sets(&batch);
            let kept = 0..batch.tokens.rows();
            let rows = measured.items.rows_of(kept.map(|kept| batch.item(kept)));
            members.put_batch(&batch, rows, &mut |a, b, least| {
                measured.kept_similarity(&batch, (a, b), least)
            });
        });
        self.visit_members(members, visit);
    }

    /// Calls `visit` for every row, in query order, with the first row of its connected component.
    pub fn for_each_in_component(&mut self, visit: Visit<'_>) {
        let mut members = Members::new(self.measured.collection.rows());
        self.for_each_batch(&mut |measured, batch| {
            measured.compute_sets(&batch);
            let sets =
                batch.connect(&mut |a, b| measured.kept_similarity(&batch, (a, b), 0.0).is_some());
            let others = (0..batch.tokens.rows())
                .map(|kept| (sets.find(kept), kept))
                .filter(|(canonical, kept)| canonical != kept);
            measured.compare_all(
                others,
                &batch,
                0.0,
                &mut |measured, (first, kept), found| {
                    let (item, first) = (batch.item(kept), measured.row(&batch, first));
                    members.put_item(&measured.items, item, first, found.unwrap_or(0.0));
                },
            );
        });
        self.visit_members(members, visit);
    }

    /// Calls `visit` for every row, in query order, with its canonical row.
    fn visit_members(&self, members: Members, visit: Visit<'_>) {
        let measured = &self.measured;
        members.for_each(&measured.items, &mut |row, canonical, similarity| {
            visit(measured.keys(row, canonical), similarity);
        });
    }
}

impl Measured {
    /// Returns the similarity of two kept items, or None below the threshold or `least`.
    pub fn kept_similarity(
        &mut self,
        batch: &Batch,
        (a, b): (u32, u32),
        least: f64,
    ) -> Option<f64> {
        check_interrupts();
        if !batch.passes(a, b) {
            return None;
        }
        let rows = [a, b].map(|kept| self.row(batch, kept));
        if self.collection.exceptions.contain(rows) {
            return None;
        }
        let threshold = self.threshold.max(least);
        self.similarity
            .at_least(&mut self.collection, rows, threshold)
    }

    /// Returns the first row of a kept item.
    fn row(&self, batch: &Batch, kept: u32) -> u32 {
        self.items.first_row(batch.item(kept))
    }

    /// Makes documents that share a token with very many others look for partners under the elements of their sets,
    /// unless these take more memory than the tokens and more than a quarter of work_mem.
    fn tell_apart(&mut self, batch: &mut Batch) {
        if self.collection.documents.is_none() {
            return;
        }
        let kept = 0..batch.tokens.rows();
        let hot = collected(kept.filter(|kept| batch.tokens.is_hot(*kept))).or_raise();
        if hot.is_empty() {
            return;
        }
        let rows = collected(hot.iter().map(|kept| self.row(batch, *kept))).or_raise();
        let threshold = self.threshold;
        let most = (work_mem_bytes() / 4).max(batch.tokens.bytes());
        let mut counts = Frequencies::new(ELEMENTS * hot.len(), most).or_raise();
        for_each_set(
            &mut self.collection,
            ("counting elements", &rows),
            &|set, tokens| tokens.try_extend(set.iter().map(|element| element_key(*element))),
            &mut |_, tokens| tokens.iter().for_each(|token| counts.add(&[*token])),
        );
        let mut prefixes = Prefixes::new(batch.tokens.rows(), threshold).or_raise();
        let mut kept = hot.iter();
        for_each_set(
            &mut self.collection,
            ("choosing elements", &rows),
            &|set, chosen| choose_prefix(set, threshold, &counts, chosen),
            &mut |_, chosen| {
                let kept = kept.next().expect("a kept item for every row");
                if prefixes.bytes() <= most {
                    prefixes.set(*kept, chosen).or_raise();
                }
            },
        );
        if prefixes.bytes() <= most {
            batch.tokens.set_prefixes(prefixes).or_raise();
        }
    }

    /// Computes the sets that one-by-one comparisons are likely to need.
    fn compute_sets(&mut self, batch: &Batch) {
        if self.collection.shingling().is_none() {
            return;
        }
        let rows = collected(batch.likely().map(|kept| self.row(batch, kept))).or_raise();
        let keep = |set: &[i64], made: &mut Vec<i64>| made.try_extend_from_slice(set);
        for_each_set(
            &mut self.collection,
            ("computing sets", &rows),
            &keep,
            &mut |row, set| self.similarity.keep(row, set),
        );
    }

    /// Compares pairs of kept items, and passes them to `hand_on` in order, each with its similarity, or None below
    /// `threshold`.
    fn compare_all(
        &mut self,
        pairs: impl Iterator<Item = (u32, u32)>,
        batch: &Batch,
        threshold: f64,
        hand_on: HandOn<'_>,
    ) {
        let kind = self.collection.record_kind();
        let mut progress = Progress::begin("comparing", pairs.size_hint().1.unwrap_or_default());
        // Taken out: rows are read while `hand_on` borrows `self`.
        let mut documents = self.collection.documents.take();
        let mut values = std::mem::replace(&mut self.collection.values, Records::new(0));
        let mut of_document = documents.as_mut().map(|documents| documents.reader());
        let mut of_value = read_stored(&mut values);
        let mut read = |row, record: &mut Vec<u8>| match &mut of_document {
            Some(of_document) => of_document(row, record),
            None => of_value(row, record),
        };
        let measured = &*self;
        let mut take = |pair, similarity| hand_on(measured, pair, similarity);
        compare_pairs((kind, threshold), &mut read, &mut take, |put| {
            for (a, b) in pairs {
                progress.step();
                put((a, b), [a, b].map(|kept| measured.row(batch, kept)));
            }
        });
        drop((of_document, of_value));
        self.collection.documents = documents;
        self.collection.values = values;
    }

    /// Calls `visit` for the pairs of rows of two similar items.
    fn visit_similar(&self, (a, b): (u32, u32), similarity: f64, visit: Visit<'_>) {
        self.visit_across((a, b), similarity, visit);
        if self.collection.first_side.is_some() {
            self.visit_across((b, a), similarity, visit);
        }
    }

    fn keys(&self, x: u32, y: u32) -> [Option<pg_sys::Datum>; 2] {
        // SAFETY: visitors use a pair's keys before the next pair.
        [x, y].map(|row| unsafe { self.collection.keys.get(row) })
    }

    /// Calls `visit` for the pairs among the rows of one item.
    fn visit_identical(&self, item: u32, visit: Visit<'_>) {
        if self.collection.first_side.is_some() {
            return self.visit_across((item, item), 1.0, visit);
        }
        self.items
            .for_each_pair_within(item, &mut |x, y| self.visit_pair(x, y, 1.0, visit));
    }

    /// Calls `visit` for the pairs of a row of item a on side a and a row of item b on side b.
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
        if !self.collection.exceptions.contain([x, y]) {
            visit(self.keys(x, y), similarity);
        }
        check_interrupts();
    }
}

/// Calls `make` for the sets of `rows`, and `take` for the results in the same order.
fn for_each_set<U: Send>(
    collection: &mut Collection,
    (stage, rows): (&'static str, &[u32]),
    make: &MakeOfSet<'_, U>,
    take: &mut dyn FnMut(u32, &[U]),
) {
    let shingling = collection.shingling();
    let documents = collection.documents.as_mut().expect("sets of documents");
    sweep(
        &mut Progress::begin(stage, rows.len()),
        rows.iter().copied(),
        &mut documents.reader(),
        &|document, made, check| make(&set_of_document(document, shingling, check)?, made),
        take,
    );
}

/// Prepares the search for pairs by the outlines of the items.
fn search(outlining: &Outlining, outlines: &mut Records, items: &Items) -> PartnerSearch {
    let test = |Verified { plan, packed }| Test {
        fields: packed.slots.into(),
        bits: packed.slot_bits.into(),
        equal: plan.equal_fields,
    };
    let mut source = TokenSource {
        records: outlines,
        tokens: outlining.tokens(),
        test: outlining.verified.map(test),
        items: items.len(),
        record_of: &|item| items.first_row(item),
        buffer: Vec::new(),
    };
    PartnerSearch::new(&mut source, outlining.plan.needed)
}

/// Checks that the bands miss no pair, and warns if the search may take very long.
///
/// # Errors
/// ERROR `invalid_parameter_value` for signatures of too few slots.
fn check_bands(plan: &VerifiedPlan, rows: u32, threshold: f64) {
    let slots = plan.bands.slots;
    let has_few = slots < VerifiedPlan::slots(threshold);
    if plan.lossy {
        let hint = match has_few {
            true => {
                "Use more slots or a higher threshold, or let the query yield key and document only."
            }
            false => "Use a higher threshold.",
        };
        invalid(
            &format!(
                "signatures of {slots} slots would miss pairs of documents at threshold {threshold}"
            ),
            hint,
        );
    }
    if plan.narrow() && rows >= LARGE {
        let or_slots = if has_few { " or more slots" } else { "" };
        let message = format!(
            "at threshold {threshold} the search may take very long: a higher one{or_slots} would shorten it"
        );
        hold_interrupts(|| warning!("{message}"));
    }
}
