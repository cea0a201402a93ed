//! Compares postings on pages with hash maps.

use crate::pages::{self, Merging, Store, check};
use neardup::bands::occurrence::{Minimum, minima};
use neardup::bands::{Occurrence, RowSize, element_key};
use neardup::postings::log::{self, Log, LogQuery};
use neardup::postings::{
    KeyAndRow, KeyQuery, Leaf, LeafBuilder, Needed, Posting, SegmentGroup, policy, sort_distinct,
    sweep,
};
use neardup::set::{containment, jaccard};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The keys of rows, by row number.
type Rows = BTreeMap<u64, Vec<u32>>;

/// Returns a key out of few, so that keys repeat; some are at the ends of the range.
fn key() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => 0u32..40,
        3 => any::<u32>(),
        1 => Just(u32::MAX),
        2 => Just(7),
    ]
}

fn keys(most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(key(), 0..most)
}

fn rows(most: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(keys(12), 0..most)
}

/// Returns the size of a page: space for one or two blocks, for a few, or as much as a server's page has.
fn capacity() -> impl Strategy<Value = usize> {
    prop_oneof![100usize..200, 200usize..1000, Just(8140usize)]
}

fn postings(rows: &Rows, lo: u64) -> Vec<u64> {
    let posting = |row: u64, key: u32| Posting {
        key,
        offset: (row - lo) as u32,
    };
    let of_row = |(row, keys): (&u64, &Vec<u32>)| {
        keys.iter()
            .map(|key| posting(*row, *key).into())
            .collect::<Vec<u64>>()
    };
    let mut postings: Vec<u64> = rows.iter().flat_map(of_row).collect();
    sort_distinct(&mut postings, &mut || ());
    postings
}

/// Returns the places of the postings of rows.
fn places_of(rows: &Rows) -> Vec<KeyAndRow> {
    let of_row = |(row, keys): (&u64, &Vec<u32>)| -> Vec<KeyAndRow> {
        keys.iter().map(|key| (*key, *row)).collect()
    };
    let mut places: Vec<KeyAndRow> = rows.iter().flat_map(of_row).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns the places of the postings of groups, read in parts of `most`.
fn swept(store: &mut Store, groups: &[SegmentGroup], most: usize) -> Vec<KeyAndRow> {
    let (mut found, mut next) = (Vec::new(), Some((0, 0)));
    while let Some(from) = next {
        let end = found.len() + most;
        next = sweep(store, groups, from, &mut |place| {
            let has_room = found.len() < end;
            found.extend(has_room.then_some(place));
            has_room
        })
        .unwrap();
    }
    found
}

fn postings_of(leaf: &Leaf, first: Posting, last: Posting) -> Vec<Posting> {
    let mut postings = Vec::new();
    let collect = &mut |run: &[u64]| {
        postings.extend(run.iter().map(|number| Posting::from(*number)));
        Ok(true)
    };
    leaf.visit(first, last, collect).expect("a sound leaf");
    postings
}

/// The oracle: returns how many of the query's keys each row has.
fn expected<'r>(
    rows: impl IntoIterator<Item = (&'r u64, &'r Vec<u32>)>,
    query: &[u32],
    needed: usize,
) -> Vec<(u64, u32)> {
    let shared = |keys: &Vec<u32>| query.iter().filter(|key| keys.contains(key)).count();
    let rows = rows.into_iter().map(|(row, keys)| (*row, shared(keys)));
    let enough = rows.filter(|(_, shared)| *shared >= needed.max(1));
    enough.map(|(row, shared)| (row, shared as u32)).collect()
}

