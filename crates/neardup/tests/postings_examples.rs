//! Tests that stored pages stay readable, and how many pages lookups of frequent keys read.

use crate::pages::{Merging, Store};
use neardup::bands::occurrence::minima;
use neardup::hash::{GOLDEN, Key, split_mix};
use neardup::postings::directory::{self, DirectoryEntry};
use neardup::postings::{
    KeyQuery, LeafBuilder, Posting, Segment, SegmentGroup, log, sort_distinct,
};

/// The payload of a page of 8192 bytes.
const CAPACITY: usize = 8140;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", Key::from_seed(0).token_hash(bytes))
}

fn leaf(postings: impl IntoIterator<Item = (u32, u32)>) -> Vec<u8> {
    let mut builder = LeafBuilder::new(CAPACITY).unwrap();
    for (key, offset) in postings {
        if !builder.push(Posting { key, offset }) {
            break;
        }
    }
    let mut page = vec![0; CAPACITY];
    let used = builder.finish(&mut page);
    page.truncate(used);
    page
}

#[test]
fn leaves_are_laid_out_as_they_were() {
    // 3 postings, 19 bytes; first key 256; first offset 5, bits end at 3, 2 bits per key, 3 per offset; differences 0,
    // 1, 3; offsets 5, 2, 7.
    let mixed = [(256, 5), (257, 2), (260, 7)];
    assert_eq!(
        hex(&leaf(mixed)),
        "03001300000100000500000003000203".to_owned() + "34d501"
    );
    // One key: offsets relative to the first, 1000.
    let hot = [(9, 1000), (9, 1001), (9, 1007)];
    assert_eq!(
        hex(&leaf(hot)),
        "0300120009000000e803000002000003".to_owned() + "c801"
    );
    let random = (0..3000u32).map(|i| ((i << 20) | ((i % 7) << 9), (i * 7919) % 1_000_003));
    assert_eq!(digest(&leaf(random)), "549a0b7d4f84924e");
    let few_keys = (0..9000u32).map(|i| (i / 1000, i * 3 % 3001 + i % 1000 * 4000));
    assert_eq!(digest(&leaf(few_keys)), "7b770a14888073ce");
}

#[test]
fn directories_are_laid_out_as_they_were() {
    let mut page = [0xAA; 40];
    assert_eq!(directory::init(&mut page, 2), 4);
    let entry = |key, offset, block| DirectoryEntry {
        first: Posting { key, offset },
        block,
    };
    assert_eq!(directory::append(&mut page, entry(1, 2, 3)), Ok(Some(16)));
    assert_eq!(
        directory::append(&mut page, entry(0x0102_0304, 0, 0x0A0B)),
        Ok(Some(28))
    );
    let bytes = "02000200".to_owned() + "020000000100000003000000" + "00000000040302010b0a0000";
    assert_eq!(hex(&page[..28]), bytes);
    assert!(
        directory::append(&mut page, entry(5, 0, 6)).is_err(),
        "below the last"
    );
    assert_eq!(
        directory::append(&mut page, entry(u32::MAX, 0, 6)),
        Ok(Some(40))
    );
    assert_eq!(
        directory::append(&mut page, entry(u32::MAX, 1, 7)),
        Ok(None)
    );
}

#[test]
fn logs_are_laid_out_as_they_were() {
    let mut page = [0xAA; 20];
    assert_eq!(log::init(&mut page), 4);
    assert_eq!(log::append(&mut page, &[0x0102_0304, 5]), Ok(Some(14)));
    assert_eq!(log::append(&mut page, &[]), Ok(Some(16)));
    assert_eq!(log::append(&mut page, &[1]), Ok(None));
    assert_eq!(
        hex(&page[..16]),
        "02001000".to_owned() + "02000403020105000000" + "0000"
    );
    assert!(log::fits_empty(20, 3) && !log::fits_empty(20, 4));
}

const ROWS: u32 = 1_000_000;
const HOT_ROWS: u32 = ROWS / 10;

/// The keys of long lists: every tenth row has them.
const HOT_KEYS: u32 = 8;

/// Returns a million rows, each with 2 keys of its own; every tenth row also has [`HOT_KEYS`].
fn hot_postings(lo: u32, hi: u32) -> Vec<u64> {
    let posting = |key, row: u32| {
        let offset = row - lo;
        u64::from(Posting { key, offset })
    };
    let hot = (lo..hi).filter(|row| row % 10 == 0);
    let hot = hot.flat_map(|row| (0..HOT_KEYS).map(move |key| posting(key, row)));
    let own = (lo..hi).flat_map(|row| own_keys(row).map(move |key| posting(key, row)));
    let mut postings = hot.chain(own).collect();
    sort_distinct(&mut postings, &mut || ());
    postings
}

