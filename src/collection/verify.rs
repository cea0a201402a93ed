//! Similarity of two rows at or above a threshold.

use crate::collection::documents::{DocumentKind, Documents, share_of_work_mem_bytes};
use crate::collection::reading::Collection;
use crate::minhash::datum::shingling;
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
}

/// The sets behind the documents, computed once for each row that is asked for.
pub struct Sets {
    shingling: Option<Shingling>,
    computed: Records,
    /// One more than the number of a row's record; 0 before it is computed.
    record_of: Vec<u32>,
}

impl Sets {
    /// Returns None if the collection has no documents.
    pub fn of(collection: &Collection) -> Option<Self> {
        collection.documents.as_ref()?;
        let shingling = collection.header.and_then(|header| shingling(&header));
        Some(Self {
            shingling,
            computed: Records::new(share_of_work_mem_bytes()),
            record_of: Vec::new(),
        })
    }

    /// Fills `set` with the sorted hashes of a row's set, and keeps those of a text.
    pub fn load(&mut self, collection: &mut Collection, row: u32, set: &mut Vec<i64>) {
        let documents = collection.documents.as_mut().expect("there are documents");
        if documents.kind != DocumentKind::Text {
            return self.compute(documents, row, set);
        }
        if self.record_of.is_empty() {
            self.record_of = filled(0, documents.len()).or_raise();
        }
        let mut buffer = Vec::new();
        let record = self.record_of[row as usize];
        if record > 0 {
            return decode(self.computed.read(record as usize - 1, &mut buffer), set);
        }
        self.compute(documents, row, set);
        for hash in set.iter() {
            buffer.try_extend_from_slice(&hash.to_le_bytes()).or_raise();
        }
        self.computed.push(&buffer);
        self.record_of[row as usize] = self.computed.len() as u32;
    }

    /// Does the same without keeping them.
    pub fn compute(&self, documents: &mut Documents, row: u32, set: &mut Vec<i64>) {
        let mut buffer = Vec::new();
        let kind = documents.kind;
        let record = documents.read(row, &mut buffer);
        match (kind, &self.shingling) {
            (DocumentKind::Text, Some(shingling)) => {
                let key = Key::from_seed(0);
                let hashes = shingle_hashes(record, shingling, &key, &mut check_interrupts);
                *set = hashes.or_raise();
            }
            _ => decode(record, set),
        }
    }
}

fn decode(record: &[u8], set: &mut Vec<i64>) {
    let (hashes, _) = record.as_chunks::<8>();
    set.clear();
    let hashes = hashes.iter().map(|bytes| i64::from_le_bytes(*bytes));
    set.try_extend(hashes).or_raise();
}

/// The exact Jaccard similarity of the documents.
pub struct Resemblance {
    sets: Sets,
    held_row: Option<u32>,
    held: Vec<i64>,
    other: Vec<i64>,
}

impl Resemblance {
    pub fn new(sets: Sets) -> Self {
        Self {
            sets,
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
        let (x, y) = (&self.held, &self.other);
        let (smaller, larger) = (x.len().min(y.len()), x.len().max(y.len()));
        // The smaller set within the larger is the best case.
        if smaller == 0 || (smaller as f64 / larger as f64) < threshold {
            return None;
        }
        let similarity = set::jaccard(x, y, &mut check_interrupts);
        (similarity >= threshold).then_some(similarity)
    }
}
