//! The rows of a collection that are similar enough, and how similar they are.
//!
//! A batch of a search numbers its items anew; neither these numbers nor the numbers of items and rows leave
//! this module: it yields keys.

use crate::collection::batch::{Batch, Pairs};
use crate::collection::compare::{RecordKind, compare_pairs};
use crate::collection::documents::Documents;
use crate::collection::form::Test;
use crate::collection::items::Items;
use crate::collection::members::Members;
use crate::collection::outlines::{Outlines, Verified};
use crate::collection::reading::Collection;
use crate::collection::search::{PartnerSearch, TokenSource};
use crate::collection::sweep::{read_stored, sweep};
use crate::collection::verify::RowSimilarity;
use crate::pg::error::{OrRaise, check_interrupts, hold_interrupts, invalid};
use crate::pg::progress::{Progress, over};
use crate::pg::spool::Records;
use neardup::bands::plan::VerifiedPlan;
use neardup::memory::{Grow, collected};
use neardup::shingle::{Key, shingle_hashes};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Takes the keys of two rows, and their similarity.
pub type Visit<'a> = &'a mut dyn FnMut([Option<pg_sys::Datum>; 2], f64);

/// Takes two kept items, and their similarity; None below the threshold.
type HandOn<'a> = &'a mut dyn FnMut(&Measured, (u32, u32), Option<f64>);

/// Takes two similar kept items, and their similarity.
type VisitKept<'a> = &'a mut dyn FnMut(&Measured, (u32, u32), f64);

/// Rows from which on narrow bands are slow enough for a warning.
const LARGE: u32 = 100_000;

/// A collection ready to be searched for pairs whose estimate reaches a threshold or, where it has
/// documents, whose true similarity does.
pub struct Matches {
    search: PartnerSearch,
    measured: Measured,
}

/// The items of a collection, and their similarity.
struct Measured {
    collection: Collection,
    items: Items,
    similarity: RowSimilarity,
    threshold: f64,
}

