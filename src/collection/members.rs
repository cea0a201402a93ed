//! Clusters: the rows of a collection and their canonical rows.

use crate::collection::batch::Batch;
use crate::collection::items::Items;
use crate::pg::prelude::*;
use crate::pg::sort::PairSort;
use neardup::cluster::{Canonicals, SimilarityOf};

/// The members of clusters, with their canonical rows and the similarities to them.
pub struct Members {
    /// Pairs (row, canonical row), packed so that they sort by row, each with the bits of the similarity.
    sort: PairSort,
    rows: u32,
}

impl Members {
    /// Returns an empty list for a collection of `rows` rows.
    pub fn new(rows: u32) -> Self {
        Self {
            sort: PairSort::begin(pg_sys::INT8OID, 1, (work_mem_bytes() / 4 / 1024) as i32),
            rows,
        }
    }

    /// Makes `row` a member of the cluster of `canonical`. Must not be called twice for a row.
    fn put(&mut self, row: u32, canonical: u32, similarity: f64) {
        let ends = (u64::from(row) << 32 | u64::from(canonical)) ^ SIGN;
        let similarity = similarity.to_bits() as i64;
        self.sort.put(pg_sys::Datum::from(ends as i64), similarity);
    }

    /// Makes the rows of `item` members of the cluster of `canonical`.
    pub fn put_item(&mut self, items: &Items, item: u32, canonical: u32, similarity: f64) {
        for row in items.rows(item) {
            self.put(row, canonical, similarity);
        }
    }

    /// Clusters `rows`, pairs of a row of the batch and the kept number of its item. `similarity` compares two kept
    /// items.
    pub fn put_batch(
        &mut self,
        batch: &Batch,
        rows: Vec<(u32, u32)>,
        similarity: SimilarityOf<'_>,
    ) {
        let mut canonicals = Canonicals::new(&batch.tokens).or_raise();
        let mut first_rows = filled(0, batch.tokens.rows() as usize).or_raise();
        for (row, kept) in over("clustering", rows.into_iter()) {
            let placed = canonicals.place(&batch.tokens, kept, similarity);
            match placed.or_raise() {
                Some((canonical, similarity)) => {
                    self.put(row, first_rows[canonical as usize], similarity);
                }
                None => first_rows[kept as usize] = row,
            }
        }
    }

    /// Calls `visit` for every row, in order, with the canonical row of its cluster and the similarity to it. The
    /// canonical row of a row that [`Self::put_item`] and [`Self::put_batch`] did not place is the first row of its
    /// item.
    pub fn for_each(mut self, items: &Items, visit: &mut dyn FnMut(u32, u32, f64)) {
        self.sort.sort();
        let mut next = self.sort.next();
        for row in over("listing rows", 0..self.rows) {
            let (mut canonical, mut similarity) = (items.first_row(items.of_row(row)), 1.0);
            if let Some((ends, bits)) = next
                && let ends = ends.value() as u64 ^ SIGN
                && (ends >> 32) as u32 == row
            {
                (canonical, similarity) = (ends as u32, f64::from_bits(bits as u64));
                next = self.sort.next();
            }
            visit(row, canonical, similarity);
        }
        self.sort.end();
    }
}

/// The sign bit, flipped so that packed pairs, which PostgreSQL sorts as signed numbers, are sorted as unsigned ones.
const SIGN: u64 = 1 << 63;
