//! Compares candidates and clusters with their definitions, over all pairs of rows.

use neardup::candidates::{GroupSizes, Sides, Tokens, choose, pairs_of_row};
use neardup::cluster::{Canonicals, UnionFind};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Returns rows of tokens with few values, so that many are shared, as 8 bands.
fn rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let token = prop_oneof![3 => 0u32..4, 1 => 0u32..1000];
    prop::collection::vec(prop::collection::vec(token, 8), 0..40)
}

/// Returns the sizes of the groups of rows with the same token, in a table of `bytes` bytes.
fn group_sizes<'a>(rows: impl Iterator<Item = &'a [u32]>, bytes: usize) -> GroupSizes {
    let mut groups: BTreeMap<u64, usize> = BTreeMap::new();
    for (band, token) in rows.flat_map(|row| row.iter().enumerate()) {
        *groups.entry(GroupSizes::key(band, *token)).or_default() += 1;
    }
    let mut sizes = GroupSizes::new(2 * bytes, bytes).unwrap();
    for (key, rows) in groups.into_iter().filter(|(_, rows)| *rows > 1) {
        sizes.add(key, rows);
    }
    sizes
}

/// Returns the tokens of the kept rows, and the numbers of these rows.
fn keep_all(rows: &[Vec<u32>], needed: usize, bytes: usize) -> (Tokens, Vec<usize>) {
    let sizes = group_sizes(rows.iter().map(|row| &row[..]), bytes);
    let mut tokens = Tokens::new(8, needed, rows.len()).unwrap();
    let kept = |&row: &usize| {
        let mut chosen = Vec::new();
        let is_kept = choose(&rows[row], needed, &sizes, &mut chosen).unwrap();
        tokens.push(chosen.into_iter()).unwrap();
        is_kept
    };
    let kept = (0..rows.len()).filter(kept).collect();
    (tokens, kept)
}

fn shared(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).filter(|(x, y)| x == y).count()
}

/// Returns the rows with each key, in ascending order.
fn groups(tokens: &Tokens) -> BTreeMap<u32, Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for row in 0..tokens.rows() {
        for key in tokens.keys(row) {
            groups.entry(key).or_default().push(row);
        }
    }
    groups
}

/// Returns all pairs of all groups.
fn visited(tokens: &Tokens, sides: &dyn Fn(u32) -> Sides) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for (met, group) in groups(tokens) {
        for &row in &group {
            let mut visit = |x, y| pairs.push((x, y));
            pairs_of_row(
                row,
                &group,
                &|a, b| tokens.meet(a, b, met),
                sides,
                &mut visit,
            );
        }
    }
    pairs.sort_unstable();
    pairs
}

