//! Disjoint sets of rows that several threads join at once.

use super::UnionFind;
use crate::Result;
use crate::memory::{Grow, collected, with_room};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Disjoint sets of rows, each known by its smallest row, so that they do not depend on the order in
/// which they are joined (Anderson, Woll, "Wait-free parallel algorithms for the union-find problem",
/// STOC 1991). 4 bytes a row.
pub struct SharedSets {
    /// The parent has the smaller number; a root is its own.
    parents: Vec<AtomicU32>,
}

impl SharedSets {
    /// Returns `rows` rows, each a set of its own.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(rows: u32) -> Result<Self> {
        Ok(Self {
            parents: collected((0..rows).map(AtomicU32::new))?,
        })
    }

    fn parent(&self, row: u32) -> u32 {
        self.parents[row as usize].load(Relaxed)
    }

    /// Returns the root of a row: the smallest row of its set, unless it is being joined with another.
    fn find(&self, mut row: u32) -> u32 {
        loop {
            let parent = self.parent(row);
            let grandparent = self.parent(parent);
            if parent == grandparent {
                return parent;
            }
            // Fails where another thread has shortened the path.
            self.replace(row, parent, grandparent);
            row = grandparent;
        }
    }

    /// Gives a row another parent, unless it has another one already.
    fn replace(&self, row: u32, parent: u32, new: u32) -> bool {
        let place = &self.parents[row as usize];
        place
            .compare_exchange(parent, new, Relaxed, Relaxed)
            .is_ok()
    }

    /// Joins the similar rows of a group. Rows that are in one set already are not compared, so that a
    /// group of copies takes one comparison a row.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn join_group(
        &self,
        group: &[u32],
        similar: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Result<()> {
        let mut parts: Vec<Vec<u32>> = Vec::new();
        for &row in group {
            let (mut own, mut place) = (None, 0);
            while place < parts.len() {
                let part = &parts[place];
                if !self.are_joined(part[0], row) && !part.iter().any(|&other| similar(other, row))
                {
                    place += 1;
                    continue;
                }
                self.union(part[0], row);
                match own {
                    None => {
                        parts[place].try_push(row)?;
                        (own, place) = (Some(place), place + 1);
                    }
                    Some(own) => {
                        let part = parts.swap_remove(place);
                        parts[own].try_extend_from_slice(&part)?;
                    }
                }
            }
            if own.is_none() {
                parts.try_push(collected([row])?)?;
            }
        }
        Ok(())
    }

    /// Returns true only if two rows are in one set.
    fn are_joined(&self, a: u32, b: u32) -> bool {
        self.find(a) == self.find(b)
    }

    /// Joins the sets of two rows.
    fn union(&self, a: u32, b: u32) {
        loop {
            let (a, b) = (self.find(a), self.find(b));
            if a == b || self.replace(a.max(b), a.max(b), a.min(b)) {
                return;
            }
        }
    }

    /// Returns the sets, for a single thread.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn into_inner(self) -> Result<UnionFind> {
        let mut parents = with_room(self.parents.len())?;
        parents.try_extend(self.parents.into_iter().map(AtomicU32::into_inner))?;
        Ok(UnionFind { parents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Rows of a group are similar where they are equal modulo 7.
    #[test]
    fn threads_join_what_one_would() {
        let rows = 20_000;
        let row = |n: u32| n.wrapping_mul(0x9E37_79B9) % rows;
        let groups: Vec<Vec<u32>> = (0..1_000)
            .map(|group| (0..group % 30).map(|n| row(31 * group + n)).collect())
            .collect();
        let similar = |a: u32, b: u32| a % 7 == b % 7;
        let shared = SharedSets::new(rows).unwrap();
        thread::scope(|scope| {
            for part in groups.chunks(groups.len() / 4) {
                let shared = &shared;
                scope.spawn(move || {
                    for group in part {
                        shared.join_group(group, &mut |a, b| similar(a, b)).unwrap();
                    }
                });
            }
        });
        let mut sets = UnionFind::new();
        sets.grow_to(rows).unwrap();
        for group in &groups {
            for (number, &a) in group.iter().enumerate() {
                for &b in group[..number].iter().filter(|&&b| similar(a, b)) {
                    sets.union(a, b);
                }
            }
        }
        let mut found = shared.into_inner().unwrap();
        assert!((0..rows).all(|row| found.find(row) == sets.find(row)));
        assert!((0..rows).any(|row| sets.find(row) != row));
    }

    #[test]
    fn copies_are_compared_once() {
        let sets = SharedSets::new(1000).unwrap();
        let group: Vec<u32> = (0..1000).collect();
        let mut compared = 0;
        for _ in 0..2 {
            let mut similar = |_, _| {
                compared += 1;
                true
            };
            sets.join_group(&group, &mut similar).unwrap();
        }
        assert_eq!(compared, 999);
    }
}
