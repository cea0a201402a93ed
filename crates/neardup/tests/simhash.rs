//! SimHash: known answers, a worked example, the definition by brute force, and the angle law.

use bitvec::prelude::*;
use neardup::hash::{GOLDEN, Key, combine, split_mix};
use neardup::shingle::Shingling;
use neardup::simhash::{Sums, Weighting, Width, document, fixed_point};
use neardup::text::{Fold, Unit};
use proptest::prelude::*;
use std::collections::HashMap;
use std::f64::consts::PI;

const WEIGHTINGS: [Weighting; 3] = [Weighting::Frequency, Weighting::Logarithm, Weighting::Set];

fn words(k: i64) -> Shingling {
    Shingling::new(k, Unit::Word, Fold::Case).unwrap()
}

fn simhash(doc: &str, k: i64, bits: i64, weighting: Weighting) -> Option<BitVec<u8, Msb0>> {
    let width = Width::new(bits).unwrap();
    document(
        doc.as_bytes(),
        &words(k),
        &Key::from_seed(0),
        width,
        weighting,
        &mut || (),
    )
    .unwrap()
}

/// Returns the words of the result, each from its highest bit to its lowest.
fn as_words(bits: &BitSlice<u8, Msb0>) -> Vec<u64> {
    bits.chunks(64).map(|word| word.load_be()).collect()
}

/// Computes a SimHash by the definition: floating-point sums over the terms, bit by bit.
fn by_definition(terms: &[(u64, f64)], bits: usize) -> Vec<f64> {
    let sign = |term: u64, bit: usize| {
        let word = match bit / 64 {
            0 => term,
            word => split_mix(term.wrapping_add(GOLDEN.wrapping_mul(word as u64))),
        };
        if word >> (63 - bit % 64) & 1 == 1 {
            1.0
        } else {
            -1.0
        }
    };
    let sum = |bit| {
        terms
            .iter()
            .map(|(term, weight)| weight * sign(*term, bit))
            .sum()
    };
    (0..bits).map(sum).collect()
}

#[test]
fn known_answers_are_frozen() {
    // Computed by a separate program from the descriptions of the schemes.
    let doc = "The quick brown fox jumps over the lazy dog. The dog sleeps.";
    let first = |k, weighting| as_words(&simhash(doc, k, 64, weighting).unwrap())[0];
    assert_eq!(first(1, Weighting::Frequency), 0x4466_188b_3102_931b);
    assert_eq!(first(1, Weighting::Logarithm), 0x5466_588b_3102_931b);
    assert_eq!(first(1, Weighting::Set), 0x5466_58cb_7100_903b);
    assert_eq!(first(3, Weighting::Logarithm), 0xfd80_9c54_0890_f098);
    let wide = simhash(doc, 1, 256, Weighting::Logarithm).unwrap();
    let words = [
        0x5466_588b_3102_931b,
        0x52c5_fd9d_8cc9_9d01,
        0x8157_5f6b_c86c_61d9,
        0x2123_7ac2_29a5_f072,
    ];
    assert_eq!(as_words(&wide), words);
}

#[test]
fn the_simhash_of_one_term_is_its_hash() {
    let hash = Key::from_seed(0).element_hash(b"word");
    for weighting in WEIGHTINGS {
        let bits = simhash("Word, word", 1, 128, weighting).unwrap();
        assert_eq!(
            as_words(&bits),
            [hash, split_mix(hash.wrapping_add(GOLDEN))]
        );
    }
}

#[test]
fn no_term_no_simhash() {
    for weighting in WEIGHTINGS {
        assert_eq!(simhash("", 1, 64, weighting), None);
        assert_eq!(simhash(" ... ", 3, 64, weighting), None);
    }
}

#[test]
fn a_tie_gives_zero() {
    let mut sums = Sums::new(Width::new(64).unwrap());
    assert_eq!(sums.signature(), None);
    sums.add(0b0110, 5).unwrap();
    sums.add(0b1100, 5).unwrap();
    assert_eq!(as_words(&sums.signature().unwrap()), [0b0100]);
    sums.add(0b1111, 1).unwrap();
    assert_eq!(as_words(&sums.signature().unwrap()), [0b1110]);
    sums.add(u64::MAX, -2).unwrap();
    assert_eq!(as_words(&sums.signature().unwrap()), [0b0100]);
}

