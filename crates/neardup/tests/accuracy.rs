//! Bias and mean square error of the estimates, with fixed seeds.
//!
//! `NEARDUP_TRIALS` multiplies the number of trials (default 1, a few seconds; 20 for the whole test).

use neardup::hash::Key;
use neardup::minhash::{Header, Signature, SignatureUnit, Sketch, combine, estimate, measures};
use neardup::text::Fold;

/// The number of shingles sketched for each configuration, which determines its number of trials.
const EFFORT: usize = 150_000;

/// The numbers of elements of A, of B and of both, with `union` in all; `None` if the sets are the same or disjoint.
fn sizes(union: usize, similarity: f64, unequal: bool) -> Option<[usize; 3]> {
    let common = (similarity * union as f64).round() as usize;
    let rest = union - common;
    let only_a = if unequal { rest - rest / 8 } else { rest / 2 };
    (common > 0 && rest > 0).then(|| [common + only_a, union - only_a, common])
}

fn signature(hashes: &[u64], slots: usize) -> Vec<u8> {
    let header = Header {
        unit: SignatureUnit::Set,
        k: 1,
        slots: slots as u16,
        slot_bits: 32,
        fold: Fold::None,
        empty: false,
        seed_id: 0,
    };
    let mut sketch = Sketch::new(slots);
    sketch.add(hashes);
    sketch.encode(header)
}

/// The sums of the errors of an estimate and of their squares.
#[derive(Default, Clone, Copy)]
struct Errors {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Errors {
    fn push(&mut self, error: f64) {
        self.count += 1.0;
        self.sum += error;
        self.squares += error * error;
    }

    fn bias(&self) -> f64 {
        self.sum / self.count
    }

    fn mean_square(&self) -> f64 {
        self.squares / self.count
    }

    fn bias_in_standard_errors(&self) -> f64 {
        let variance = self.mean_square() - self.bias() * self.bias();
        self.bias() / (variance / self.count).sqrt()
    }

    /// Returns the factor by which a mean square may exceed its expectation by chance.
    fn allowance(&self) -> f64 {
        1.0 + 3.5 * (2.0 / self.count).sqrt()
    }
}

/// Returns the number of trials with a union of this size.
fn trial_count(union: usize) -> usize {
    let times = std::env::var("NEARDUP_TRIALS").map_or(1, |times| times.parse().expect("a number"));
    times * (EFFORT / union).clamp(30, 1500)
}

/// Calls `trial` with the pairs of signatures of one configuration.
fn trials(slots: usize, [a, b, common]: [usize; 3], mut trial: impl FnMut(&[u8], &[u8])) {
    let union = a + b - common;
    for seed in 0..trial_count(union) {
        let key = Key::from_seed((slots * 1_000_003 + union * 1009 + seed) as i64);
        let hashes: Vec<u64> = (0..union as u64)
            .map(|i| key.element_hash(&i.to_le_bytes()))
            .collect();
        trial(
            &signature(&hashes[..a], slots),
            &signature(&hashes[a - common..], slots),
        );
    }
}

fn read(bytes: &[u8]) -> Signature<'_> {
    Signature::from_bytes(bytes).expect("a signature")
}

const SIMILARITIES: [f64; 6] = [0.1, 0.3, 0.5, 0.8, 0.9, 0.95];

/// The mean square error over J (1 - J) / k is at most the value that was measured in 40 000 trials per configuration.
fn most_error(union: usize, slots: usize) -> f64 {
    match (union, slots) {
        (..=128, 128) => 0.65,
        _ => 1.05,
    }
}

