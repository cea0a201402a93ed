//! S-curves, the choice of (b, r), and relaxed thresholds, against published and exact values.

use neardup::bands::{lsh_params, lsh_probability, relax};
use neardup::minhash::equal_slots_needed;

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
        assert!(relax(threshold, 128, 0.999).is_err(), "{threshold}");
    }
    for slots in [0, -1, 1025, i64::MIN] {
        assert!(lsh_params(0.5, slots, 0.5, 0.5).is_err(), "{slots}");
        assert!(relax(0.5, slots, 0.999).is_err(), "{slots}");
    }
    for (fp, fn_) in [
        (0.0, 0.0),
        (-1.0, 2.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
    ] {
        assert!(lsh_params(0.5, 128, fp, fn_).is_err(), "{fp} {fn_}");
    }
    for recall in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(relax(0.5, 128, recall).is_err(), "{recall}");
    }
    for similarity in [-0.1, 1.1, f64::NAN] {
        assert!(lsh_probability(similarity, 20, 5).is_err(), "{similarity}");
    }
    assert!(lsh_probability(0.5, 0, 5).is_err());
    assert!(lsh_probability(0.5, 5, -1).is_err());
    assert!(relax(0.01, 1, 0.999).is_err());
}

#[test]
fn relaxed_thresholds() {
    assert_eq!(relax(0.8, 128, 0.999).unwrap(), 0.68);
    assert_eq!(relax(1.0, 128, 0.999).unwrap(), 1.0);
    for slots in [1, 2, 10, 64, 128, 200, 1024] {
        for threshold in [0.3, 0.5, 0.8, 0.95] {
            for recall in [0.5, 0.9, 0.999, 0.999_999] {
                let Ok(relaxed) = relax(threshold, slots, recall) else {
                    let some = 1.0 - (1.0 - threshold).powi(slots as i32);
                    assert!(some < recall, "{threshold} of {slots} keeps {recall}");
                    continue;
                };
                let equal = equal_slots_needed(slots as usize, 32, relaxed);
                let kept = at_least(equal, slots as usize, threshold);
                let kept_above = at_least(equal + 1, slots as usize, threshold);
                assert!(
                    kept >= recall - 1e-12,
                    "{threshold} {slots} {recall}: {kept}"
                );
                assert!(
                    kept_above < recall,
                    "{threshold} {slots} {recall}: {kept_above}"
                );
            }
        }
    }
}

/// P[Binomial(n, p) >= least] by building the distribution up one trial at a time.
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