/// Fails unless a search with minima over fewer keys than in the lemma finds only rows that the oracle finds, including
/// all that meet the minima no matter which keys are looked up first.
fn search_finds_the_likely(
    store: &mut Store,
    groups: &[SegmentGroup],
    rows: &Rows,
    keys: &[u32],
    needed: usize,
    most: u32,
) -> Result<(), TestCaseError> {
    let needed = needed.max(1);
    let expected = expected(rows, keys, needed);
    let most_differing = keys.len().saturating_sub(needed) as u32;
    let minima = minima(keys.len(), needed).map(|minimum| Minimum {
        of: minimum.of - most_differing / 2,
        ..minimum
    });
    let query = KeyQuery {
        keys,
        needed,
        minima,
        by_size: None,
        is_exact: true,
        most,
    };
    let found = store.search(groups, &query).unwrap();
    prop_assert!(found.iter().all(|found| expected.contains(found)));
    for row in expected {
        let differing = keys.len() as u32 - row.1;
        let is_likely = minima
            .iter()
            .all(|minimum| differing + minimum.shared <= minimum.of);
        prop_assert!(!is_likely || found.contains(&row));
    }
    Ok(())
}

/// Returns the rows that an index of sets finds, with all keys in a segment or all in a log.
fn sets_found(
    rows: &[BTreeSet<i64>],
    query: &BTreeSet<i64>,
    needed: Needed,
    key: &dyn Fn(&i64) -> u32,
) -> [BTreeSet<u64>; 2] {
    let keys = |set: &BTreeSet<i64>| set.iter().map(key).collect::<Vec<u32>>();
    let (rows, query): (Rows, _) = ((0..).zip(rows.iter().map(keys)).collect(), keys(query));
    let log_query = needed.log_query(&query).unwrap();
    let in_log = rows.iter().filter(|(_, keys)| {
        let mut page = vec![0; 8140];
        log::init(&mut page);
        log::append(&mut page, keys)
            .unwrap()
            .expect("an empty page has room");
        let row = Log::parse(&page).unwrap().iter().next().unwrap().unwrap();
        let shared = log_query.shared(row, needed.least() as u32);
        shared as usize >= needed.least()
            && needed.is_reached(shared as usize, RowSize::new(0, keys.len()))
    });
    let in_log = in_log.map(|(row, _)| *row).collect();
    [in_segment(&rows, &query, needed, 8140, u32::MAX), in_log]
}

/// Returns the rows that a search finds when it knows how many keys each row has.
fn in_segment(
    rows: &Rows,
    query: &[u32],
    needed: Needed,
    capacity: usize,
    most: u32,
) -> BTreeSet<u64> {
    let mut store = Store::new(capacity);
    let segment = store.write(1, 0, rows.len() as u64, &postings(rows, 0));
    store.sizes = rows.iter().map(|(row, keys)| (*row, keys.len())).collect();
    let found = [true, false].map(|is_exact| {
        let query = KeyQuery {
            keys: query,
            needed: needed.least(),
            minima: needed.minima(query.len()),
            by_size: needed.depends_on_row().then_some(needed),
            is_exact,
            most,
        };
        let found = store
            .search(&[SegmentGroup::alone(&segment)], &query)
            .unwrap();
        let rows = found.iter().map(|(row, shared)| {
            assert!(needed.is_reached(*shared as usize, RowSize::new(0, rows[row].len())));
            *row
        });
        rows.collect::<BTreeSet<u64>>()
    });
    // Rows that are compared afterward may be found, too.
    let [exact, found] = found;
    assert!(found == exact || needed.depends_on_row() && found.is_superset(&exact));
    exact
}

