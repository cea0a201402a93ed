//! Compares sets, and the smaller sets chosen from them, with definitions.

use neardup::hash::Key;
use neardup::set::{self, bucket_sketch, shingle_sample, supershingles};
use neardup::shingle::{Shingling, shingle_hashes, winnow};
use neardup::text::{Fold, Unit};
use proptest::prelude::*;
use std::collections::BTreeSet;

const WORDS: Shingling = Shingling {
    k: 3,
    unit: Unit::Word,
    fold: Fold::Case,
};

fn set(range: std::ops::Range<i64>) -> impl Strategy<Value = Vec<i64>> {
    prop::collection::btree_set(range, 0..40).prop_map(|set| set.into_iter().collect())
}

fn distance(a: &[i64], b: &[i64]) -> f64 {
    1.0 - set::jaccard(a, b, &mut || ())
}

fn text(words: &[u16]) -> String {
    words.iter().map(|word| format!("w{word} ")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn distance_is_a_metric(a in set(0..30), b in set(0..30), c in set(0..30)) {
        prop_assert!(distance(&a, &c) <= distance(&a, &b) + distance(&b, &c) + 1e-12);
        prop_assert_eq!(distance(&a, &b), distance(&b, &a));
        prop_assert_eq!(distance(&a, &b) == 0.0, a == b && !a.is_empty());
    }
}

proptest! {
    #[test]
    fn measures_count_shared_elements(a in set(-20..20), b in set(-20..20)) {
        let shared = a.iter().filter(|x| b.contains(x)).count() as f64;
        let all = a.len() as f64 + b.len() as f64 - shared;
        let expected = if shared == 0.0 { (0.0, 0.0) } else { (shared / all, shared / a.len() as f64) };
        prop_assert_eq!(set::jaccard(&a, &b, &mut || ()), expected.0);
        prop_assert_eq!(set::containment(&a, &b, &mut || ()), expected.1);
    }

    #[test]
    fn small_sets_share_what_they_have_in_large_ones(a in set(-3000..3000), step in 1i64..4, exchanged in any::<bool>()) {
        let large: Vec<i64> = (-3000..3000).step_by(step as usize).collect();
        let expected = a.iter().filter(|x| (*x + 3000) % step == 0).count();
        let [x, y] = if exchanged { [&large, &a] } else { [&a, &large] };
        prop_assert_eq!(set::intersection_size(x, y, &mut || ()), expected);
    }

    #[test]
    fn early_ends_change_no_similarity(
        all in prop::collection::btree_set(-3000i64..3000, 0..400), in_a in prop::collection::vec(0..10u8, 400), in_b in prop::collection::vec(0..10u8, 400),
        share in 5..10u8, threshold in 0.0..=1.0f64,
    ) {
        let part = |of: &[u8]| -> Vec<i64> {
            all.iter().zip(of).filter(|(_, n)| **n <= share).map(|(x, _)| *x).collect()
        };
        let [a, b] = [part(&in_a), part(&in_b)];
        let exact = set::jaccard(&a, &b, &mut || ());
        for threshold in [threshold, exact, exact.next_up(), exact.next_down()] {
            let expected = (exact > 0.0 && exact >= threshold).then_some(exact);
            prop_assert_eq!(set::jaccard_at_least(&a, &b, threshold, &mut || ()), expected);
        }
    }

    #[test]
    fn samples_and_sketches(set in set(i64::MIN..i64::MAX), n in 1..20i32) {
        let residue = |hash: &i64| ((hash % i64::from(n)) + i64::from(n)) % i64::from(n);
        let sample: Vec<i64> = set.iter().filter(|hash| residue(hash) == 0).copied().collect();
        prop_assert_eq!(shingle_sample(&set, n, &mut || ())?, sample);
        let minima: BTreeSet<i64> = (0..i64::from(n))
            .filter_map(|class| set.iter().filter(|hash| residue(hash) == class).min().copied())
            .collect();
        prop_assert!(minima.len() <= n as usize);
        prop_assert_eq!(bucket_sketch(&set, n, &mut || ())?, Vec::from_iter(minima));
    }

    #[test]
    fn a_common_run_gives_a_common_supershingle(
        run in set(0..1_000_000), a in set(-1000..0), b in set(-1000..0), size in 1..8usize,
    ) {
        prop_assume!(run.len() >= size);
        let supershingles_with = |others: &[i64]| {
            let mut all = [others, &run].concat();
            set::sort_distinct(&mut all, &mut || ());
            supershingles(&all, size, &mut || ()).unwrap()
        };
        let [a, b] = [supershingles_with(&a), supershingles_with(&b)];
        prop_assert!(set::intersection_size(&a, &b, &mut || ()) > run.len() - size);
    }

    #[test]
    fn winnowing_finds_every_common_run(
        before in prop::collection::vec(0..9u16, 0..30), after in prop::collection::vec(0..9u16, 0..30),
        run in prop::collection::vec(0..50u16, 0..20), window in 1..10usize, k in 1..5usize,
    ) {
        prop_assume!(run.len() >= window + k - 1);
        let shingling = Shingling { k, ..WORDS };
        let key = Key::from_seed(1);
        let fingerprints = |parts: &[&[u16]]| {
            winnow(text(&parts.concat()).as_bytes(), &shingling, &key, window, &mut || ()).unwrap()
        };
        let a = fingerprints(&[&before, &run, &after]);
        let b = fingerprints(&[&after, &run, &before]);
        prop_assert!(set::intersection_size(&a, &b, &mut || ()) > 0);
    }

    #[test]
    fn winnowing_keeps_the_minimum_of_every_window(
        words in prop::collection::vec(0..12u16, 0..60), window in 1..10usize,
    ) {
        let key = Key::from_seed(1);
        let doc = text(&words);
        let mut hashes = Vec::new();
        neardup::shingle::for_each_block(doc.as_bytes(), &WORDS, &key, &mut |block| {
            hashes.extend(block.iter().map(|hash| *hash as i64));
            Ok(())
        })?;
        let windows = hashes.windows(window.min(hashes.len()).max(1));
        let minima: BTreeSet<i64> = windows.filter_map(|hashes| hashes.iter().min().copied()).collect();
        let chosen = winnow(doc.as_bytes(), &WORDS, &key, window, &mut || ())?;
        prop_assert_eq!(chosen, Vec::from_iter(minima));
    }
}

/// Section 3.2 of the paper: 2 / (window + 1) of the shingles.
#[test]
fn density_of_winnowing() {
    let words: Vec<String> = (0..200_000).map(|i| format!("w{i}")).collect();
    let doc = words.join(" ");
    let key = Key::from_seed(0);
    for window in [4, 16, 64] {
        let chosen = winnow(doc.as_bytes(), &WORDS, &key, window, &mut || ())
            .unwrap()
            .len() as f64;
        let density = chosen / (words.len() - 2) as f64;
        let expected = 2.0 / (window + 1) as f64;
        assert!(
            (density / expected - 1.0).abs() < 0.03,
            "{window}: {density}"
        );
    }
}

/// A set larger than the part that is sorted at once, with every element many times.
#[test]
fn large_sets_are_sorted_with_checks() {
    let mut checks = 0;
    let mut elements: Vec<i64> = (0..600_000).map(|i| (i * 7919) % 1000).collect();
    set::sort_distinct(&mut elements, &mut || checks += 1);
    assert_eq!(elements, Vec::from_iter(0..1000));
    assert!(checks > 10);
    let doc = "a b c d e f g h ".repeat(400_000);
    let hashes = shingle_hashes(doc.as_bytes(), &WORDS, &Key::from_seed(0), &mut || ()).unwrap();
    assert_eq!(hashes.len(), 8);
}