impl Matches {
    /// Returns None for a collection without rows.
    pub fn of(mut collection: Collection) -> Option<Self> {
        collection.outline_signatures();
        let items = Items::of(&mut collection);
        let mut outlines = collection.outlines.take()?;
        let (rows, threshold) = (collection.rows(), collection.threshold);
        if let Some(verified) = &outlines.outlining.verified {
            check_bands(&verified.plan, rows, threshold);
        }
        let similarity = RowSimilarity::of(&collection);
        Some(Self {
            search: search(&mut outlines, &items),
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
        for item in over("pairing copies", 0..measured.items.len()) {
            measured.visit_identical(item, visit);
        }
        search.for_each_batch(&mut |batch| {
            let sides = (0..batch.tokens.rows())
                .map(|kept| measured.items.sides(batch.item(kept), &measured.collection));
            let sides = collected(sides).or_raise();
            let pairs = batch.pairs(&|kept| sides[kept as usize]);
            measured.for_each_similar(&batch, pairs, &mut |measured, (a, b), similarity| {
                let items = (batch.item(a), batch.item(b));
                measured.visit_similar(items, similarity, visit);
            });
        });
    }

    /// Visits every row in query order with the canonical row of its star cluster.
    pub fn for_each_in_star(&mut self, visit: Visit<'_>) {
        let Self { search, measured } = self;
        let mut members = Members::new(measured.collection.rows());
        search.for_each_batch(&mut |batch| {
            measured.compute_sets(&batch);
            let kept = 0..batch.tokens.rows();
            let rows = measured.items.rows_of(kept.map(|kept| batch.item(kept)));
            members.put_batch(&batch, rows, &mut |a, b, least| {
                measured.kept_similarity(&batch, (a, b), least)
            });
        });
        members.for_each(&measured.items, &mut |row, canonical, similarity| {
            visit(measured.keys(row, canonical), similarity);
        });
    }

    /// Visits every row with the first row of its connected component.
    pub fn for_each_in_component(&mut self, visit: Visit<'_>) {
        let Self { search, measured } = self;
        let mut members = Members::new(measured.collection.rows());
        search.for_each_batch(&mut |batch| {
            measured.compute_sets(&batch);
            let mut sets =
                batch.connect(&mut |a, b| measured.kept_similarity(&batch, (a, b), 0.0).is_some());
            let others = (0..batch.tokens.rows())
                .map(|kept| (sets.find(kept), kept))
                .filter(|(canonical, kept)| canonical != kept);
            measured.compare_all(
                others,
                &batch,
                0.0,
                &mut |measured, (canonical, kept), found| {
                    let [row, canonical] = [kept, canonical].map(|kept| measured.row(&batch, kept));
                    members.put(row, canonical, found.unwrap_or(0.0));
                },
            );
        });
        let mut members = members.sorted();
        for item in over("listing rows", 0..measured.items.len()) {
            let first = measured.items.first_row(item);
            let (canonical, similarity) = members.canonical_of(first).unwrap_or((first, 1.0));
            for row in measured.items.rows(item) {
                visit(measured.keys(row, canonical), similarity);
            }
        }
        members.end();
    }

    /// Returns the documents of the rows, by their numbers.
    pub fn into_documents(self) -> Option<Documents> {
        self.measured.collection.documents
    }
}

impl Measured {
    /// Returns the similarity of two kept items; None below the threshold or `least`.
    fn kept_similarity(&mut self, batch: &Batch, (a, b): (u32, u32), least: f64) -> Option<f64> {
        check_interrupts();
        if !batch.passes(a, b) {
            return None;
        }
        let rows = [a, b].map(|kept| self.row(batch, kept));
        let threshold = self.threshold.max(least);
        self.similarity
            .at_least(&mut self.collection, rows, threshold)
    }

    /// Returns the first row of a kept item.
    fn row(&self, batch: &Batch, kept: u32) -> u32 {
        self.items.first_row(batch.item(kept))
    }

    /// Visits the pairs that are similar, of kept items, the earlier first, with the help of other threads.
    fn for_each_similar(&mut self, batch: &Batch, pairs: Pairs, visit: VisitKept<'_>) {
        let threshold = self.threshold;
        self.compare_all(pairs, batch, threshold, &mut |measured, pair, found| {
            if let Some(similarity) = found {
                visit(measured, pair, similarity);
            }
        });
    }

    /// Computes the sets that comparisons one by one are likely to need.
    fn compute_sets(&mut self, batch: &Batch) {
        let Some((shingling, documents)) = self
            .collection
            .shingling()
            .zip(self.collection.documents.as_mut())
        else {
            return;
        };
        let rows = batch
            .likely()
            .map(|kept| self.items.first_row(batch.item(kept)));
        sweep(
            &mut Progress::begin("computing sets", rows.size_hint().1),
            rows,
            &mut documents.reader(),
            &|text, set, check| {
                set.try_extend(shingle_hashes(text, &shingling, &Key::from_seed(0), check)?)
            },
            &mut |row, set| self.similarity.keep(row, set),
        );
    }

    /// Compares pairs of kept items, and hands on their similarities in order; None of those
    /// below the threshold.
    fn compare_all(
        &mut self,
        pairs: impl Iterator<Item = (u32, u32)>,
        batch: &Batch,
        threshold: f64,
        hand_on: HandOn<'_>,
    ) {
        let kind = self.kind();
        let mut progress = Progress::begin("comparing", pairs.size_hint().1);
        // Rows are read while others are handed on.
        let mut documents = self.collection.documents.take();
        let mut signatures =
            std::mem::replace(&mut self.collection.signatures, Records::of_width(0, 0));
        let mut of_document = documents.as_mut().map(|documents| documents.reader());
        let mut of_signature = read_stored(&mut signatures);
        let mut read = |row, record: &mut Vec<u8>| match &mut of_document {
            Some(of_document) => of_document(row, record),
            None => of_signature(row, record),
        };
        let measured = &*self;
        let mut take = |pair, similarity| hand_on(measured, pair, similarity);
        compare_pairs((kind, threshold), &mut read, &mut take, |put| {
            for (a, b) in pairs {
                progress.step();
                put((a, b), [a, b].map(|kept| measured.row(batch, kept)));
            }
        });
        drop((of_document, of_signature));
        self.collection.documents = documents;
        self.collection.signatures = signatures;
    }

    /// Returns the kind of record by which rows are compared.
    fn kind(&self) -> RecordKind {
        match (&self.collection.documents, self.collection.shingling()) {
            (None, _) => RecordKind::Signature,
            (Some(_), None) => RecordKind::Set,
            (Some(_), Some(shingling)) => RecordKind::Text(shingling),
        }
    }

    /// Visits the pairs of rows of two similar items.
    fn visit_similar(&self, (a, b): (u32, u32), similarity: f64, visit: Visit<'_>) {
        self.visit_across((a, b), similarity, visit);
        if self.collection.first_side.is_some() {
            self.visit_across((b, a), similarity, visit);
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

/// Prepares the search for pairs by the outlines of the items.
fn search(outlines: &mut Outlines, items: &Items) -> PartnerSearch {
    let outlining = outlines.outlining;
    let test = |Verified { plan, packed }| Test {
        fields: packed.slots.into(),
        bits: packed.slot_bits.into(),
        equal: plan.equal_fields,
    };
    let mut source = TokenSource {
        records: &mut outlines.records,
        tokens: outlining.tokens(),
        test: outlining.verified.map(test),
        items: items.len(),
        record_of: &|item| items.first_row(item),
        buffer: Vec::new(),
    };
    PartnerSearch::new(&mut source, outlining.plan.needed)
}

/// Checks that no pair is missed, and warns where the search may take very long.
///
/// # Errors
/// ERROR `invalid_parameter_value` for signatures of too few slots.
fn check_bands(plan: &VerifiedPlan, rows: u32, threshold: f64) {
    let slots = plan.bands.slots;
    if plan.lossy {
        invalid(
            &format!(
                "signatures of {slots} slots would miss pairs of documents at threshold {threshold}"
            ),
            "Use more slots or a higher threshold, or let the query yield key and document only.",
        );
    }
    if plan.narrow() && rows >= LARGE {
        let message = format!(
            "threshold {threshold} is low for signatures of {slots} slots, the search may take very long: use a higher one, or more slots"
        );
        hold_interrupts(|| warning!("{message}"));
    }
}