fn own_keys(row: u32) -> [u32; 2] {
    [0, 1].map(|place| {
        let key = split_mix((u64::from(row) * 2 + place).wrapping_mul(GOLDEN));
        (key >> 32) as u32 | 1 << 31
    })
}

fn hot_query(row: u32) -> Vec<u32> {
    (0..HOT_KEYS).chain(own_keys(row)).collect()
}

/// Checks how many rows lookups of a row with hot keys find, and how many pages they read, for each number of keys
/// needed.
fn look_up(store: &mut Store, group: &SegmentGroup) {
    let row = 123_450;
    let hot_leaves = (HOT_ROWS * HOT_KEYS) as usize / 64 * 92 / CAPACITY;
    for needed in 1..=10 {
        (store.leaves_read, store.directories_read) = (0, 0);
        let found = store.find(group, &hot_query(row), needed).unwrap();
        assert!(found.contains(&(u64::from(row), 10)));
        // 8 of the 10 lists are long, and up to 8 may be left unread.
        match needed {
            9.. => {
                assert_eq!(found.len(), 1);
                assert!(
                    store.leaves_read <= 40,
                    "{} for {needed}",
                    store.leaves_read
                );
            }
            // The candidates are all rows in the shortest hot lists.
            _ => {
                assert_eq!(found.len() as u32, HOT_ROWS);
                assert!(
                    store.leaves_read <= 3 * hot_leaves + 40,
                    "{}",
                    store.leaves_read
                );
            }
        }
    }
}

#[test]
fn hot_lists_are_left_unread_where_they_can() {
    let mut store = Store::new(CAPACITY);
    let segment = store.write(1, 0, ROWS.into(), &hot_postings(0, ROWS));
    look_up(&mut store, &SegmentGroup::alone(&segment));
    let half = ROWS / 2;
    let mut store = Store::new(CAPACITY);
    let halves: Vec<Segment> = [(1, 0, half), (2, half, ROWS)]
        .map(|(number, lo, hi)| store.write(number, lo.into(), hi.into(), &hot_postings(lo, hi)))
        .into();
    let mut merging = Merging::begin(3, &halves);
    for step in 0.. {
        if step % 60 == 5 {
            look_up(&mut store, &merging.group());
        }
        if !merging.step(&mut store, &mut |_| true).unwrap() {
            break;
        }
    }
    look_up(&mut store, &SegmentGroup::alone(&merging.output.segment));
}

/// Number of keys of a row. Each row shares one of them with one neighbor, and none with other rows.
const KEYS: u64 = 30;
const NEEDED: usize = 5;

fn keys_of(row: u64) -> Vec<u32> {
    let key = |place: u64| {
        let from = if place == 3 { row / 2 * 2 } else { row };
        (split_mix((from * KEYS + place).wrapping_mul(GOLDEN)) >> 32) as u32
    };
    (0..KEYS).map(key).collect()
}

#[test]
fn a_search_waits_twice_for_the_leaves_of_all_segments() {
    let mut store = Store::new(CAPACITY);
    let (mut segments, mut lo) = (Vec::new(), 0);
    for rows in [100_000, 40_000, 20_000, 5000, 1000, 30, 3000] {
        let numbers = lo..lo + rows;
        let keys = numbers.flat_map(|row| keys_of(row).into_iter().map(move |key| (row, key)));
        let posting = |(row, key): (u64, u32)| {
            let offset = (row - lo) as u32;
            u64::from(Posting { key, offset })
        };
        let mut postings = keys.map(posting).collect();
        sort_distinct(&mut postings, &mut || ());
        segments.push(store.write(segments.len() as u64, lo, lo + rows, &postings));
        lo += rows;
    }
    let groups: Vec<SegmentGroup> = segments.iter().map(SegmentGroup::alone).collect();
    assert!(segments[0].depth > 1, "the directory has one level");
    for row in [50_001, 120_000, 165_500, lo - 1] {
        let keys = keys_of(row);
        let query = KeyQuery {
            keys: &keys,
            needed: NEEDED,
            minima: minima(keys.len(), NEEDED),
            by_size: None,
            is_exact: false,
            most: u32::MAX,
        };
        store.grow_cold();
        let found = store.search(&groups, &query).unwrap();
        assert_eq!(found.iter().map(|found| found.0).collect::<Vec<_>>(), [row]);
        // Leaves for most keys, and a few more for unrelated rows that share one key.
        assert!(store.waits <= 2, "{} waits", store.waits);
        for group in &groups {
            store.grow_cold();
            store.search(std::slice::from_ref(group), &query).unwrap();
            let leaves = store.leaves_read;
            assert!(leaves <= keys.len() - NEEDED + 5, "{leaves} leaves");
        }
    }
}
