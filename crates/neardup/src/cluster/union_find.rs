//! Disjoint sets of rows, which several threads may join at the same time.

use crate::{Grow, Result, collected};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Disjoint sets of rows, each identified by its smallest row: the transitive closure of the pairs, whatever their
/// order (Anderson, Woll, "Wait-free parallel algorithms for the union-find problem", STOC 1991). Memory: 4 bytes per
/// row. Time: m operations on n rows take O((m + n) log n).
#[derive(Debug)]
pub struct UnionFind {
    /// A parent has a smaller number than its child; a root is its own parent.
    parents: Vec<AtomicU32>,
}

impl UnionFind {
    /// Returns sets of one row each, of rows 0 to `rows` - 1.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(rows: u32) -> Result<Self> {
        Ok(Self {
            parents: collected((0..rows).map(AtomicU32::new))?,
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        self.parents.len() as u32
    }

    fn parent(&self, row: u32) -> u32 {
        self.parents[row as usize].load(Relaxed)
    }

    /// Returns the smallest row of the set of `row`, unless another thread is joining that set. Halves the path
    /// (Tarjan, van Leeuwen, JACM 1984).
    pub fn find(&self, mut row: u32) -> u32 {
        loop {
            let parent = self.parent(row);
            let grandparent = self.parent(parent);
            if parent == grandparent {
                return parent;
            }
            // `grandparent` stays an ancestor of `row`, whatever other threads do in the meantime.
            self.parents[row as usize].store(grandparent, Relaxed);
            row = grandparent;
        }
    }

    /// Joins the sets of rows `a` and `b`. Returns false if they were already in the same set.
    pub fn union(&self, a: u32, b: u32) -> bool {
        loop {
            let (a, b) = (self.find(a), self.find(b));
            let (root, other) = (a.min(b), a.max(b));
            // Fails if another thread has joined the set of `other`.
            let place = &self.parents[other as usize];
            let join = || place.compare_exchange(other, root, Relaxed, Relaxed);
            if a == b || join().is_ok() {
                return a != b;
            }
        }
    }

    /// Returns the batch of every row, given each row's weight. Each batch holds whole sets, in the order of their
    /// first rows, with a total weight of at most `most`, or a single set that is heavier.
    pub fn batches(&self, mut weights: Vec<u32>, most: u32) -> Vec<u32> {
        for row in 0..weights.len() {
            let first = self.find(row as u32) as usize;
            if first != row {
                weights[first] = weights[first].saturating_add(weights[row]);
            }
        }
        let (mut batch, mut weight) = (0, 0u32);
        for row in 0..weights.len() {
            let first = self.find(row as u32) as usize;
            if first != row {
                weights[row] = weights[first];
                continue;
            }
            let more = weights[row];
            if more > 0 && weight > 0 && weight.saturating_add(more) > most {
                (batch, weight) = (batch + 1, 0);
            }
            weight = weight.saturating_add(more);
            weights[row] = batch;
        }
        weights
    }

    /// Joins the sets of rows of `group` that are `similar`. Compares only pairs in which one row is among the first
    /// `meet_any`, and that are not yet in one set, so a group of copies takes one comparison per row.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn join_group(
        &self,
        group: &[u32],
        meet_any: usize,
        similar: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Result<()> {
        let mut parts: Vec<Vec<u32>> = Vec::new();
        for (number, &row) in group.iter().enumerate() {
            let (mut own, mut place) = (None, 0);
            while place < parts.len() {
                let part = &parts[place];
                if self.find(part[0]) != self.find(row)
                    && !part.iter().any(|&other| similar(other, row))
                {
                    place += 1;
                    continue;
                }
                self.union(part[0], row);
                match own {
                    None => {
                        if number < meet_any {
                            parts[place].try_push(row)?;
                        }
                        (own, place) = (Some(place), place + 1);
                    }
                    Some(own) => {
                        let part = parts.swap_remove(place);
                        parts[own].try_extend_from_slice(&part)?;
                    }
                }
            }
            if own.is_none() && number < meet_any {
                parts.try_push(collected([row])?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::thread;

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
            let sets = UnionFind::new(rows).unwrap();
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
        let sets = UnionFind::new(rows).unwrap();
        for row in (1..rows).rev() {
            sets.union(row, row - 1);
        }
        assert!((0..rows).all(|row| sets.find(row) == 0));
    }

    /// Rows of a group are similar if they are equal modulo 7.
    #[test]
    fn threads_join_what_one_would() {
        let rows = 20_000;
        let row = |n: u32| n.wrapping_mul(0x9E37_79B9) % rows;
        let groups: Vec<Vec<u32>> = (0..1_000)
            .map(|group| (0..group % 30).map(|n| row(31 * group + n)).collect())
            .collect();
        let similar = |a: u32, b: u32| a % 7 == b % 7;
        let shared = UnionFind::new(rows).unwrap();
        let join = |part: &[Vec<u32>]| {
            for group in part {
                let joined = shared.join_group(group, group.len(), &mut |a, b| similar(a, b));
                joined.unwrap();
            }
        };
        thread::scope(|scope| {
            for part in groups.chunks(groups.len() / 4) {
                scope.spawn(|| join(part));
            }
        });
        let sets = UnionFind::new(rows).unwrap();
        for group in &groups {
            for (number, &a) in group.iter().enumerate() {
                for &b in group[..number].iter().filter(|&&b| similar(a, b)) {
                    sets.union(a, b);
                }
            }
        }
        assert!((0..rows).all(|row| shared.find(row) == sets.find(row)));
        assert!((0..rows).any(|row| sets.find(row) != row));
    }

    #[test]
    fn copies_are_compared_once() {
        let sets = UnionFind::new(1000).unwrap();
        let group: Vec<u32> = (0..1000).collect();
        let mut compared = 0;
        for _ in 0..2 {
            let mut similar = |_, _| {
                compared += 1;
                true
            };
            sets.join_group(&group, group.len(), &mut similar).unwrap();
        }
        assert_eq!(compared, 999);
    }
}
