//! The pairs of similar rows in a collection, and their similarities.
//!
//! A batch renumbers its items. The numbers of rows, items and kept items are internal: callers receive keys.

use crate::collection::batch::Batch;
use crate::collection::bit_strings;
use crate::collection::form::Test;
use crate::collection::items::Items;
use crate::collection::measured::{Measured, Visit};
use crate::collection::members::Members;
use crate::collection::outlines::{Outlining, Verified};
use crate::collection::partners::Lacking;
use crate::collection::reading::Collection;
use crate::collection::search::{self, Batches, TokenSource};
use crate::pg::error::hold_interrupts;
use crate::pg::prelude::*;
use neardup::bands::plan::VerifiedPlan;
use pgrx::prelude::*;

/// Minimum number of rows for a warning that narrow bands are slow.
const LARGE: u32 = 100_000;

/// A collection prepared for the search for pairs at or above a threshold. Documents and bit strings are compared by
/// their true similarity, signatures by the estimate.
pub struct Matches {
    /// None for bit strings, which are searched one length at a time.
    batches: Option<Batches>,
    measured: Measured,
}

impl Matches {
    /// Returns a collection prepared for the search, or None for a collection without rows.
    pub fn of(collection: Collection) -> Option<Self> {
        let (rows, threshold) = (collection.rows(), collection.threshold);
        if rows == 0 {
            return None;
        }
        let mut measured = Measured::of(collection);
        let collection = &mut measured.collection;
        let mut outlines = std::mem::replace(&mut collection.outlines, Records::new(0));
        if let Some(Verified { plan, .. }) = collection.outlining.and_then(|of| of.verified) {
            check_bands(&plan, rows, threshold);
        }
        let outlining = collection.outlining.as_ref();
        Some(Self {
            batches: outlining.map(|outlining| search(outlining, &mut outlines, &measured.items)),
            measured,
        })
    }

    /// Calls `visit` for batches of the items that may have partners. Partners are in the same batch.
    fn for_each_batch(&mut self, visit: &mut dyn FnMut(&mut Measured, Batch)) {
        let Self { batches, measured } = self;
        if let Some(batches) = batches {
            for mut batch in batches {
                measured.tell_apart(&mut batch);
                visit(measured, batch);
            }
            return;
        }
        let distance = measured.collection.distance.unwrap_or(0);
        let strings = &mut measured.collection.records;
        for (length, items) in bit_strings::by_length(strings, &measured.items) {
            let strings = &mut measured.collection.records;
            let same_length = (length, &items[..]);
            let batches = bit_strings::search(strings, &measured.items, same_length, distance);
            measured.threshold = bit_strings::share_of_equal(length, distance);
            for mut batch in batches {
                batch.renumber(&items);
                visit(measured, batch);
            }
        }
    }

    /// Calls `visit` once for every pair of similar rows. The earlier row comes first; in a join, it is the row of side
    /// a.
    pub fn for_each_pair(&mut self, visit: Visit<'_>) {
        self.measured.visit_copies(visit);
        self.for_each_batch(&mut |measured, batch| {
            let sides_of = |kept| measured.items.sides(batch.item(kept), &measured.collection);
            let sides = collected((0..batch.tokens.rows()).map(sides_of)).or_raise();
            let (pairs, count) = batch.pairs(&|kept| sides[kept as usize]);
            let pairs = pairs.map(|(a, b)| (batch.item(a), batch.item(b)));
            measured.visit_pairs(pairs, count, visit);
        });
    }

    /// Calls `visit` for pairs of similar rows, once per pair and with the earlier row first, until every row has
    /// `most` partners, or all its partners if it has fewer. Copies are paired first. A row chosen by other rows can
    /// have more than `most` partners.
    pub fn for_each_partner(&mut self, most: u32, visit: Visit<'_>) {
        let mut lacking = Lacking::after_copies(&self.measured, most, visit);
        self.for_each_batch(&mut |measured, batch| {
            measured.compute_sets(&batch);
            lacking.search(measured, &batch, visit);
        });
    }

    /// Calls `visit` for every row, in query order, with the canonical row of its star cluster and the similarity to
    /// it.
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

    /// Calls `visit` for every row, in query order, with the first row of its connected component and the similarity to
    /// it, which can be below the threshold.
    pub fn for_each_in_component(&mut self, visit: Visit<'_>) {
        let mut members = Members::new(self.measured.collection.rows());
        self.for_each_batch(&mut |measured, batch| {
            measured.compute_sets(&batch);
            let sets =
                batch.connect(&mut |a, b| measured.kept_similarity(&batch, (a, b), 0.0).is_some());
            let count = batch.tokens.rows() as usize;
            let others = (0..batch.tokens.rows())
                .map(|kept| (batch.item(sets.find(kept)), batch.item(kept)))
                .filter(|(canonical, item)| canonical != item);
            measured.compare_all(others, count, 0.0, &mut |measured, (first, item), found| {
                let (items, similarity) = (&measured.items, found.unwrap_or(0.0));
                members.put_item(items, item, items.first_row(first), similarity);
            });
        });
        self.visit_members(members, visit);
    }

    /// Calls `visit` for every row, in query order, with its canonical row in `members` and the similarity to it.
    fn visit_members(&self, members: Members, visit: Visit<'_>) {
        let measured = &self.measured;
        members.for_each(&measured.items, &mut |row, canonical, similarity| {
            visit(measured.keys(row, canonical), similarity);
        });
    }
}

/// Returns batches of the items that may have partners, based on the outlines of the items.
fn search(outlining: &Outlining, outlines: &mut Records, items: &Items) -> Batches {
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
    search::search(&mut source, outlining.plan.needed)
}

/// Checks that a search for documents at `threshold` misses no pair.
///
/// # Errors
/// ERROR `invalid_parameter_value` for a threshold below 0.021.
pub fn check_threshold(threshold: f64) {
    let plan = VerifiedPlan::new(VerifiedPlan::slots(threshold), u32::BITS as u8, threshold);
    check_bands(&plan, 0, threshold);
}

/// Checks that the bands miss no pair, and warns if the search may take very long.
///
/// # Errors
/// ERROR `invalid_parameter_value` for signatures with too few slots for the threshold.
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
