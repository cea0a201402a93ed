//! Compares estimates from few pages with counts.

use crate::pages::{Failure, Store};
use neardup::hash::split_mix;
use neardup::postings::{Estimate, Posting, Segment, SegmentGroup, sort_distinct};
use proptest::prelude::*;

const ROWS: u64 = 8000;
const KEYS: u64 = 24;

/// The orders in which groups of rows arrive, as functions that return the group of a row: unrelated rows, groups one
/// after the other, groups interleaved, one group of half of the rows in the middle, and groups of all sizes.
const ORDERS: [fn(u64) -> u64; 5] = [
    |row| row,
    |row| row / 50,
    |row| split_mix(row) % 200,
    |row| if row / 2000 % 3 == 0 { row } else { ROWS },
    |row| ((row + 1) as f64).log(1.3) as u64,
];

/// Returns the keys of a row. It shares most of them with its group.
fn keys_of(row: u64, group: u64) -> Vec<u32> {
    let key = |place: u64| {
        let own = split_mix(row << 8 | place);
        let of = if own.is_multiple_of(8) {
            own
        } else {
            split_mix(group << 40 | place)
        };
        split_mix(of ^ place) as u32
    };
    (0..KEYS).map(key).collect()
}

fn write(store: &mut Store, rows: &[Vec<u32>]) -> Segment {
    let posting = |offset: usize, key: u32| Posting {
        key,
        offset: offset as u32,
    };
    let of_row = |(row, keys): (usize, &Vec<u32>)| -> Vec<u64> {
        keys.iter().map(|key| posting(row, *key).into()).collect()
    };
    let mut postings: Vec<u64> = rows.iter().enumerate().flat_map(of_row).collect();
    sort_distinct(&mut postings, &mut || ());
    store.write(1, 0, rows.len() as u64, &postings)
}

/// Returns the number of rows that have at least `needed` of the keys.
fn counted(rows: &[Vec<u32>], query: &[u32], needed: usize) -> usize {
    let shared = |keys: &&Vec<u32>| query.iter().filter(|key| keys.contains(key)).count();
    rows.iter().filter(|keys| shared(keys) >= needed).count()
}

#[test]
fn estimates_are_near_the_truth() {
    for (order, group_of) in ORDERS.iter().enumerate() {
        let rows: Vec<Vec<u32>> = (0..ROWS).map(|row| keys_of(row, group_of(row))).collect();
        for (capacity, most_pages) in [(8140, 14), (1000, 14), (8140, 100)] {
            let mut store = Store::new(capacity);
            let segment = write(&mut store, &rows);
            let (mut off, mut far_off) = (0, 0);
            for number in 0..100 {
                let query = &rows[(split_mix(number) % ROWS) as usize];
                let truth = counted(&rows, query, 12) as f64;
                store.fuel = most_pages;
                let group = SegmentGroup::alone(&segment);
                let estimate = Estimate::new(&mut store, &group, query, most_pages).unwrap();
                let found = estimate.rows(0.5, 1.0).max(1.0);
                let factor = (found / truth).max(truth / found);
                off += u32::from(factor > 3.0);
                far_off += u32::from(factor > 10.0);
            }
            assert!(
                off <= 10 && far_off <= 1,
                "order {order}, pages of {capacity}, {most_pages} of them: {off} off by more than 3, {far_off} by 10"
            );
        }
    }
}

proptest! {
    /// Tests any keys, however few pages may be read.
    #[test]
    fn estimates_keep_to_their_pages(
        rows in prop::collection::vec(prop::collection::vec(0u32..60, 0..12), 0..300),
        query in prop::collection::vec(0u32..60, 0..90),
        capacity in prop_oneof![100usize..200, 200usize..1000],
        most_pages in 0usize..40,
        share in 0.01..=1.0f64,
    ) {
        let mut store = Store::new(capacity);
        let segment = write(&mut store, &rows);
        store.fuel = most_pages;
        let group = SegmentGroup::alone(&segment);
        let estimate = Estimate::new(&mut store, &group, &query, most_pages);
        prop_assert!(!matches!(estimate, Err(Failure::Endless)));
        let found = estimate.unwrap().rows(share, 1.0);
        prop_assert!(found.is_finite() && (0.0..=rows.len() as f64).contains(&found), "{}", found);
    }
}
