//! Disjoint sets of rows, and connected components: sets of rows joined where two of them are similar.

use crate::Result;
use crate::candidates::Tokens;
use crate::memory::{FirstError, Grow, collected};

/// Disjoint sets of rows, each known by its smallest row: the transitive closure of the pairs, in
/// whatever order they come. 4 bytes a row; m operations on n rows take O((m + n) log n).
#[derive(Debug, Clone, Default)]
pub struct UnionFind {
    /// The parent has the smaller number; a root is its own.
    pub(super) parents: Vec<u32>,
}

impl UnionFind {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.parents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Adds rows, each a set of its own, until there are `rows`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    #[allow(clippy::disallowed_methods, reason = "reserved before")]
    pub fn grow_to(&mut self, rows: u32) -> Result<()> {
        let old = self.parents.len() as u32;
        self.parents
            .try_reserve(rows.saturating_sub(old) as usize)?;
        self.parents.extend(old..rows);
        Ok(())
    }

    /// Returns the smallest row of the set of `row`. Halves the path on its way (Tarjan, van
    /// Leeuwen, JACM 1984).
    pub fn find(&mut self, row: u32) -> u32 {
        let mut row = row as usize;
        loop {
            let parent = self.parents[row];
            let grandparent = self.parents[parent as usize];
            if parent == grandparent {
                return parent;
            }
            self.parents[row] = grandparent;
            row = grandparent as usize;
        }
    }

    /// Joins the sets of two rows; returns false if they were one already.
    pub fn union(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }
}

/// Joins the sets of similar rows of a group that met under the key of the group. Groups come by
/// ascending keys, so that all pairs of a group that have not been compared are. Rows whose sets are
/// one already are not compared, so that a group of copies takes one comparison a row. `step` is
/// called for every row, before it is compared with rows of other sets.
///
/// # Errors
/// `OutOfMemory`.
pub fn connect_group(
    tokens: &Tokens,
    group: &[u32],
    met: u32,
    sets: &mut UnionFind,
    step: &mut dyn FnMut(),
    similar: &mut dyn FnMut(u32, u32) -> bool,
) -> Result<()> {
    let mut by_set = collected(group.iter().map(|&row| (sets.find(row), row)))?;
    by_set.sort_unstable();
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut error = FirstError::default();
    for part in by_set.chunk_by(|a, b| a.0 == b.0) {
        let mut joined = collected(part.iter().map(|&(_, row)| row))?;
        part.iter().for_each(|_| step());
        parts.retain_mut(|other| {
            let mut pairs = other
                .iter()
                .flat_map(|&x| joined.iter().map(move |&y| (x, y)));
            let found = pairs.find(|&(x, y)| tokens.meet_first(x, y, met) && similar(x, y));
            if let Some((x, y)) = found {
                sets.union(x, y);
                // The longer list goes on growing: a row is moved log n times at most.
                if other.len() > joined.len() {
                    std::mem::swap(other, &mut joined);
                }
                error.run(|| joined.try_extend_from_slice(other));
            }
            found.is_none()
        });
        parts.try_push(joined)?;
    }
    error.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn union_find_is_the_transitive_closure(
            rows in 1u32..24,
            edges in prop::collection::vec((0u32..24, 0u32..24), 0..40),
        ) {
            let edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a % rows, b % rows)).collect();
            let mut labels: Vec<u32> = (0..rows).collect();
            for _ in 0..rows {
                for &(a, b) in &edges {
                    let (a, b) = (a as usize, b as usize);
                    let smaller = labels[a].min(labels[b]);
                    (labels[a], labels[b]) = (smaller, smaller);
                }
            }
            let mut sets = UnionFind::new();
            sets.grow_to(rows / 2).unwrap();
            sets.grow_to(rows).unwrap();
            let joined = edges.iter().filter(|(a, b)| sets.union(*a, *b)).count();
            let found: Vec<u32> = (0..rows).map(|row| sets.find(row)).collect();
            prop_assert_eq!(&found, &labels);
            let roots = (0..rows).filter(|&row| labels[row as usize] == row).count();
            prop_assert_eq!(joined, rows as usize - roots);
        }
    }

    #[test]
    fn long_chains_are_cheap() {
        let rows = 1_000_000;
        let mut sets = UnionFind::new();
        sets.grow_to(rows).unwrap();
        for row in (1..rows).rev() {
            sets.union(row, row - 1);
        }
        assert!((0..rows).all(|row| sets.find(row) == 0));
    }
}
