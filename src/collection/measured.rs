//! The items of a collection, with their rows and similarities.

use crate::collection::batch::Batch;
use crate::collection::compare::compare_pairs;
use crate::collection::documents::set_of_document;
use crate::collection::items::Items;
use crate::collection::reading::Collection;
use crate::collection::sweep::{read_stored, sweep};
use crate::collection::verify::RowSimilarity;
use crate::pg::prelude::*;
use neardup::bands::element_key;
use neardup::candidates::{Frequencies, Prefixes, choose_prefix};

/// Appends values made from a set to a list. Runs in any thread.
pub type MakeOfSet<'a, U> = dyn Fn(&[i64], &mut Vec<U>) -> Result<()> + Sync + 'a;

/// Receives the keys of two rows and their similarity.
pub type Visit<'a> = &'a mut dyn FnMut([Option<pg_sys::Datum>; 2], f64);

/// Receives two kept items and their similarity, or None below the threshold.
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
    /// Returns the similarity of the kept items `a` and `b`, or None if it is below the threshold or `least`, or if
    /// their rows are an exception.
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
    pub fn compute_sets(&mut self, batch: &Batch) {
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
    pub fn compare_all(
        &mut self,
        pairs: impl Iterator<Item = (u32, u32)>,
        batch: &Batch,
        threshold: f64,
        hand_on: HandOn<'_>,
    ) {
        let kind = self.collection.record_kind();
        let mut progress = Progress::begin("comparing", pairs.size_hint().1.unwrap_or_default());
        // Taken out because rows are read while `hand_on` borrows `self`.
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

    /// Calls `visit` for every pair of rows, one from each of two similar items.
    pub fn visit_similar(&self, (a, b): (u32, u32), similarity: f64, visit: Visit<'_>) {
        self.visit_across((a, b), similarity, visit);
        if self.collection.first_side.is_some() {
            self.visit_across((b, a), similarity, visit);
        }
    }

    pub fn keys(&self, x: u32, y: u32) -> [Option<pg_sys::Datum>; 2] {
        // SAFETY: visitors use a pair's keys before the next pair.
        [x, y].map(|row| unsafe { self.collection.keys.get(row) })
    }

    /// Calls `visit` for the pairs among the rows of one item.
    pub fn visit_identical(&self, item: u32, visit: Visit<'_>) {
        if self.collection.first_side.is_some() {
            return self.visit_across((item, item), 1.0, visit);
        }
        self.items
            .for_each_pair_within(item, &mut |x, y| self.visit_pair(x, y, 1.0, visit));
    }

    /// Calls `visit` for every pair of rows, one of item `a` on side a and one of item `b` on side b.
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

/// Calls `make` for the sets of `rows`, and calls `take` with the results in the same order.
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
