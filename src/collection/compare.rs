//! Compares pairs of rows with the help of other threads.

use crate::collection::bit_strings;
use crate::collection::documents::{set_of_document, share_of_work_mem_bytes};
use crate::collection::rows::RecordKind;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::prelude::*;
use neardup::memory::with_room;
use neardup::minhash::estimate_stored;
use neardup::set::{containment_at_least, jaccard_at_least};
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::{Arc, OnceLock};

/// Maximum number of pairs in a piece of work.
const PAIRS: usize = 1 << 12;

/// A row that is compared with others.
#[derive(Default)]
pub struct Compared {
    record: Vec<u8>,
    /// The sorted hashes of the row's set, computed by the first comparison.
    set: OnceLock<Vec<i64>>,
}

impl Compared {
    /// Returns the row's approximate size in bytes, with a guess for a set that has not been computed yet.
    fn bytes(&self, kind: RecordKind) -> usize {
        let record = self.record.len();
        let guessed = match kind {
            RecordKind::Signature | RecordKind::Bits => 0,
            RecordKind::Set | RecordKind::Contained => record,
            RecordKind::Text(_) => 2 * record,
        };
        record + self.set.get().map_or(guessed, |set| size_of_val(&set[..]))
    }

    /// Returns the sorted hashes of the row's set. Two threads may compute them at the same time. Neither waits for the
    /// other, which might end before it is done.
    fn set(&self, kind: RecordKind, check: &mut dyn FnMut()) -> Result<&[i64]> {
        if let Some(set) = self.set.get() {
            return Ok(set);
        }
        let shingling = match kind {
            RecordKind::Text(shingling) => Some(shingling),
            _ => None,
        };
        let computed = set_of_document(&self.record, shingling, check)?;
        Ok(self.set.get_or_init(|| computed))
    }

    /// Returns the similarity to `other`, or None below `threshold` or for bit strings of different lengths.
    ///
    /// # Errors
    /// The errors of [`estimate_stored`]; `OutOfMemory`.
    pub fn similarity(
        &self,
        other: &Self,
        kind: RecordKind,
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<Option<f64>> {
        let similarity = match kind {
            RecordKind::Signature => Some(estimate_stored(&self.record, &other.record)?),
            RecordKind::Bits => bit_strings::compare(&self.record, &other.record).map(|x| x.1),
            RecordKind::Set | RecordKind::Text(_) | RecordKind::Contained => {
                let (x, y) = (self.set(kind, check)?, other.set(kind, check)?);
                return Ok(match kind {
                    RecordKind::Contained => containment_at_least(x, y, threshold, check),
                    _ => jaccard_at_least(x, y, threshold, check),
                });
            }
        };
        Ok(similarity.filter(|similarity| *similarity >= threshold))
    }
}

/// Rows that were compared, kept for later pairs within a share of work_mem.
pub struct KeptRows {
    kind: RecordKind,
    /// The kept rows by row number. Users do not choose row numbers, so a fast hash is safe.
    rows: FxHashMap<u32, Arc<Compared>>,
    /// Approximate size of `rows` in bytes.
    bytes: usize,
}

impl KeptRows {
    pub fn new(kind: RecordKind) -> Self {
        Self {
            kind,
            rows: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// Returns `row` and the number of bytes read for it. `read` appends the row's record.
    pub fn row(
        &mut self,
        row: u32,
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
    ) -> (Arc<Compared>, usize) {
        if let Some(compared) = self.rows.get(&row) {
            return (compared.clone(), 0);
        }
        if self.bytes > share_of_work_mem_bytes() {
            self.drop_half();
        }
        let mut compared = Compared::default();
        read(row, &mut compared.record);
        let (bytes, compared) = (compared.record.len(), Arc::new(compared));
        self.bytes += compared.bytes(self.kind);
        self.rows.try_reserve(1).or_raise();
        self.rows.insert(row, compared.clone());
        (compared, bytes)
    }

    /// Drops every other row. About half of the rows that will be used again soon remain, whether rows are used in turn
    /// or each many times in succession.
    fn drop_half(&mut self) {
        let (mut stays, kind) = (false, self.kind);
        self.bytes = 0;
        self.rows.retain(|_, compared| {
            stays = !stays;
            if stays {
                self.bytes += compared.bytes(kind);
            }
            stays
        });
    }
}

/// Compares pairs with the help of other threads. `feed` passes pairs of items to its argument, each with the items'
/// first rows. `read` appends the record of a row. `take` receives the pairs in the same order, each with its
/// similarity, or None below the threshold or for bit strings of different lengths.
pub fn compare_pairs(
    (kind, threshold): (RecordKind, f64),
    read: &mut dyn FnMut(u32, &mut Vec<u8>),
    take: &mut dyn FnMut((u32, u32), Option<f64>),
    feed: impl FnOnce(&mut dyn FnMut((u32, u32), [u32; 2])),
) {
    let work = |compared: Vec<[Arc<Compared>; 2]>, check: &mut dyn FnMut()| {
        let mut similarities = with_room(compared.len())?;
        for [x, y] in &compared {
            check();
            similarities.try_push(x.similarity(y, kind, threshold, check)?)?;
        }
        Ok(similarities)
    };
    let mut take = |pairs: Vec<(u32, u32)>, similarities: Result<Vec<Option<f64>>>| {
        for (pair, similarity) in pairs.into_iter().zip(similarities.or_raise()) {
            take(pair, similarity);
        }
    };
    in_order(&work, &mut take, |line| {
        let (mut kept, mut bytes_read) = (KeptRows::new(kind), 0);
        let (mut pairs, mut compared) = (Vec::new(), Vec::new());
        feed(&mut |pair, rows| {
            let rows = rows.map(|row| {
                let (row, bytes) = kept.row(row, read);
                bytes_read += bytes;
                row
            });
            compared.try_push(rows).or_raise();
            pairs.try_push(pair).or_raise();
            if bytes_read >= piece_bytes() || pairs.len() >= PAIRS {
                let bytes = mem::take(&mut bytes_read);
                line.put(mem::take(&mut pairs), mem::take(&mut compared), bytes);
            }
        });
        line.put(pairs, compared, bytes_read);
    });
}
