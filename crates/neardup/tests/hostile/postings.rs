//! Checks damaged pages of postings: an error or an answer within the segment's rows, after a bounded number of page
//! reads.

#[path = "../pages/mod.rs"]
pub mod pages;

use neardup::hash::{GOLDEN, split_mix};
use neardup::postings::log::{Log, LogQuery, append};
use neardup::postings::{
    Directory, Estimate, Leaf, Posting, Segment, SegmentGroup, directory, sort_distinct,
};
use pages::{Failure, Merging, Store, check};

const CAPACITY: usize = 100;
const ROWS: u64 = 80;

/// More page reads than any lookup, check or step of a merge needs in these few pages.
const FUEL: usize = 20_000;

/// Returns two segments of rows that share some keys: trees of leaves and directories.
pub fn sound() -> (Store, [Segment; 2]) {
    let mut store = Store::new(CAPACITY);
    let segments = [0, 1].map(|segment| {
        let of_row = |offset: u32| {
            let seed = segment * ROWS + u64::from(offset);
            (0..6).map(move |place: u64| {
                let key = split_mix((seed * 8 + place).wrapping_mul(GOLDEN));
                let key = if place == 0 {
                    7
                } else {
                    (key >> (32 + place * 4)) as u32
                };
                u64::from(Posting { key, offset })
            })
        };
        let mut postings = (0..ROWS as u32).flat_map(of_row).collect();
        sort_distinct(&mut postings, &mut || ());
        store.write(segment, segment * ROWS, (segment + 1) * ROWS, &postings)
    });
    (store, segments)
}

/// Damages sound pages: the first byte chooses the page, the second the position, the third the value, and so on.
pub fn damaged(bytes: &[u8]) {
    let (mut store, segments) = sound();
    let pages = store.pages.len();
    for &[page, place, value] in bytes.as_chunks().0 {
        let page = store.pages[usize::from(page) % pages].as_mut();
        let payload = &mut page.expect("a page in use").payload;
        let places = payload.len();
        payload[usize::from(place) % places] = value;
    }
    bear(store, segments);
}

/// Calls all code that reads pages.
pub fn bear(mut store: Store, segments: [Segment; 2]) {
    store.fuel = FUEL;
    for needed in [1, 3] {
        for segment in &segments {
            let group = SegmentGroup::alone(segment);
            match store.find(&group, &[7, 7, 0, 12, 99, 1 << 20, u32::MAX], needed) {
                Ok(found) => {
                    assert!(
                        found
                            .iter()
                            .all(|(row, _)| (segment.lo..segment.hi).contains(row))
                    );
                    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
                }
                Err(failure) => bearable(failure),
            }
        }
    }
    for segment in &segments {
        let group = SegmentGroup::alone(segment);
        match Estimate::new(&mut store, &group, &[7, 0, 12, 99, u32::MAX], 12) {
            Ok(estimate) => {
                assert!(estimate.rows(0.3, 1.0) >= 0.0);
                assert!(estimate.likely_rows(2, 5).unwrap() >= 0.0);
                let mut known = estimate.known().iter();
                assert!(known.all(|(row, _)| (segment.lo..segment.hi).contains(row)));
            }
            Err(failure) => bearable(failure),
        }
    }
    for segment in &segments {
        let rows = segment.lo..segment.hi;
        let within = &mut |(_, row)| assert!(rows.contains(&row));
        check(&mut store, segment, None, within).unwrap_or_else(bearable);
    }
    let mut merging = Merging::begin(9, &segments);
    for _ in 0..store.pages.len() {
        match merging.step_without_freeing(&mut store, &mut |_| true) {
            Ok(true) => (),
            Ok(false) => break,
            Err(failure) => {
                bearable(failure);
                break;
            }
        }
    }
}

fn bearable(failure: Failure) {
    assert_ne!(failure, Failure::Endless);
    assert_ne!(failure, Failure::OutOfMemory);
}

/// Uses any bytes as the payload of a page of each kind.
pub fn payload(bytes: &[u8]) {
    if let Ok(leaf) = Leaf::parse(bytes) {
        assert!(leaf.used() <= bytes.len() && leaf.len() > 0);
        let mut postings = 0;
        let _ = leaf.visit(Posting::MIN, Posting::MAX, &mut |run| {
            postings += run.len();
            Ok(true)
        });
        assert!(postings <= leaf.len());
        let middle = Posting {
            key: 1 << 31,
            offset: 0,
        };
        let _ = (leaf.last(), leaf.rank(middle), leaf.first());
    }
    if let Ok(directory) = Directory::parse(bytes) {
        assert!(directory.used() <= bytes.len());
        assert!(
            directory.children() == 0 || directory.child_of(Posting::MAX) < directory.children()
        );
        let mut copy = bytes.to_vec();
        let first = Posting::MAX;
        let _ = directory::append(&mut copy, directory::DirectoryEntry { first, block: 1 });
    }
    if let Ok(log) = Log::parse(bytes) {
        assert!(log.used() <= bytes.len());
        assert!(log.iter().count() <= usize::from(log.rows) + 1);
        let query = LogQuery::set(&[1, 2, 3]).expect("memory");
        for row in log.iter().flatten() {
            assert!(query.shared(row, 0) <= 3);
        }
        let mut copy = bytes.to_vec();
        let _ = append(&mut copy, &[1, 2, 3]);
    }
}
