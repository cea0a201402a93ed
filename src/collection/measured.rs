//! The items of a collection, with their rows and similarities.

use crate::collection::batch::Batch;
use crate::collection::compare::compare_pairs;
use crate::collection::documents::record_reader;
use crate::collection::items::Items;
use crate::collection::reading::{Collection, PairMeasure};
use crate::collection::verify::RowSimilarity;
use crate::pg::prelude::*;
use neardup::bands::element_key;
use neardup::candidates::{Frequencies, Prefixes, choose_prefix};

/// Receives the keys of two rows and their similarity.
pub type Visit<'a> = &'a mut dyn FnMut([Option<pg_sys::Datum>; 2], f64);

/// Receives two items and their similarity, or None below the threshold.
type HandOn<'a> = &'a mut dyn FnMut(&Measured, (u32, u32), Option<f64>);

/// Assumed number of elements per set, by which the number of counters is chosen. With fewer counters, more elements
/// share one.
const ELEMENTS: usize = 256;

/// The items of a collection, and their similarity.
pub struct Measured {
    pub collection: Collection,
    pub items: Items,
    pub similarity: RowSimilarity,
    pub threshold: f64,
}

impl Measured {
    /// Returns the items of a collection.
    pub fn of(mut collection: Collection) -> Self {
        Self {
            items: Items::of(&mut collection),
            similarity: RowSimilarity::of(&collection),
            threshold: collection.threshold,
            collection,
        }
    }

    /// Returns the similarity of the kept items `a` and `b`, or None if it is below the threshold or `least`, if the
    /// prefilter rejects the pair, or if their rows are an exception.
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
    pub fn row(&self, batch: &Batch, kept: u32) -> u32 {
        self.items.first_row(batch.item(kept))
    }

    /// Makes documents that share a token with very many others look for partners under the elements of their sets,
    /// unless this takes more memory than the tokens and more than a quarter of work_mem.
    pub fn tell_apart(&mut self, batch: &mut Batch) {
        if self.collection.documents().is_none() {
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
        self.collection.for_each_set(
            ("counting elements", &rows),
            &|set, tokens| tokens.try_extend(set.iter().map(|element| element_key(*element))),
            &mut |_, tokens| tokens.iter().for_each(|token| counts.add(*token)),
        );
        let mut prefixes = Prefixes::new(batch.tokens.rows(), threshold).or_raise();
        let mut kept = hot.iter();
        self.collection.for_each_set(
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

    /// Computes and keeps the sets of texts that one-by-one comparisons in `batch` are likely to need.
    pub fn compute_sets(&mut self, batch: &Batch) {
        if self.collection.shingling().is_none() {
            return;
        }
        let rows = collected(batch.likely().map(|kept| self.row(batch, kept))).or_raise();
        self.collection.for_each_set(
            ("computing sets", &rows),
            &|set, made| made.try_extend_from_slice(set),
            &mut |row, set| self.similarity.keep(row, set),
        );
    }

    /// Compares about `count` pairs of items, and calls `visit` for the rows of the pairs that reach the threshold.
    pub fn visit_pairs(
        &mut self,
        pairs: impl Iterator<Item = (u32, u32)>,
        count: usize,
        visit: Visit<'_>,
    ) {
        let threshold = self.threshold;
        self.compare_all(pairs, count, threshold, &mut |measured, items, found| {
            if let Some(similarity) = found {
                measured.visit_similar(items, similarity, visit);
            }
        });
    }

    /// Compares about `count` pairs of items, and passes them to `hand_on` in order, each with its similarity, or None
    /// below `threshold`.
    pub fn compare_all(
        &mut self,
        pairs: impl Iterator<Item = (u32, u32)>,
        count: usize,
        threshold: f64,
        hand_on: HandOn<'_>,
    ) {
        let kind = self.collection.record_kind();
        let mut progress = Progress::begin("comparing", count);
        // Taken out because rows are read while `hand_on` borrows `self`.
        let mut records = std::mem::replace(&mut self.collection.records, Records::new(0));
        let mut read = record_reader(&mut records, self.collection.documents());
        let measured = &*self;
        let mut take = |pair, similarity| hand_on(measured, pair, similarity);
        compare_pairs((kind, threshold), &mut read, &mut take, |put| {
            for (a, b) in pairs {
                progress.step();
                put((a, b), [a, b].map(|item| measured.items.first_row(item)));
            }
        });
        drop(read);
        self.collection.records = records;
    }

    /// Calls `visit` for every pair of rows, one from each of two similar items.
    fn visit_similar(&self, (a, b): (u32, u32), similarity: f64, visit: Visit<'_>) {
        self.visit_across((a, b), similarity, visit);
        if self.collection.first_side.is_some() && !self.is_ordered() {
            self.visit_across((b, a), similarity, visit);
        }
    }

    pub fn keys(&self, x: u32, y: u32) -> [Option<pg_sys::Datum>; 2] {
        // SAFETY: visitors use a pair's keys before the next pair.
        [x, y].map(|row| unsafe { self.collection.keys.get(row) })
    }

    /// Calls `visit` for the pairs among the rows of every item. In a join, a pair has a row on each side.
    pub fn visit_copies(&self, visit: Visit<'_>) {
        for item in over("pairing copies", 0..self.items.len()) {
            if self.is_ordered() || self.collection.first_side.is_some() {
                self.visit_across((item, item), 1.0, visit);
            } else {
                let visit = &mut |x, y| self.visit_pair(x, y, 1.0, visit);
                self.items.for_each_pair_within(item, visit);
            }
        }
    }

    /// Returns whether (a, b) and (b, a) are different pairs, as with containment.
    fn is_ordered(&self) -> bool {
        self.collection.measure == PairMeasure::Containment
    }

    /// Calls `visit` for every pair of different rows, one of item `a` on side a and one of item `b` on side b.
    fn visit_across(&self, (a, b): (u32, u32), similarity: f64, visit: Visit<'_>) {
        let theirs = self.items.rows_of_b(b);
        if theirs.clone().next().is_none() {
            return;
        }
        let ours = self.items.rows(a);
        for x in ours.take_while(|&row| self.collection.sides(row).a) {
            for y in theirs.clone() {
                match self.is_ordered() {
                    true if x == y => {}
                    true => self.visit_pair(x, y, similarity, visit),
                    false => self.visit_pair(x.min(y), x.max(y), similarity, visit),
                }
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
