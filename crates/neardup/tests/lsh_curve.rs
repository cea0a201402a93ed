//! S-curves, the choice of (b, r), and relaxed thresholds, against published and exact values.

use neardup::bands::{lsh_params, lsh_probability};
use neardup::minhash::equal_slots_needed;
use neardup::minhash::interval::share_limits;

#[test]
fn the_curve_of_the_textbook() {
    // Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", figure 3.8: b = 20, r = 5.
    let table = [
        (0.2, 0.006),
        (0.3, 0.047),
        (0.4, 0.186),
        (0.5, 0.470),
        (0.6, 0.802),
        (0.7, 0.975),
        (0.8, 0.9996),
    ];
    for (similarity, expected) in table {
        let probability = lsh_probability(similarity, 20, 5).unwrap();
        assert!(
            (probability - expected).abs() < 6e-4,
            "{similarity}: {probability}"
        );
    }
    assert_eq!(lsh_probability(0.0, 20, 5).unwrap(), 0.0);
    assert_eq!(lsh_probability(1.0, 20, 5).unwrap(), 1.0);
    let tiny = lsh_probability(1e-6, 50, 4).unwrap();
    assert!((tiny / 50e-24 - 1.0).abs() < 1e-12, "{tiny}");
}

#[test]
fn parameters_that_datasketch_finds() {
    let choose = |threshold, slots| {
        let params = lsh_params(threshold, slots, 0.5, 0.5).unwrap();
        (params.bands, params.rows)
    };
    assert_eq!(choose(0.5, 128), (25, 5));
    assert_eq!(choose(0.7, 128), (14, 9));
    assert_eq!(choose(0.8, 128), (9, 13));
    assert_eq!(choose(0.9, 128), (5, 25));
    assert_eq!(choose(1.0, 128), (1, 128));
    assert_eq!(choose(0.5, 1), (1, 1));
}

#[test]
fn areas_are_the_integrals() {
    // One band of one row: the curve is the diagonal.
    let params = lsh_params(0.4, 1, 1.0, 1.0).unwrap();
    assert!((params.fp_area - 0.08).abs() < 1e-6, "{params:?}");
    assert!((params.fn_area - 0.18).abs() < 1e-6, "{params:?}");
    let few_false_positives = lsh_params(0.5, 128, 1.0, 0.0).unwrap();
    assert!(
        few_false_positives.fp_area < 1e-12,
        "{few_false_positives:?}"
    );
    let few_false_negatives = lsh_params(0.5, 128, 0.0, 1.0).unwrap();
    assert_eq!(
        (few_false_negatives.bands, few_false_negatives.rows),
        (128, 1)
    );
}

#[test]
fn bad_parameters_are_rejected() {
    for threshold in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(lsh_params(threshold, 128, 0.5, 0.5).is_err(), "{threshold}");
    }
    for slots in [0, -1, 1025, i64::MIN] {
        assert!(lsh_params(0.5, slots, 0.5, 0.5).is_err(), "{slots}");
    }
    for (fp, fn_) in [
        (0.0, 0.0),
        (-1.0, 2.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
    ] {
        assert!(lsh_params(0.5, 128, fp, fn_).is_err(), "{fp} {fn_}");
    }
    for similarity in [-0.1, 1.1, f64::NAN] {
        assert!(lsh_probability(similarity, 20, 5).is_err(), "{similarity}");
    }
    assert!(lsh_probability(0.5, 0, 5).is_err());
    assert!(lsh_probability(0.5, 5, -1).is_err());
}

/// The table in docs/minhash.md: sizes, the widest interval, and the thresholds that keep 99.9 % of the pairs.
#[test]
fn documented_bounds() {
    let page = include_str!("../../../docs/minhash.md");
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| slots | bytes |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut seen = 0;
    for row in rows {
        let cells: Vec<f64> = row
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim_matches([' ', '\u{b1}']).parse().unwrap())
            .collect();
        let slots = cells[0] as usize;
        assert_eq!(cells[1], (16 + 4 * slots) as f64);
        let (low, high) = share_limits((slots / 2) as f64, slots as f64, 0.95);
        assert!(((high - low) / 2.0 - cells[2]).abs() < 5e-4, "{row}");
        for (threshold, relaxed) in [0.7, 0.8, 0.9].into_iter().zip(&cells[3..]) {
            let equal = equal_slots_needed(slots, 32, *relaxed);
            assert!(at_least(equal, slots, threshold) >= 0.999, "{row}");
            assert!(at_least(equal + 1, slots, threshold) < 0.999, "{row}");
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
}

/// Returns P[Binomial(n, p) >= least], computed by adding one trial at a time to the distribution.
fn at_least(least: usize, n: usize, p: f64) -> f64 {
    let mut distribution = vec![0.0; n + 1];
    distribution[0] = 1.0;
    for trial in 0..n {
        for i in (0..=trial + 1).rev() {
            let from_below = if i > 0 { distribution[i - 1] } else { 0.0 };
            distribution[i] = distribution[i] * (1.0 - p) + from_below * p;
        }
    }
    distribution.iter().skip(least).sum()
}