proptest! {
    /// Finds exactly the rows that contain the share of a query, whose share the query contains, or that resemble it.
    /// If elements share keys, finds at least these rows.
    #[test]
    fn sets_are_found_by_shares_and_resemblance(
        rows in prop::collection::vec(prop::collection::btree_set(-30i64..30, 0..40), 0..60),
        query in prop::collection::btree_set(-30i64..30, 0..40),
        threshold in prop_oneof![1e-9..=1.0f64, Just(1.0), (1..40u8, 1..40u8).prop_map(|(a, b)| {
            f64::from(a.min(b)) / f64::from(a.max(b))
        })],
        colliding in any::<bool>(),
    ) {
        let key = move |element: &i64| element_key(*element) % if colliding { 16 } else { u32::MAX };
        let list = |set: &BTreeSet<i64>| set.iter().copied().collect::<Vec<i64>>();
        let share = |a: &BTreeSet<i64>, b: &BTreeSet<i64>| containment(&list(a), &list(b), &mut || ());
        let expected = |reaches: &dyn Fn(&BTreeSet<i64>) -> bool| -> BTreeSet<u64> {
            (0..).zip(&rows).filter(|(_, row)| reaches(row)).map(|(row, _)| row).collect()
        };
        let containing = Occurrence::contained(query.len(), threshold);
        prop_assert_eq!(containing.is_none(), query.is_empty());
        let directions = [
            (containing.map(|occurrence| Needed::Elements(occurrence.needed)),
             expected(&|row| share(&query, row) >= threshold)),
            (Some(own_share(threshold, &query)), expected(&|row| share(row, &query) >= threshold)),
            (containing.map(|occurrence| Needed::Resembling {
                similarity: threshold,
                members: query.len(),
                least: occurrence.needed,
                levels: None,
            }), expected(&|row| jaccard(&list(row), &list(&query), &mut || ()) >= threshold)),
        ];
        for (needed, expected) in directions {
            let Some(needed) = needed else {
                prop_assert!(expected.is_empty());
                continue;
            };
            for found in sets_found(&rows, &query, needed, &key) {
                if colliding {
                    prop_assert!(found.is_superset(&expected));
                } else {
                    prop_assert_eq!(&found, &expected);
                }
            }
        }
    }
}

/// Returns the requirement for rows that have at least a share of their elements in a query.
fn own_share(share: f64, query: &BTreeSet<i64>) -> Needed {
    Needed::OwnShare {
        share,
        members: query.len(),
        sampled: 1,
    }
}

