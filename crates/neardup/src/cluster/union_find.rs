//! Disjoint sets of rows.

use std::collections::TryReserveError;

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
    pub fn grow_to(&mut self, rows: u32) -> Result<(), TryReserveError> {
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
