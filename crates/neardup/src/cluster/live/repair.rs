//! Repair of star clusters after a change.

use crate::{Grow, Result};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// A canonical row near another row, and the similarity of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearCanonical {
    pub canonical: u32,
    pub similarity: f64,
}

impl NearCanonical {
    /// Returns the entry of a canonical row for itself.
    pub fn itself(canonical: u32) -> Self {
        Self {
            canonical,
            similarity: 1.0,
        }
    }
}

/// A row that a change affects, as the collection found it.
#[derive(Debug, Clone, PartialEq)]
pub struct AffectedRow {
    pub row: u32,
    /// True if the row is unchanged and was canonical before the change.
    pub was_canonical: bool,
    /// The unchanged rows near `row` that were canonical before the change. If the row has not lost its canonical row,
    /// that row alone suffices.
    pub canonicals: Vec<NearCanonical>,
}

/// A collection: the present rows, with their clusters before the change. The collection chooses the numbers of
/// rows.
pub trait ClusteredRows {
    /// Compares rows `a` and `b` in the total order of rows.
    fn compare(&self, a: u32, b: u32) -> Ordering;

    /// Returns the unchanged rows that belonged to `canonical`, an unchanged row that is no longer canonical. Each
    /// comes with all unchanged rows near it that were canonical.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn members(&self, canonical: u32) -> Result<Vec<AffectedRow>>;

    /// Returns the rows near `row`, which becomes canonical, with their similarity to `row`. The list may contain
    /// earlier rows.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn neighbors(&self, row: u32) -> Result<Vec<(AffectedRow, f64)>>;
}

/// The canonical row to which a row belongs now, or None for a canonical row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placed {
    pub row: u32,
    pub canonical: Option<NearCanonical>,
}

/// Returns where the affected rows belong now, in their order. `affected` are the changed rows, and rows whose
/// canonical row was changed or deleted; each has all unchanged rows near it that were canonical. Returns None if a
/// row comes before the canonical row that it belonged to: then some changed rows are missing from `affected`.
///
/// Visits every affected row once, with a search for neighbors for each row that becomes canonical, and a search for
/// members for each that no longer is. Takes memory for the affected rows.
///
/// # Errors
/// `OutOfMemory`, and the errors of the collection.
pub fn repair(
    collection: &impl ClusteredRows,
    affected: Vec<AffectedRow>,
) -> Result<Option<Vec<Placed>>> {
    let mut repair = Repair {
        collection,
        heap: BinaryHeap::new(),
        waiting: HashMap::new(),
        demoted: HashSet::new(),
    };
    for found in affected {
        repair.add(found)?;
    }
    let mut placed = Vec::new();
    while let Some(NextRow { row, .. }) = repair.heap.pop() {
        match repair.place(row)? {
            Some(row) => placed.try_push(row)?,
            None => return Ok(None),
        }
    }
    Ok(Some(placed))
}

/// Affected rows that have not been placed yet.
struct Repair<'a, C> {
    collection: &'a C,
    heap: BinaryHeap<NextRow<'a, C>>,
    waiting: HashMap<u32, AffectedRow>,
    /// Unchanged rows that were canonical and now belong to other rows.
    demoted: HashSet<u32>,
}

impl<C: ClusteredRows> Repair<'_, C> {
    /// Adds an affected row. If it has been added before, it may get more canonical rows near it.
    fn add(&mut self, found: AffectedRow) -> Result<()> {
        if let Some(waiting) = self.waiting.get_mut(&found.row) {
            waiting.canonicals.try_extend(found.canonicals)?;
            return Ok(());
        }
        self.waiting.try_reserve(1)?;
        self.heap.try_reserve(1)?;
        self.heap.push(NextRow {
            row: found.row,
            collection: self.collection,
        });
        self.waiting.insert(found.row, found);
        Ok(())
    }

    /// Places `row`, the first of the waiting rows, and returns its place. All earlier affected rows have been placed.
    /// Returns None if a row before `row` would have to be placed again.
    fn place(&mut self, row: u32) -> Result<Option<Placed>> {
        let found = self.waiting.remove(&row).expect("rows of the heap wait");
        let canonical = self.nearest(row, found.canonicals);
        let is_known = match (canonical, found.was_canonical) {
            (None, false) => {
                self.promote(row)?;
                true
            }
            (Some(_), true) => self.demote(row)?,
            _ => true,
        };
        Ok(is_known.then_some(Placed { row, canonical }))
    }

    /// Returns the row of `canonicals` most similar to `row` that precedes `row` and is still canonical, or None if no
    /// such row exists.
    fn nearest(&self, row: u32, canonicals: Vec<NearCanonical>) -> Option<NearCanonical> {
        let earlier = canonicals.into_iter().filter(|near| {
            !self.demoted.contains(&near.canonical)
                && self.collection.compare(near.canonical, row) == Ordering::Less
        });
        earlier.reduce(|best, near| {
            let by_similarity = near.similarity.total_cmp(&best.similarity);
            let nearer =
                by_similarity.then_with(|| self.collection.compare(best.canonical, near.canonical));
            if nearer == Ordering::Greater {
                near
            } else {
                best
            }
        })
    }

    /// Offers the new canonical `row` to the later rows near it.
    fn promote(&mut self, row: u32) -> Result<()> {
        for (mut found, similarity) in self.collection.neighbors(row)? {
            if self.collection.compare(row, found.row) == Ordering::Less {
                found.canonicals.try_push(NearCanonical {
                    canonical: row,
                    similarity,
                })?;
                self.add(found)?;
            }
        }
        Ok(())
    }

    /// Makes the members of `row`, which is no longer canonical, look for another canonical row. Returns false if a
    /// member comes before `row`.
    fn demote(&mut self, row: u32) -> Result<bool> {
        self.demoted.try_reserve(1)?;
        self.demoted.insert(row);
        for found in self.collection.members(row)? {
            if self.collection.compare(row, found.row) != Ordering::Less {
                return Ok(false);
            }
            self.add(found)?;
        }
        Ok(true)
    }
}

/// A row in the heap, the earliest on top.
struct NextRow<'a, C> {
    row: u32,
    collection: &'a C,
}

impl<C: ClusteredRows> Ord for NextRow<'_, C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.collection.compare(other.row, self.row)
    }
}

impl<C: ClusteredRows> PartialOrd for NextRow<'_, C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C: ClusteredRows> PartialEq for NextRow<'_, C> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<C: ClusteredRows> Eq for NextRow<'_, C> {}