/// Returns rows of a template, with parts of it and elements of their own, and some unrelated rows.
fn templates() -> impl Strategy<Value = Vec<BTreeSet<i64>>> {
    let row = (0..40i64, 0..30i64, 0..12i64, any::<i32>());
    prop::collection::vec(row, 100..500).prop_map(|rows| {
        let set = |(from, len, own, seed): (i64, i64, i64, i32)| {
            let template = (from..40).take(len as usize + 20);
            let own = (0..own).map(move |i| 1000 + (i64::from(seed) + i) % 3000);
            template.chain(own).collect()
        };
        rows.into_iter().map(set).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The lists are long, on one leaf or on many, and most candidates are excluded by their sizes.
    #[test]
    fn rows_of_a_template_are_found_by_shares_and_resemblance(
        rows in templates(),
        row in any::<prop::sample::Index>(),
        threshold in prop_oneof![0.05..=1.0f64, Just(0.5), Just(0.8), Just(1.0)],
        capacity in prop_oneof![Just(80usize), 100usize..600, Just(8140)],
        most in prop_oneof![1u32..600, Just(u32::MAX)],
    ) {
        let list = |set: &BTreeSet<i64>| set.iter().copied().collect::<Vec<i64>>();
        let share = |a: &BTreeSet<i64>, b: &BTreeSet<i64>| containment(&list(a), &list(b), &mut || ());
        let query = row.get(&rows);
        let keys = |set: &BTreeSet<i64>| set.iter().map(|e| element_key(*e)).collect::<Vec<u32>>();
        let numbered: Rows = (0..).zip(rows.iter().map(keys)).collect();
        let least = Occurrence::contained(query.len(), threshold).map(|found| found.needed);
        type Measure<'m> = &'m dyn Fn(&BTreeSet<i64>) -> f64;
        let directions: [(Option<Needed>, Measure); 3] = [
            (least.map(Needed::Elements), &|row| share(query, row)),
            (Some(own_share(threshold, query)), &|row| share(row, query)),
            (least.map(|least| Needed::Resembling {
                similarity: threshold,
                members: query.len(),
                least,
                levels: None,
            }), &|row| jaccard(&list(row), &list(query), &mut || ())),
        ];
        for (needed, measure) in directions {
            let near = (0..).zip(&rows).filter(|(_, row)| measure(row) >= threshold);
            let near: BTreeSet<u64> = near.map(|(row, _)| row).collect();
            let found = needed.map(|needed| in_segment(&numbered, &keys(query), needed, capacity, most));
            prop_assert_eq!(found.unwrap_or_default(), near, "{:?}", needed);
        }
    }
}

/// Fails unless a search finds the same rows as the oracle, with exact numbers of keys or with at least as many as are
/// needed.
fn search_finds(
    store: &mut Store,
    groups: &[SegmentGroup],
    rows: &Rows,
    keys: &[u32],
    needed: usize,
    most: u32,
) -> Result<(), TestCaseError> {
    let needed = needed.max(1);
    let expected = expected(rows, keys, needed);
    for is_exact in [true, false] {
        let query = KeyQuery {
            keys,
            needed,
            minima: minima(keys.len(), needed),
            by_size: None,
            is_exact,
            most,
        };
        let found = store.search(groups, &query).unwrap();
        if is_exact {
            prop_assert_eq!(&found, &expected);
        }
        let numbers = |found: &[(u64, u32)]| found.iter().map(|found| found.0).collect::<Vec<_>>();
        prop_assert_eq!(numbers(&found), numbers(&expected));
        for ((_, known), (_, shared)) in found.iter().zip(&expected) {
            prop_assert!((needed as u32..=*shared).contains(known));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn leaves_give_back_their_postings(
        numbers in prop::collection::btree_set((key(), 0u32..1 << 20), 1..1500),
        capacity in prop_oneof![24usize..100, capacity()],
        range in [(key(), 0u32..1 << 20), (key(), 0u32..1 << 20)],
    ) {
        let postings: Vec<Posting> =
            numbers.into_iter().map(|(key, offset)| Posting { key, offset }).collect();
        let mut builder = LeafBuilder::new(capacity).unwrap();
        let taken = postings.iter().take_while(|posting| builder.push(**posting)).count();
        prop_assert!(taken > 0);
        prop_assert_eq!(builder.len(), taken);
        let mut page = vec![0xAA; capacity];
        let used = builder.finish(&mut page);
        prop_assert!(used <= capacity && builder.is_empty());
        let leaf = Leaf::parse(&page).unwrap();
        let postings = &postings[..taken];
        prop_assert_eq!((leaf.len(), leaf.used()), (taken, used));
        prop_assert_eq!((leaf.first(), leaf.last().unwrap()), (postings[0], postings[taken - 1]));
        prop_assert_eq!(postings_of(&leaf, Posting::MIN, Posting::MAX), postings);
        let [from, to] = range.map(|(key, offset)| Posting { key, offset });
        let below = postings.partition_point(|posting| *posting < from);
        prop_assert_eq!(leaf.rank(from).unwrap(), below);
        let within = postings.iter().filter(|posting| (from..=to).contains(posting));
        prop_assert!(postings_of(&leaf, from, to).iter().eq(within));
    }

    #[test]
    fn sorting_equals_the_library(
        mut numbers in prop::collection::vec(any::<u64>(), 0..9000),
        mask in prop_oneof![Just(u64::MAX), Just(0xFFFF), Just(0xFF00_0000_0000_00FF), any::<u64>()],
    ) {
        numbers.iter_mut().for_each(|number| *number &= mask);
        let expected: Vec<u64> = numbers.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        sort_distinct(&mut numbers, &mut || ());
        prop_assert_eq!(numbers, expected);
    }

    #[test]
    fn logs_give_back_their_rows(rows in rows(60), query in keys(20), capacity in 30usize..2000) {
        let mut page = vec![0xAA; capacity];
        let mut used = log::init(&mut page);
        let mut taken = 0;
        for keys in &rows {
            let Some(end) = log::append(&mut page, keys).unwrap() else {
                prop_assert!(used + 2 + 4 * keys.len() > capacity);
                break;
            };
            prop_assert_eq!(end, used + 2 + 4 * keys.len());
            (used, taken) = (end, taken + 1);
        }
        let log = Log::parse(&page).unwrap();
        prop_assert_eq!((usize::from(log.rows), log.used()), (taken, used));
        let (places, set) = (LogQuery::places(&query).unwrap(), LogQuery::set(&query).unwrap());
        for (row, keys) in log.iter().zip(&rows) {
            let row = row.unwrap();
            prop_assert_eq!(&row.keys().collect::<Vec<_>>(), keys);
            let same = query.iter().zip(keys).filter(|(a, b)| a == b).count();
            let same = if query.len() == keys.len() { same } else { 0 };
            prop_assert_eq!(places.shared(row, 0) as usize, same);
            let distinct: BTreeSet<u32> = keys.iter().copied().collect();
            let shared = query.iter().filter(|key| distinct.contains(key)).count();
            let all = set.shared(row, 0);
            prop_assert!(all as usize >= shared);
            if distinct.len() == keys.len() {
                prop_assert_eq!(all as usize, shared);
            }
            for least in 0..query.len() as u32 + 2 {
                let found = set.shared(row, least);
                prop_assert!(found == all || found == 0 && all < least);
            }
        }
        prop_assert_eq!(log.iter().count(), taken);
    }

    #[test]
    fn searches_find_what_the_oracle_finds(
        rows in rows(400),
        lo in prop_oneof![Just(0u64), Just((1 << 48) - 500)],
        queries in prop::collection::vec((keys(15), 0usize..8), 1..6),
        capacity in capacity(),
        most in 1u32..100,
    ) {
        let rows: Rows = (lo..).zip(rows).collect();
        let mut store = Store::new(capacity);
        let segment = store.write(1, lo, lo + rows.len() as u64, &postings(&rows, lo));
        for (query, needed) in queries {
            let found = store.find(&SegmentGroup::alone(&segment), &query, needed).unwrap();
            prop_assert_eq!(found, expected(&rows, &query, needed));
            search_finds(&mut store, &[SegmentGroup::alone(&segment)], &rows, &query, needed, most)?;
        }
        let mut checked = Vec::new();
        check(&mut store, &segment, None, &mut |place| checked.push(place)).unwrap();
        let all = postings(&rows, lo).into_iter().map(Posting::from);
        prop_assert!(all.map(|posting| (posting.key, lo + u64::from(posting.offset))).eq(checked));
    }

    #[test]
    fn segments_are_searched_together(
        inputs in prop::collection::vec(rows(120), 0..6),
        queries in prop::collection::vec((keys(15), 1usize..8), 1..6),
        capacity in capacity(),
        most in 1u32..300,
    ) {
        let mut store = Store::new(capacity);
        let (mut all, mut segments, mut lo) = (Rows::new(), Vec::new(), 0);
        for (number, rows) in (1..).zip(inputs) {
            let rows: Rows = (lo..).zip(rows).collect();
            let hi = lo + rows.len() as u64;
            segments.push(store.write(number, lo, hi, &postings(&rows, lo)));
            all.extend(rows);
            lo = hi;
        }
        let groups: Vec<SegmentGroup> = segments.iter().map(SegmentGroup::alone).collect();
        for (query, needed) in queries {
            search_finds(&mut store, &groups, &all, &query, needed, most)?;
            search_finds_the_likely(&mut store, &groups, &all, &query, needed, most)?;
        }
    }

    /// Interrupts the merge after every step. Each step uses only the stored state. After every step, lookups find
    /// everything, and the file holds no page twice.
    #[test]
    fn merges_find_everything_at_every_step(
        inputs in prop::collection::vec((rows(120), 0u64..50), 1..5),
        queries in prop::collection::vec((keys(15), 1usize..5), 1..4),
        capacity in capacity(),
        drops in any::<bool>(),
        most in 1u32..100,
    ) {
        let mut store = Store::new(capacity);
        let (mut all, mut segments) = (Rows::new(), Vec::new());
        let mut lo = 1 << 40;
        for (number, (rows, gap)) in (1..).zip(inputs) {
            let hi = lo + rows.len() as u64 + gap;
            let rows: Rows = (lo..).zip(rows).collect();
            segments.push(store.write(number, lo, hi, &postings(&rows, lo)));
            all.extend(rows);
            lo = hi;
        }
        let before = store.pages.len();
        let dead = |row: u64| drops && row.is_multiple_of(3);
        let mut merging = Merging::begin(100, &segments);
        let mut outputs = Vec::new();
        loop {
            outputs.push(merging.output);
            let more = merging.step(&mut store, &mut |row| !dead(row)).unwrap();
            let group = if more { merging.group() } else { SegmentGroup::alone(&merging.output.segment) };
            for (query, needed) in &queries {
                let group = if more { merging.group() } else { SegmentGroup::alone(&merging.output.segment) };
                let mut found = store.find(&group, query, *needed).unwrap();
                let mut expected = expected(&all, query, *needed);
                found.retain(|(row, _)| !dead(*row));
                expected.retain(|(row, _)| !dead(*row));
                prop_assert_eq!(&found, &expected);
                if !drops {
                    search_finds(&mut store, &[group], &all, query, *needed, most)?;
                }
            }
            let places = swept(&mut store, &[group], 7);
            let places: Vec<_> = places.into_iter().filter(|(_, row)| !dead(*row)).collect();
            let mut kept = all.clone();
            kept.retain(|row, _| !dead(*row));
            prop_assert_eq!(places, places_of(&kept));
            if !more {
                break;
            }
        }
        for output in outputs {
            // Readers know the output as it was.
            check(&mut store, &output.segment, Some(output.split), &mut |_| ()).unwrap();
        }
        // In addition to the inputs: leaves that are being read, their directories, and the less filled ends.
        prop_assert!(store.pages.len() <= before + 3 * segments.len() + 10 + before / 8);
        all.retain(|row, _| !dead(*row));
        let mut expected = postings(&all, 1 << 40);
        let (output, lo) = (merging.output.segment, 1u64 << 40);
        prop_assert_eq!(output.postings, expected.len() as u64);
        check(&mut store, &output, None, &mut |(key, row)| {
            let posting = Posting { key, offset: (row - lo) as u32 };
            assert_eq!(u64::from(posting), expected.remove(0));
        }).unwrap();
        let in_use = store.pages.iter().flatten().filter(|page| page.segment != 100).count();
        prop_assert_eq!(in_use, 0, "every page of the inputs is freed");
    }

    #[test]
    fn merges_keep_segments_few(sizes in prop::collection::vec(1u64..3000, 1..600)) {
        let mut segments = Vec::new();
        let (mut written, mut rewritten) = (0, 0);
        let mut lo = 0;
        for size in sizes {
            let mut segment = pages::empty(0, lo, lo + size);
            segment.postings = size;
            (lo, written) = (lo + size, written + size);
            segments.push(segment);
            while let Some(range) = policy::due(&segments) {
                prop_assert!(range.len() > 1);
                let mut merged = pages::empty(0, segments[range.start].lo, segments[range.end - 1].hi);
                merged.postings = segments[range.clone()].iter().map(|input| input.postings).sum();
                rewritten += merged.postings;
                segments.splice(range, [merged]);
            }
        }
        let classes = u64::from(written.ilog(4)) + 1;
        prop_assert!(segments.len() as u64 <= 3 * classes, "{} segments", segments.len());
        prop_assert!(rewritten <= 2 * written * classes, "{rewritten} of {written}");
    }
}

/// A step that keeps nothing reads a part of the inputs, and frees it.
#[test]
fn a_merge_of_dead_rows_takes_several_steps() {
    let mut store = Store::new(8140);
    let posting = |offset| Posting { key: 7, offset }.into();
    let postings: Vec<u64> = (0..3_000_000).map(posting).collect();
    let segment = store.write(1, 0, 3_000_000, &postings);
    let mut merging = Merging::begin(2, &[segment]);
    for free in [0, 1, 2] {
        assert!(store.free.len() * 3 >= store.pages.len() * free);
        let more = merging.step(&mut store, &mut |_| false).unwrap();
        assert_eq!(more, free < 2);
        assert_eq!(merging.output.segment.postings, 0);
    }
    assert_eq!(store.free.len(), store.pages.len());
}
