//! An order of pairs in which comparisons load each row few times.

use super::UnionFind;
use crate::{Grow, Result, filled, with_room};

/// Number of bits of a rank that count the rows of a tile.
const TILE_BITS: u32 = 6;
const TILE: u32 = (1 << TILE_BITS) - 1;

/// Orders pairs of rows for comparing them in batches. Pairs of one connected group follow each other, so a row of a
/// small group is loaded once. Pairs of a large group come in tiles of 64 by 64 rows, so a row is loaded once for 64
/// pairs. Memory: 8 bytes per row.
pub struct Tiles {
    /// The rank of each row, ordered by group.
    ranks: Vec<u32>,
    /// The row at each rank.
    rows: Vec<u32>,
}

impl Tiles {
    /// Returns the order of pairs of rows. Every pair must lie within one of `groups`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn of(groups: &UnionFind) -> Result<Self> {
        let rows = groups.rows();
        // The next rank of each group, stored at its smallest row; groups follow each other in the order of these
        // rows.
        let mut next = filled(0u32, rows as usize)?;
        for row in 0..rows {
            next[groups.find(row) as usize] += 1;
        }
        let mut start = 0;
        for place in &mut next {
            start += std::mem::replace(place, start);
        }
        let mut tiles = Self {
            ranks: with_room(rows as usize)?,
            rows: filled(0, rows as usize)?,
        };
        for row in 0..rows {
            let place = &mut next[groups.find(row) as usize];
            tiles.ranks.try_push(*place)?;
            tiles.rows[*place as usize] = row;
            *place += 1;
        }
        Ok(tiles)
    }

    /// Returns the place of the pair of rows `a` and `b` in the order.
    pub fn place(&self, a: u32, b: u32) -> u64 {
        let [a, b] = [a, b].map(|row| self.ranks[row as usize]);
        let [x, y] = [a.min(b), a.max(b)];
        let [tile_of_x, tile_of_y] = [x, y].map(|rank| u64::from(rank >> TILE_BITS));
        let within = u64::from(x & TILE) << TILE_BITS | u64::from(y & TILE);
        (tile_of_x << (32 - TILE_BITS) | tile_of_y) << (2 * TILE_BITS) | within
    }

    /// Returns the pair at `place`, the smaller row first.
    pub fn pair(&self, place: u64) -> (u32, u32) {
        let rank = |tile: u64, within: u64| {
            (tile as u32 & (u32::MAX >> TILE_BITS)) << TILE_BITS | within as u32 & TILE
        };
        let x = rank(place >> (32 + TILE_BITS), place >> TILE_BITS);
        let y = rank(place >> (2 * TILE_BITS), place);
        let [a, b] = [x, y].map(|rank| self.rows[rank as usize]);
        (a.min(b), a.max(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn tiles(rows: u32, pairs: &[(u32, u32)]) -> Tiles {
        let groups = UnionFind::new(rows).unwrap();
        for &(a, b) in pairs {
            groups.union(a, b);
        }
        Tiles::of(&groups).unwrap()
    }

    /// Returns the rows of some pairs, given by places in ascending order.
    fn rows(tiles: &Tiles, places: &[u64]) -> BTreeSet<u32> {
        let pairs = places
            .iter()
            .map(|place| <[u32; 2]>::from(tiles.pair(*place)));
        pairs.flatten().collect()
    }

    /// Returns tiles, and the places of these pairs in ascending order.
    fn sorted(rows: u32, pairs: &[(u32, u32)]) -> (Tiles, Vec<u64>) {
        let tiles = tiles(rows, pairs);
        let mut sorted: Vec<u64> = pairs.iter().map(|&(a, b)| tiles.place(a, b)).collect();
        sorted.sort_unstable();
        (tiles, sorted)
    }

    proptest! {
        #[test]
        fn a_place_is_that_of_its_pair(
            pairs in prop::collection::vec((0u32..500, 0u32..500), 1..300),
        ) {
            let tiles = tiles(500, &pairs);
            for &(a, b) in &pairs {
                prop_assert_eq!(tiles.pair(tiles.place(a, b)), (a.min(b), a.max(b)));
                prop_assert_eq!(tiles.place(a, b), tiles.place(b, a));
            }
        }
    }

    #[test]
    fn groups_follow_each_other() {
        // Rows 0 to 999 in groups of 4 whose members are far from each other.
        let members: [(u32, u32); 4] = [(0, 1), (0, 2), (0, 3), (2, 3)];
        let of = |group| members.map(|(a, b)| (group + 250 * a, group + 250 * b));
        let (tiles, sorted) = sorted(1000, &(0..250).flat_map(of).collect::<Vec<_>>());
        let batches = sorted.chunks(64).map(|batch| rows(&tiles, batch).len());
        let loaded: usize = batches.sum();
        assert!(loaded <= 1000 + 3 * 16, "{loaded}");
    }

    #[test]
    fn a_large_group_comes_in_tiles() {
        let pairs: Vec<_> = (0..500).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        let (tiles, sorted) = sorted(500, &pairs);
        let first = rows(&tiles, &sorted[64 * 63 / 2..][..4096]);
        assert_eq!(first, (0..128).collect());
    }
}
