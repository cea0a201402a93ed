//! Postings on pages, in memory: `cargo bench -p neardup --bench postings`.
//!
//! A million rows of 30 random keys, like signatures at a threshold of 0.8.

#[path = "../tests/pages/mod.rs"]
mod pages;

use neardup::hash::{GOLDEN, split_mix};
use neardup::postings::log::{self, Log, LogQuery};
use neardup::postings::{LeafBuilder, Merge, Posting, SegmentGroup, sort_distinct};
use pages::{Merging, Store};
use std::hint::black_box;
use std::time::Instant;

const ROWS: u32 = 1 << 20;
const KEYS: usize = 30;
const NEEDED: usize = 26;

/// The payload of a page of 8192 bytes.
const CAPACITY: usize = 8140;

const LOOKUPS: usize = 20_001;
const LOG_ROWS: usize = 1000;

/// Number of rows that share a hot key.
const HOT: u32 = ROWS / 10;

fn main() {
    let key = |row: u32, place: usize| {
        (split_mix((u64::from(row) << 8 | place as u64).wrapping_mul(GOLDEN)) >> 32) as u32
    };
    let keys = |row: u32| (0..KEYS).map(|place| key(row, place)).collect::<Vec<u32>>();
    let posting = |row, place| {
        let key = if place == 0 && row % 10 == 0 {
            HOT
        } else {
            key(row, place)
        };
        u64::from(Posting { key, offset: row })
    };
    let mut postings: Vec<u64> = Vec::with_capacity(ROWS as usize * KEYS);
    for row in 0..ROWS {
        postings.extend((0..KEYS).map(|place| posting(row, place)));
    }

    let start = Instant::now();
    sort_distinct(&mut postings, &mut || ());
    report(
        "sort",
        start.elapsed().as_nanos() as f64 / postings.len() as f64,
        "ns a posting",
    );

    let mut store = Store::new(CAPACITY);
    let start = Instant::now();
    let segment = store.write(1, 0, u64::from(ROWS), &postings);
    report(
        "pack",
        start.elapsed().as_nanos() as f64 / postings.len() as f64,
        "ns a posting",
    );
    let pages = store.pages.len() as f64 * 8192.0;
    report("size", pages / postings.len() as f64, "bytes a posting");
    drop(postings);

    report(
        "reads of a random page",
        random_reads(&store),
        "ns, each after the one before",
    );

    let rows = |i: usize| (split_mix(i as u64) % u64::from(ROWS)) as u32;
    let mut look_up = |name, query: &dyn Fn(u32) -> Vec<u32>, hot: bool| {
        let mut times = Vec::new();
        for i in 0..LOOKUPS {
            let row = rows(i) / 10 * 10 + u32::from(!hot);
            let query = query(row);
            let start = Instant::now();
            let found = store.find(&SegmentGroup::alone(&segment), &query, NEEDED);
            times.push(start.elapsed().as_nanos() as f64 / 1000.0);
            let found = found.expect("sound pages");
            assert!(found.iter().any(|(found, _)| *found == u64::from(row)));
        }
        report(name, median(&mut times), "us");
    };
    look_up("lookup", &keys, false);
    let hot_keys = |row: u32| {
        let mut keys = keys(row);
        keys[0] = HOT;
        keys
    };
    look_up("lookup with a hot key", &hot_keys, true);

    let mut log_pages = vec![vec![0; CAPACITY]];
    log::init(&mut log_pages[0]);
    for row in 0..LOG_ROWS as u32 {
        let last = log_pages.last_mut().expect("a page");
        if log::append(last, &keys(row)).expect("a log").is_none() {
            let mut page = vec![0; CAPACITY];
            log::init(&mut page);
            log::append(&mut page, &keys(row)).expect("a log");
            log_pages.push(page);
        }
    }
    let scan = |name, query: fn(&[u32]) -> LogQuery| {
        let mut times = Vec::new();
        for i in 0..1001 {
            let row = i % LOG_ROWS;
            let query = query(&keys(row as u32));
            let start = Instant::now();
            let rows = log_pages
                .iter()
                .flat_map(|page| Log::parse(page).expect("a log").iter());
            let shared = rows.map(|row| query.shared(row.expect("a row"), NEEDED as u32));
            let found = shared
                .enumerate()
                .filter(|(_, shared)| *shared >= NEEDED as u32);
            let found = found.map(|(row, _)| row).fold(None, |_, row| Some(row));
            times.push(start.elapsed().as_nanos() as f64 / 1000.0);
            assert_eq!(black_box(found), Some(row));
        }
        report(name, median(&mut times), "us");
    };
    scan("log of 1000 rows, places", |keys| {
        LogQuery::places(keys).expect("memory")
    });
    scan("log of 1000 rows, sets", |keys| {
        LogQuery::set(keys).expect("memory")
    });

    merges(&keys);
}

/// Returns the unavoidable cost of one key in a lookup.
fn random_reads(store: &Store) -> f64 {
    const READS: usize = 1_000_000;
    let start = Instant::now();
    let mut read = 0;
    for i in 0..READS as u64 {
        let place = split_mix(i ^ u64::from(read));
        let page = store.pages[place as usize % store.pages.len()]
            .as_ref()
            .expect("a page");
        read = page.payload[(place >> 32) as usize % page.payload.len()];
    }
    black_box(read);
    start.elapsed().as_nanos() as f64 / READS as f64
}

/// Merges four segments into one, one leaf per step or all at once.
fn merges(keys: &dyn Fn(u32) -> Vec<u32>) {
    const INPUT_ROWS: u32 = 50_000;
    let mut store = Store::new(CAPACITY);
    let inputs: Vec<_> = (0..4)
        .map(|input: u32| {
            let of_row = |offset: u32| {
                let keys = keys(input * INPUT_ROWS + offset);
                keys.into_iter()
                    .map(move |key| u64::from(Posting { key, offset }))
            };
            let mut postings = (0..INPUT_ROWS).flat_map(of_row).collect();
            sort_distinct(&mut postings, &mut || ());
            let lo = u64::from(input * INPUT_ROWS);
            store.write(u64::from(input), lo, lo + u64::from(INPUT_ROWS), &postings)
        })
        .collect();
    let postings = inputs.iter().map(|input| input.postings).sum::<u64>() as f64;

    let start = Instant::now();
    let mut merge = Merge::new(&inputs, 0, Posting::MIN).expect("memory");
    let mut leaf = LeafBuilder::new(CAPACITY).expect("memory");
    let mut page = vec![0; CAPACITY];
    while merge
        .fill(&mut store, &mut leaf, &mut |_| true)
        .expect("sound pages")
        .is_some()
    {
        leaf.finish(black_box(&mut page));
    }
    report(
        "merge in one go",
        start.elapsed().as_nanos() as f64 / postings,
        "ns a posting",
    );

    let mut merging = Merging::begin(9, &inputs);
    let mut times = Vec::new();
    let start = Instant::now();
    loop {
        let step = Instant::now();
        let more = merging
            .step(&mut store, &mut |_| true)
            .expect("sound pages");
        times.push(step.elapsed().as_nanos() as f64 / 1000.0);
        if !more {
            break;
        }
    }
    report(
        "merge, step by step",
        start.elapsed().as_nanos() as f64 / postings,
        "ns a posting",
    );
    report("a step", median(&mut times), "us");
}

fn report(name: &str, figure: f64, unit: &str) {
    println!("{name:30} {figure:9.2} {unit}");
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
