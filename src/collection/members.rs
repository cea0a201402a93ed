//! Star clusters: the rows of a collection and the canonical rows that they belong to.

use crate::collection::batch::Batch;
use crate::collection::items::Items;
use crate::pg::error::OrRaise;
use crate::pg::links::{Links, SortedLinks};
use crate::pg::progress::Progress;
use neardup::cluster::{Canonicals, SimilarityOf};
use neardup::memory::filled;

/// The canonical rows of members, with the similarities to them.
pub struct Members {
    links: Links,
    rows: u32,
}

impl Members {
    /// Returns no members, of that many rows.
    pub fn new(rows: u32) -> Self {
        Self {
            links: Links::new(rows, rows as usize),
            rows,
        }
    }

    /// Makes a row a member of a canonical row's cluster.
    pub fn put(&mut self, row: u32, canonical: u32, similarity: f64) {
        self.links.put(row, canonical, similarity);
    }

    /// Puts the rows of a batch, each with its kept number, into clusters; `similarity` compares kept
    /// numbers.
    pub fn put_batch(
        &mut self,
        batch: &Batch,
        rows: Vec<(u32, u32)>,
        similarity: SimilarityOf<'_>,
    ) {
        let mut canonicals = Canonicals::new(&batch.tokens).or_raise();
        let mut first_rows = filled(0, batch.tokens.rows() as usize).or_raise();
        let mut progress = Progress::begin("clustering", Some(rows.len()));
        for (row, kept) in rows {
            progress.step();
            let placed = canonicals.place(&batch.tokens, kept, similarity);
            match placed.or_raise() {
                Some((canonical, similarity)) => {
                    self.put(row, first_rows[canonical as usize], similarity);
                }
                None => first_rows[kept as usize] = row,
            }
        }
    }

    /// Visits every row in order with the canonical row of its cluster, and the similarity to it.
    pub fn for_each(self, items: &Items, visit: &mut dyn FnMut(u32, u32, f64)) {
        let mut links = self.links.sorted();
        let mut progress = Progress::begin("listing rows", Some(self.rows as usize));
        for row in 0..self.rows {
            progress.step();
            let first = items.first_row(items.of_row(row));
            let (canonical, similarity) = canonical_of(row, &mut links).unwrap_or((first, 1.0));
            visit(row, canonical, similarity);
        }
    }

    /// Ends putting, for [`canonical_of`].
    pub fn sorted(self) -> SortedLinks {
        self.links.sorted()
    }
}

/// Returns the canonical row that a row is linked to, and the similarity to it; None if it is canonical.
pub fn canonical_of(row: u32, members: &mut SortedLinks) -> Option<(u32, f64)> {
    let mut found = None;
    members.of(row, &mut |canonical, similarity| {
        found = Some((canonical, similarity));
    });
    found
}