#[test]
fn estimates_have_no_bias_and_less_error_than_textbook_minhash() {
    for slots in [64, 128, 256] {
        for union in [2, 3, 5, 10, 50, 128, 300, 1000, 5000, 50_000] {
            for (similarity, unequal) in SIMILARITIES
                .into_iter()
                .flat_map(|j| [(j, false), (j, true)])
            {
                let Some(sizes) = sizes(union, similarity, unequal) else {
                    continue;
                };
                let truth = sizes[2] as f64 / union as f64;
                let mut errors = Errors::default();
                trials(slots, sizes, |a, b| {
                    errors.push(estimate(&read(a), &read(b)).expect("comparable") - truth);
                });
                let textbook = truth * (1.0 - truth) / slots as f64;
                let ratio = errors.mean_square() / textbook;
                let what = format!("{slots} slots, {sizes:?}: {ratio}");
                assert!(errors.bias_in_standard_errors().abs() < 3.5, "{what}");
                assert!(
                    ratio < most_error(union, slots) * errors.allowance(),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn of_one_element_the_estimate_is_the_truth() {
    for slots in [64, 128, 256] {
        trials(slots, [1, 1, 1], |a, b| {
            assert_eq!(estimate(&read(a), &read(b)), Ok(1.0));
        });
    }
}

#[test]
fn packed_estimates_err_as_their_formula_says() {
    for bits in [16, 8, 4, 2, 1] {
        for (slots, union, similarity, unequal) in [
            (128, 50, 0.5, false),
            (128, 300, 0.8, false),
            (128, 1000, 0.3, true),
            (128, 1000, 0.9, false),
            (64, 300, 0.5, true),
            (256, 300, 0.95, true),
            (256, 5000, 0.8, false),
        ] {
            let sizes = sizes(union, similarity, unequal).expect("both");
            let truth = sizes[2] as f64 / union as f64;
            let mut errors = Errors::default();
            trials(slots, sizes, |a, b| {
                let pack = |bytes| combine::pack(&read(bytes), bits).expect("packs");
                errors
                    .push(estimate(&read(&pack(a)), &read(&pack(b))).expect("comparable") - truth);
            });
            // The bound for binomial slots that agree with p = J + (1 - J) 2^-b.
            let chance = 0.5f64.powi(bits as i32);
            let agree = truth + (1.0 - truth) * chance;
            let formula = agree * (1.0 - agree) / slots as f64 / (1.0 - chance).powi(2);
            let what = format!(
                "{slots} x {bits} bits, {sizes:?}: {}",
                errors.mean_square() / formula
            );
            assert!(errors.bias_in_standard_errors().abs() < 3.5, "{what}");
            assert!(
                errors.mean_square() < 1.05 * formula * errors.allowance(),
                "{what}"
            );
        }
    }
}

#[test]
fn cardinalities_and_containments_are_near() {
    for count in [1, 2, 3, 10, 50, 128, 300, 1000, 5000] {
        let (mut cardinality, mut containment) = (Errors::default(), Errors::default());
        trials(128, [count, count * 2, count], |a, b| {
            let estimate = measures::cardinality(&read(a)).expect("full width");
            cardinality.push(estimate / count as f64 - 1.0);
            let share = |a, b| measures::containment(&read(a), &read(b)).expect("comparable");
            assert_eq!(share(a, b), Some(1.0), "a subset of {count}");
            containment.push(share(b, a).expect("slots tell") - 0.5);
        });
        let deviation = cardinality.mean_square().sqrt();
        let what = format!("{count}: bias {}, error {deviation}", cardinality.bias());
        // Within 1 %, as far as so few trials can tell.
        let chance = 3.5 * deviation / cardinality.count.sqrt();
        assert!(cardinality.bias().abs() < 0.012 + chance, "{what}");
        assert!(deviation < 0.092 * cardinality.allowance(), "{what}");
        assert!(
            containment.mean_square().sqrt() < 0.06,
            "containment, {count}"
        );
    }
}

/// Different shingles hardly ever leave the same code in a slot.
#[test]
fn slots_of_strangers_differ() {
    let (mut equal, mut slots) = (0.0, 0.0);
    for union in [2, 20, 200, 2000, 20_000] {
        trials(1024, [union / 2, union - union / 2, 0], |a, b| {
            equal += estimate(&read(a), &read(b)).expect("comparable") * 1024.0;
            slots += 1024.0;
        });
    }
    assert!(equal / slots < 0.001, "{equal} of {slots}");
}