proptest! {
    #[test]
    fn every_pair_that_shares_enough_is_visited_once(
        rows in rows(),
        needed in 1usize..=8,
        bytes in prop::sample::select(vec![128usize, 4096]),
        sides in prop::collection::vec((any::<bool>(), any::<bool>()), 40),
    ) {
        let (tokens, kept) = keep_all(&rows, needed, bytes);
        let side = |row: usize| Sides { a: sides[row].0, b: sides[row].1 };
        let found: Vec<(usize, usize)> = visited(&tokens, &|row| side(kept[row as usize]))
            .into_iter()
            .map(|(x, y)| (kept[x as usize], kept[y as usize]))
            .collect();
        let across = |x: usize, y: usize| (side(x).a && side(y).b) || (side(y).a && side(x).b);
        let expected: Vec<(usize, usize)> = (0..rows.len())
            .flat_map(|x| (x + 1..rows.len()).map(move |y| (x, y)))
            .filter(|&(x, y)| across(x, y) && shared(&rows[x], &rows[y]) >= needed)
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn components_are_the_transitive_closure(rows in rows(), needed in 1usize..=8) {
        let (tokens, kept) = keep_all(&rows, needed, 4096);
        let similar = |x: u32, y: u32| {
            shared(&rows[kept[x as usize]], &rows[kept[y as usize]]) >= needed
        };
        let sets = UnionFind::new(tokens.rows()).unwrap();
        for (met, group) in groups(&tokens) {
            let mut similar = |x, y| tokens.meet_first(x, y, met) && similar(x, y);
            sets.join_group(&group, group.len(), &mut similar).unwrap();
        }
        let expected = UnionFind::new(tokens.rows()).unwrap();
        for x in 0..tokens.rows() {
            (0..x).filter(|&y| similar(x, y)).for_each(|y| {
                expected.union(x, y);
            });
        }
        for row in 0..tokens.rows() {
            prop_assert_eq!(sets.find(row), expected.find(row));
        }
    }

    #[test]
    fn stars_follow_their_definition(rows in rows(), needed in 1usize..=8) {
        let (tokens, kept) = keep_all(&rows, needed, 4096);
        let similar = |x: usize, y: usize| {
            let shared = shared(&rows[x], &rows[y]);
            (shared >= needed).then_some(shared as f64 / 8.0)
        };
        let mut canonicals = Canonicals::new(&tokens).unwrap();
        let mut place = |row: u32| {
            let mut similarity = |x: u32, y: u32, least: f64| {
                similar(kept[x as usize], kept[y as usize]).filter(|s| *s >= least)
            };
            let found = canonicals.place(&tokens, row, &mut similarity).unwrap();
            found.map(|(first, s)| (kept[first as usize], s))
        };
        let mut expected: Vec<Option<(usize, f64)>> = vec![None; rows.len()];
        let mut best = expected.clone();
        for row in 0..rows.len() {
            for earlier in (0..row).rev().filter(|&earlier| expected[earlier].is_none()) {
                if let Some(s) = similar(earlier, row) {
                    let better = best[row].filter(|&(_, best)| best > s);
                    best[row] = better.or(Some((earlier, s)));
                }
            }
            expected[row] = best[row];
        }
        for (number, &row) in kept.iter().enumerate() {
            prop_assert_eq!(place(number as u32), expected[row]);
        }
        // A row that comes again meets the canonical rows found since, and is its own canonical row if it is one.
        for (number, &row) in kept.iter().enumerate() {
            let canonicals = (0..rows.len()).filter(|&first| expected[first].is_none());
            let near = canonicals.filter_map(|first| Some((first, similar(first, row)?)));
            let best = near.reduce(|best, next| if next.1 > best.1 { next } else { best });
            let again = expected[row].map_or(Some((row, 1.0)), |_| best);
            prop_assert_eq!(place(number as u32), again);
        }
    }
}

/// Returns the tokens of rows that share all of them.
fn group_of(rows: u32, token: u32) -> Tokens {
    keep_all(&vec![vec![token; 8]; rows as usize], 4, 4096).0
}

#[test]
fn members_of_a_group_are_compared_with_each_canonical_row_once() {
    // Rows are similar if they are equal modulo 3: the first three are canonical.
    let tokens = group_of(3000, 7);
    let mut canonicals = Canonicals::new(&tokens).unwrap();
    let mut compared = 0;
    for row in (0..3000).chain(0..3000) {
        let mut similarity = |x: u32, y: u32, _| {
            compared += 1;
            (x % 3 == y % 3).then_some(0.9)
        };
        let place = canonicals.place(&tokens, row, &mut similarity).unwrap();
        assert_eq!(place.map_or(row, |(canonical, _)| canonical), row % 3);
    }
    assert_eq!(compared, 3 * 3000 - 6);
}

#[test]
fn rows_are_compared_in_the_first_group_in_which_they_meet() {
    for token in 0..20 {
        let tokens = group_of(1000, token);
        let (met, group) = groups(&tokens).pop_first().expect("a group");
        let sets = UnionFind::new(1000).unwrap();
        let mut compared = 0;
        let mut similar = |x, y| {
            compared += 1;
            tokens.meet_first(x, y, met)
        };
        sets.join_group(&group, group.len(), &mut similar).unwrap();
        assert_eq!(compared, 999);
        assert!((0..1000).all(|row| sets.find(row) == 0));
    }
}

#[test]
fn tokens_that_nobody_shares_leave_no_rows() {
    let rows: Vec<Vec<u32>> = (0..100).map(|row| vec![row; 8]).collect();
    let (tokens, _) = keep_all(&rows, 6, 1 << 16);
    assert!(tokens.rows() < 3);
}
