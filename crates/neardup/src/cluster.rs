//! Clusters from pairs. Rows are numbered from 0 in query order, and only that order decides.

use std::collections::TryReserveError;

/// Disjoint sets of rows, each known by its smallest row: the transitive closure of the pairs, in
/// whatever order they come. 4 bytes a row; m operations on n rows take O((m + n) log n).
#[derive(Debug, Clone, Default)]
pub struct UnionFind {
    /// The parent has the smaller number; a root is its own.
    parents: Vec<u32>,
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
    /// Where memory does not suffice.
    pub fn grow_to(&mut self, rows: u32) -> Result<(), TryReserveError> {
        let old = self.parents.len() as u32;
        self.parents
            .try_reserve(rows.saturating_sub(old) as usize)?;
        self.parents.extend(old..rows);
        Ok(())
    }

    /// The smallest row of the set of `row`. Halves the path on its way (Tarjan, van Leeuwen,
    /// JACM 1984).
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

    /// Joins the sets of two rows; false if they were one already.
    pub fn union(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }
}

/// Two similar rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    pub earlier: u32,
    pub later: u32,
    pub similarity: f64,
}

/// Star clusters: each has a canonical row, to which all of its rows are similar. A row that is
/// similar to an earlier canonical row joins the most similar of them, the earlier of equals;
/// otherwise it is canonical itself. 12 bytes a row.
#[derive(Debug, Clone)]
pub struct Stars {
    canonical: Vec<u32>,
    similarity: Vec<f64>,
}

impl Stars {
    /// `rows` rows and every pair of similar ones. The edges come in ascending order of their later
    /// row, so that each earlier row is settled before it is asked whether it is canonical.
    ///
    /// # Errors
    /// Where memory does not suffice.
    pub fn new(rows: u32, edges: impl IntoIterator<Item = Edge>) -> Result<Self, TryReserveError> {
        let mut stars = Self {
            canonical: Vec::new(),
            similarity: Vec::new(),
        };
        stars.canonical.try_reserve_exact(rows as usize)?;
        stars.similarity.try_reserve_exact(rows as usize)?;
        stars.canonical.extend(0..rows);
        stars.similarity.resize(rows as usize, f64::NEG_INFINITY);
        let mut settled = 0;
        for edge in edges {
            debug_assert!(settled <= edge.later && edge.earlier < edge.later);
            settled = edge.later;
            stars.offer(edge);
        }
        Ok(stars)
    }

    fn offer(&mut self, edge: Edge) {
        let row = edge.later as usize;
        if self.canonical[edge.earlier as usize] != edge.earlier {
            return;
        }
        let best = self.similarity[row];
        let earlier_of_equals = edge.similarity == best && edge.earlier < self.canonical[row];
        if edge.similarity > best || earlier_of_equals {
            self.canonical[row] = edge.earlier;
            self.similarity[row] = edge.similarity;
        }
    }

    /// The canonical row of the cluster of `row`, and how similar `row` is to it; None if it is
    /// canonical itself.
    pub fn cluster(&self, row: u32) -> (u32, Option<f64>) {
        let canonical = self.canonical[row as usize];
        let similarity = self.similarity[row as usize];
        (canonical, (canonical != row).then_some(similarity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every pair of distinct rows at most once, with one of few similarities so that ties occur.
    fn graph() -> impl Strategy<Value = (u32, Vec<Edge>)> {
        (1u32..24).prop_flat_map(|rows| {
            let pairs: Vec<(u32, u32)> = (0..rows)
                .flat_map(|later| (0..later).map(move |earlier| (earlier, later)))
                .collect();
            let similarities = prop::collection::vec(prop::option::of(8u8..=10), pairs.len());
            let edges = similarities.prop_map(move |similarities| {
                let edge = |(&(earlier, later), similarity): (&(u32, u32), Option<u8>)| {
                    similarity.map(|tenths| Edge {
                        earlier,
                        later,
                        similarity: f64::from(tenths) / 10.0,
                    })
                };
                pairs.iter().zip(similarities).filter_map(edge).collect()
            });
            (Just(rows), edges)
        })
    }

    /// The walk as it is defined, with a table of all similarities.
    fn stars_by_definition(rows: u32, edges: &[Edge]) -> Vec<(u32, Option<f64>)> {
        let mut clusters: Vec<(u32, Option<f64>)> = Vec::new();
        for row in 0..rows {
            let mut best: Option<(u32, f64)> = None;
            for earlier in 0..row {
                let edge = edges
                    .iter()
                    .find(|edge| edge.earlier == earlier && edge.later == row);
                let Some(edge) = edge.filter(|_| clusters[earlier as usize].0 == earlier) else {
                    continue;
                };
                if best.is_none_or(|(_, similarity)| edge.similarity > similarity) {
                    best = Some((earlier, edge.similarity));
                }
            }
            clusters.push(best.map_or((row, None), |(canonical, s)| (canonical, Some(s))));
        }
        clusters
    }

    proptest! {
        #[test]
        fn stars_follow_their_definition(
            (rows, mut edges) in graph(),
            shuffle in any::<u64>(),
        ) {
            let expected = stars_by_definition(rows, &edges);
            // Within one later row the edges come in any order.
            edges.sort_by_key(|e| (e.later, u64::from(e.earlier + 1).wrapping_mul(shuffle)));
            let stars = Stars::new(rows, edges).unwrap();
            let found: Vec<_> = (0..rows).map(|row| stars.cluster(row)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn union_find_is_the_transitive_closure(
            (rows, mut edges) in graph(),
            keep in 0usize..40,
            shuffle in any::<u64>(),
        ) {
            edges.truncate(keep);
            let mut labels: Vec<u32> = (0..rows).collect();
            for _ in 0..rows {
                for edge in &edges {
                    let (a, b) = (edge.earlier as usize, edge.later as usize);
                    let smaller = labels[a].min(labels[b]);
                    (labels[a], labels[b]) = (smaller, smaller);
                }
            }
            edges.sort_by_key(|e| u64::from(e.earlier * 64 + e.later).wrapping_mul(shuffle | 1));
            let mut sets = UnionFind::new();
            sets.grow_to(rows / 2).unwrap();
            sets.grow_to(rows).unwrap();
            let joined = edges.iter().filter(|edge| sets.union(edge.later, edge.earlier)).count();
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
