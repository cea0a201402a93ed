//! Similarity of two rows at or above a threshold.

use crate::collection::documents::{Documents, read_set, set_record, share_of_work_mem_bytes};
use crate::collection::reading::Collection;
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::spool::Records;
use neardup::memory::{Grow, filled};
use neardup::minhash::{Signature, estimate};
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};

/// The similarity of two rows of a collection.
pub trait Similarity {
    /// Returns the similarity of two rows; None below `threshold`.
    fn at_least(
        &mut self,
        collection: &mut Collection,
        a: u32,
        b: u32,
        threshold: f64,
    ) -> Option<f64>;

    /// Keeps the set of a row that was computed elsewhere.
    fn keep(&mut self, row: u32, set: &[i64]);
}

/// Returns which of two rows to hold, and the other one.
fn choose(held: Option<u32>, a: u32, b: u32) -> (u32, u32) {
    if held == Some(a) { (a, b) } else { (b, a) }
}

/// A record that is kept while it is compared with many.
#[derive(Default)]
pub struct HeldRecord {
    row: Option<u32>,
    value: Vec<u8>,
    buffer: Vec<u8>,
}

impl HeldRecord {
    /// Returns the records of two rows, of which the first is held.
    pub fn load<'a>(
        &'a mut self,
        records: &'a mut Records,
        held: u32,
        other: u32,
    ) -> (&'a [u8], &'a [u8]) {
        if self.row != Some(held) {
            self.row = Some(held);
            let record = records.read(held as usize, &mut self.buffer);
            self.value.clear();
            self.value.try_extend_from_slice(record).or_raise();
        }
        (&self.value, records.read(other as usize, &mut self.buffer))
    }
}

/// The estimate from the signatures: the very value of `minhash_sim`.
#[derive(Default)]
pub struct Estimate {
    held: HeldRecord,
}

impl Similarity for Estimate {
    fn at_least(
        &mut self,
        collection: &mut Collection,
        a: u32,
        b: u32,
        threshold: f64,
    ) -> Option<f64> {
        let (held, other) = choose(self.held.row, a, b);
        let (x, y) = self.held.load(&mut collection.signatures, held, other);
        let read = |record| Signature::from_bytes(record).or_raise();
        let similarity = estimate(&read(x), &read(y)).or_raise();
        (similarity >= threshold).then_some(similarity)
    }

    fn keep(&mut self, _: u32, _: &[i64]) {}
}

/// The sets behind the documents, computed once for each row that is asked for.
struct Sets {
    shingling: Option<Shingling>,
    computed: Records,
    /// One more than the number of a row's record; 0 before it is computed.
    record_of: Vec<u32>,
}

impl Sets {
    fn of(collection: &Collection) -> Self {
        let shingling = collection.shingling();
        let texts = shingling.map_or(0, |_| collection.rows() as usize);
        Self {
            shingling,
            computed: Records::new(share_of_work_mem_bytes()),
            record_of: filled(0, texts).or_raise(),
        }
    }

    /// Reads the sorted hashes of a row's set.
    fn load(&mut self, collection: &mut Collection, row: u32, set: &mut Vec<i64>) {
        let mut document = Vec::new();
        let Some(shingling) = self.shingling else {
            documents(collection).reader()(row, &mut document);
            return read_set(&document, set).or_raise();
        };
        if let Some(number) = self.record_of[row as usize].checked_sub(1) {
            let record = self.computed.read(number as usize, &mut document);
            return read_set(record, set).or_raise();
        }
        documents(collection).reader()(row, &mut document);
        let key = Key::from_seed(0);
        *set = shingle_hashes(&document, &shingling, &key, &mut check_interrupts).or_raise();
        self.keep(row, set);
    }

    fn keep(&mut self, row: u32, set: &[i64]) {
        self.computed.push(&set_record(set).or_raise());
        self.record_of[row as usize] = self.computed.len() as u32;
    }
}

fn documents(collection: &mut Collection) -> &mut Documents {
    let documents = collection.documents.as_mut();
    documents.expect("sets stand behind documents")
}

/// The exact Jaccard similarity of the documents.
pub struct Resemblance {
    sets: Sets,
    held_row: Option<u32>,
    held: Vec<i64>,
    other: Vec<i64>,
}

impl Resemblance {
    /// Returns the resemblance of the rows of a collection with documents.
    pub fn of(collection: &Collection) -> Self {
        Self {
            sets: Sets::of(collection),
            held_row: None,
            held: Vec::new(),
            other: Vec::new(),
        }
    }
}

impl Similarity for Resemblance {
    fn at_least(
        &mut self,
        collection: &mut Collection,
        a: u32,
        b: u32,
        threshold: f64,
    ) -> Option<f64> {
        let (held, other) = choose(self.held_row, a, b);
        if self.held_row != Some(held) {
            self.held_row = Some(held);
            self.sets.load(collection, held, &mut self.held);
        }
        self.sets.load(collection, other, &mut self.other);
        resemblance_at_least(&self.held, &self.other, threshold, &mut check_interrupts)
    }

    fn keep(&mut self, row: u32, set: &[i64]) {
        if self.sets.record_of[row as usize] == 0 {
            self.sets.keep(row, set);
        }
    }
}

/// Returns the resemblance of two sets; None below `threshold`.
pub fn resemblance_at_least(
    x: &[i64],
    y: &[i64],
    threshold: f64,
    check: &mut dyn FnMut(),
) -> Option<f64> {
    let (smaller, larger) = (x.len().min(y.len()), x.len().max(y.len()));
    // The smaller set within the larger is the best case.
    if smaller == 0 || (smaller as f64 / larger as f64) < threshold {
        return None;
    }
    let similarity = set::jaccard(x, y, check);
    (similarity >= threshold).then_some(similarity)
}