#[test]
fn widths_and_weights_out_of_range_are_rejected() {
    for bits in [0, 1, 63, 65, 100, 4097, 4160, -64, i64::MIN, i64::MAX] {
        assert!(Width::new(bits).is_err(), "{bits}");
    }
    assert_eq!(Width::new(4096).unwrap().bits(), 4096);
    let infinities = [f64::INFINITY, f64::NEG_INFINITY];
    for weight in [f64::NAN, 2147483648.0, -2147483648.0, f64::MAX]
        .into_iter()
        .chain(infinities)
    {
        assert!(fixed_point(weight).is_err(), "{weight}");
    }
    assert_eq!(fixed_point(1.0).unwrap(), 1 << 32);
    assert_eq!(fixed_point(-0.5f64.powi(32)).unwrap(), -1);
}

#[test]
fn sums_that_could_overflow_are_rejected_in_every_order() {
    let heavy = fixed_point(1.5 * 2f64.powi(30)).unwrap();
    for weights in [
        [heavy, heavy],
        [-heavy, -heavy],
        [heavy, -heavy],
        [-heavy, heavy],
    ] {
        let mut sums = Sums::new(Width::new(64).unwrap());
        sums.add(1, weights[0]).unwrap();
        assert!(sums.add(2, weights[1]).is_err());
        let mut other = Sums::new(Width::new(64).unwrap());
        other.add(2, weights[1]).unwrap();
        assert!(sums.clone().merge(&other).is_err());
    }
    let mut sums = Sums::new(Width::new(64).unwrap());
    assert!(sums.add(1, i64::MIN).is_err());
    assert!(sums.merge(&Sums::new(Width::new(128).unwrap())).is_err());
}

#[test]
fn weights_of_frequencies_are_frozen() {
    // 1 + ln tf in multiples of 2^-32 for the lowest frequencies, computed with 50 digits.
    let expected = [4294967296, 7272011768, 9013471147, 10249056240, 11207450495];
    for (tf, weight) in (1..).zip(expected) {
        assert_eq!(
            fixed_point(Weighting::Logarithm.weight(tf)).unwrap(),
            weight,
            "{tf}"
        );
    }
}

/// A document longer than a block of shingles, which is counted differently.
#[test]
fn long_documents_are_summed_by_definition() {
    let mut state = 5;
    let numbers: Vec<u32> = (0..10_000)
        .map(|_| (uniform(&mut state).powi(4) * 5000.0) as u32)
        .collect();
    let doc: Vec<String> = numbers.iter().map(|n| format!("w{n}")).collect();
    let key = Key::from_seed(0);
    let mut frequencies: HashMap<&str, u32> = HashMap::new();
    doc.iter()
        .for_each(|word| *frequencies.entry(word).or_default() += 1);
    for weighting in WEIGHTINGS {
        let mut sums = Sums::new(Width::new(128).unwrap());
        for (word, tf) in &frequencies {
            let weight = fixed_point(weighting.weight(*tf)).unwrap();
            sums.add(key.element_hash(word.as_bytes()), weight).unwrap();
        }
        let found = simhash(&doc.join(" "), 1, 128, weighting);
        assert_eq!(found, sums.signature(), "{weighting:?}");
    }
}

proptest! {
    #[test]
    fn documents_are_summed_by_definition(
        numbers in prop::collection::vec((0u32..40, 0u32..6), 0..400),
        words in 1i64..4,
        k in 1i64..4,
    ) {
        let doc: Vec<String> = numbers.iter().map(|(word, _)| format!("w{word}")).collect();
        let doc = doc.join(" ");
        let key = Key::from_seed(0);
        let mut frequencies: HashMap<u64, u32> = HashMap::new();
        let spelled: Vec<&str> = doc.split_whitespace().collect();
        let size = (k as usize).min(spelled.len()).max(1);
        for window in spelled.windows(size) {
            let tokens: Vec<u64> = window.iter().map(|w| key.token_hash(w.as_bytes())).collect();
            *frequencies.entry(combine(&tokens)).or_default() += 1;
        }
        for weighting in WEIGHTINGS {
            let terms: Vec<(u64, f64)> =
                frequencies.iter().map(|(term, tf)| (*term, weighting.weight(*tf))).collect();
            let found = simhash(&doc, k, 64 * words, weighting);
            prop_assert_eq!(found.is_none(), terms.is_empty());
            let Some(found) = found else { continue };
            for (bit, sum) in by_definition(&terms, found.len()).into_iter().enumerate() {
                // Sums this close to 0 are ties of floating-point sums or of rounded weights.
                if sum.abs() > 1e-6 || weighting != Weighting::Logarithm {
                    prop_assert_eq!(found[bit], sum > 0.0, "bit {} of {:?}", bit, weighting);
                }
            }
        }
    }

    #[test]
    fn neither_order_nor_parts_change_a_bit(
        terms in prop::collection::vec((any::<u64>(), -1e6f64..1e6), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let width = Width::new(192).unwrap();
        let sums_of = |terms: &mut dyn Iterator<Item = &(u64, f64)>| {
            let mut sums = Sums::new(width);
            for (term, weight) in terms {
                sums.add(*term, fixed_point(*weight).unwrap()).unwrap();
            }
            sums
        };
        let forward = sums_of(&mut terms.iter());
        prop_assert_eq!(&sums_of(&mut terms.iter().rev()), &forward);
        let (one, other) = terms.split_at(cut.index(terms.len() + 1));
        let mut merged = Sums::from_bytes(&sums_of(&mut other.iter()).to_bytes()).unwrap();
        merged.merge(&sums_of(&mut one.iter())).unwrap();
        prop_assert_eq!(&merged, &forward);
        for (bit, sum) in by_definition(&terms, 192).into_iter().enumerate() {
            if sum.abs() > 1e-3 {
                prop_assert_eq!(forward.signature().unwrap()[bit], sum > 0.0);
            }
        }
    }
}

#[test]
fn bytes_of_another_length_are_no_sums() {
    for len in [0, 7, 8, 15, 17, 24, 16 + 511, 16 + 513] {
        assert!(Sums::from_bytes(&vec![0; len]).is_err(), "{len}");
    }
}

/// Returns a stream of numbers that is the same on every run, uniform in [0, 1).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(GOLDEN);
    (split_mix(*state) >> 11) as f64 / 2f64.powi(53)
}

#[test]
fn the_share_of_differing_bits_is_the_angle() {
    let (bits, pairs) = (4096, 60);
    let mut state = 7;
    let mut total_z = 0.0;
    for pair in 0..pairs {
        let terms = 20 + pair * 5;
        let mixed = pair as f64 / pairs as f64;
        let (mut dot, mut aa, mut bb) = (0.0, 0.0, 0.0);
        let width = Width::new(bits).unwrap();
        let (mut a, mut b) = (Sums::new(width), Sums::new(width));
        for _ in 0..terms {
            let term = split_mix((uniform(&mut state) * 2f64.powi(53)) as u64);
            let weight_a = uniform(&mut state);
            let weight_b = weight_a * (1.0 - mixed) + uniform(&mut state) * mixed;
            a.add(term, fixed_point(weight_a).unwrap()).unwrap();
            b.add(term, fixed_point(weight_b).unwrap()).unwrap();
            dot += weight_a * weight_b;
            aa += weight_a * weight_a;
            bb += weight_b * weight_b;
        }
        let angle = (dot / (aa * bb).sqrt()).min(1.0).acos() / PI;
        let differing =
            (a.signature().unwrap() ^ b.signature().unwrap()).count_ones() as f64 / bits as f64;
        let error = (angle * (1.0 - angle) / bits as f64).sqrt();
        // Signs are not Gaussian: with few terms, the law is off by about 1 / terms of the angle.
        let bias = angle / terms as f64;
        assert!(
            (differing - angle).abs() <= 3.0 * error + bias,
            "{differing} for {angle}"
        );
        if error > 0.0 {
            total_z += (differing - angle) / error;
        }
    }
    let mean_z = total_z / f64::from(pairs as u32).sqrt();
    assert!(
        mean_z.abs() < 3.0,
        "off by {mean_z} standard errors over all pairs"
    );
}
