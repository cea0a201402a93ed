//! Bands: known answers, and the pigeonhole lemmas on random and adversarial pairs.

use bitvec::prelude::*;
use neardup::bands::{
    Bands, HammingBlocks, Occurrence, band_hash, band_hashes, band_keys, header_digest,
};
use neardup::minhash::{Header, Signature, SignatureUnit, similarity};
use neardup::text::Fold;
use proptest::prelude::*;
use std::collections::HashSet;

fn header(slots: usize, slot_bits: u8) -> Header {
    Header {
        unit: SignatureUnit::Word,
        k: 3,
        slots: slots as u16,
        slot_bits,
        fold: Fold::Case,
        empty: false,
        seed_id: 0x0123_4567_89ab_cdef,
    }
}

// Computed by a separate program from the description of scheme 1.
const DIGEST: u64 = 0x610d_4404_0b23_3c85;
const BAND_OF_NOTHING: u64 = 0x4b96_b9c1_e6f9_6a54;
const BAND_OF_11_BYTES: u64 = 0x8458_7131_01c2_29d2;
const BAND_KEYS: [(u8, [i64; 3]); 4] = [
    (
        32,
        [
            5589366066122219618,
            8514432566625598349,
            -6895452146978844532,
        ],
    ),
    (
        16,
        [
            -5619774686544124128,
            7619545179912292528,
            -568159783424576669,
        ],
    ),
    (
        8,
        [5019478528100852562, 188736949880607463, -122885363817134263],
    ),
    (
        4,
        [
            -6134088273310112482,
            -5219150316824007257,
            6950346727637602630,
        ],
    ),
];
const HAMMING_KEYS: [i64; 3] = [
    -8616987163071158369,
    7894915601443954011,
    -145465022078267378,
];

#[test]
fn known_answers_are_frozen() {
    assert_eq!(header_digest(&header(128, 32)), DIGEST);
    assert_eq!(band_hash(DIGEST, 30, 7, &[]), BAND_OF_NOTHING);
    assert_eq!(band_hash(DIGEST, 30, 7, b"abcdefghijk"), BAND_OF_11_BYTES);
    let slots: Vec<u32> = (0..10).map(|i| 0x0101_0101 * i).collect();
    let bands = Bands {
        slots: 10,
        bands: 3,
    };
    for (slot_bits, expected) in BAND_KEYS {
        let bytes = header(10, slot_bits).encode(&slots);
        let signature = Signature::from_bytes(&bytes).unwrap();
        let keys: Vec<i64> = band_keys(&signature, &bands).collect();
        assert_eq!(keys, expected, "{slot_bits} bits per slot");
    }
    let bits = BitVec::<u8, Msb0>::from_vec(b"near duplicate".to_vec());
    let blocks = HammingBlocks::new(1, 3).unwrap();
    assert_eq!(blocks.keys(&bits[..101]).unwrap(), HAMMING_KEYS);
}

#[test]
fn sizes_of_indexes() {
    assert_eq!(Bands::for_threshold(128, 32, 0.8).bands, 30);
    assert_eq!(Bands::for_threshold(128, 32, 0.9).bands, 15);
    assert_eq!(Bands::for_threshold(128, 32, 1.0).bands, 1);
    assert_eq!(Bands::for_threshold(128, 32, 0.001).bands, 128);
    assert_eq!(Bands::for_threshold(1, 32, 0.5).bands, 1);
    let bands = Bands::for_threshold(128, 32, 0.8);
    let at = |threshold| {
        let occurrence = bands.occurrence(32, threshold)?;
        Some((occurrence.needed, occurrence.probes()))
    };
    assert_eq!(at(0.8), Some((5, 26)));
    assert_eq!(at(0.9), Some((18, 13)));
    assert_eq!(at(1.0), Some((30, 1)));
    assert_eq!(at(0.5), None);
}

#[test]
fn members_of_contained_sets() {
    let needed = |members, containment| {
        Occurrence::contained(members, containment).map(|occurrence| occurrence.needed)
    };
    assert_eq!(needed(100, 0.07), Some(7));
    assert_eq!(needed(3, 0.5), Some(2));
    assert_eq!(needed(10, f64::MIN_POSITIVE), Some(1));
    assert_eq!(needed(10, 1.0), Some(10));
    for (members, containment) in [(0, 0.5), (10, 0.0), (10, 1.1), (10, -1.0), (10, f64::NAN)] {
        assert_eq!(needed(members, containment), None);
    }
}

#[test]
fn an_empty_document_has_no_bands() {
    let header = Header {
        empty: true,
        ..header(16, 32)
    };
    let bytes = header.encode(&[u32::MAX; 16]);
    let signature = Signature::from_bytes(&bytes).unwrap();
    let bands = Bands {
        slots: 16,
        bands: 4,
    };
    let classic = Bands::classic(4, 4, 16).unwrap();
    assert_eq!(band_hashes(&signature, &bands).count(), 0);
    assert_eq!(band_keys(&signature, &classic).count(), 0);
}

#[test]
fn classic_bands_fit_or_are_rejected() {
    for (bands, rows) in [(0, 1), (1, 0), (-1, -1), (13, 10), (i64::MAX, 2), (129, 1)] {
        assert!(
            Bands::classic(bands, rows, 128).is_err(),
            "{bands} x {rows}"
        );
    }
    let bytes = header(128, 32).encode(&[7; 128]);
    let signature = Signature::from_bytes(&bytes).unwrap();
    let classic = Bands::classic(25, 5, 128).unwrap();
    let keys: HashSet<i64> = band_keys(&signature, &classic).collect();
    assert_eq!(
        keys.len(),
        25,
        "bands of equal slots have keys of their own"
    );
}

#[test]
fn every_bit_of_a_band_hash_is_mixed() {
    let mut flips = [0u32; 64];
    let inputs = 4000u32;
    for i in 0..inputs {
        let mut slots = [0; 16];
        slots[..4].copy_from_slice(&i.to_le_bytes());
        let before = band_hash(1, 30, 3, &slots);
        slots[(i % 16) as usize] ^= 1 << (i % 8);
        let changed = before ^ band_hash(1, 30, 3, &slots);
        for (bit, count) in flips.iter_mut().enumerate() {
            *count += (changed >> bit & 1) as u32;
        }
    }
    // Six standard errors of a fair coin.
    let error = 6.0 * (f64::from(inputs) * 0.25).sqrt();
    for count in flips {
        assert!(
            (f64::from(count) - f64::from(inputs) / 2.0).abs() < error,
            "{count}"
        );
    }
}

proptest! {
    #[test]
    fn ranges_use_every_slot_once(slots in 1usize..=1024, bands in 1usize..=1024) {
        let bands = Bands { slots, bands: bands.min(slots) };
        let covered: Vec<usize> = (0..bands.bands).flat_map(|band| bands.range(band)).collect();
        prop_assert_eq!(covered, (0..slots).collect::<Vec<_>>());
        prop_assert!((0..bands.bands).all(|band| !bands.range(band).is_empty()));
    }

    #[test]
    fn close_signatures_share_as_many_bands_as_promised(
        slots in 1usize..=256,
        slot_bits in prop::sample::select(vec![1u8, 2, 4, 8, 16, 32]),
        index_threshold in 0.05f64..=1.0,
        raise in 0.0f64..=1.0,
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..256),
        spread in any::<bool>(),
    ) {
        let threshold = index_threshold + raise * (1.0 - index_threshold);
        let bands = Bands::for_threshold(slots, slot_bits.into(), index_threshold);
        // One change in every band is the worst that a few changes can do.
        let worst: Vec<usize> = (0..bands.bands).map(|band| bands.range(band).start).collect();
        let one: Vec<u32> = (0..slots as u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        let mut other = one.clone();
        for (i, place) in places.iter().enumerate() {
            let slot = if spread && i < worst.len() { worst[i] } else { place.index(slots) };
            other[slot] = one[slot] ^ 1;
            let encode = |slots: &[u32]| header(slots.len(), slot_bits).encode(slots);
            let (a, b) = (encode(&one), encode(&other));
            let (a, b) = (Signature::from_bytes(&a).unwrap(), Signature::from_bytes(&b).unwrap());
            let equal = a.slots().zip(b.slots()).filter(|(a, b)| a == b).count();
            if similarity(equal, slots, slot_bits.into()) < threshold {
                break;
            }
            let shared = band_keys(&a, &bands).zip(band_keys(&b, &bands)).filter(|(a, b)| a == b);
            let shared = shared.count();
            let occurrence = bands.occurrence(slot_bits.into(), threshold).unwrap();
            prop_assert!(shared >= occurrence.needed);
            prop_assert!(shared > bands.bands - occurrence.probes());
            let estimate = similarity(equal, slots, slot_bits.into());
            let greatest = bands.greatest_similarity(slot_bits.into(), shared);
            prop_assert!(estimate <= greatest);
            if spread && i < worst.len() {
                prop_assert_eq!(estimate, greatest, "the bound is met, to the last bit");
            }
        }
    }

    #[test]
    fn sharing_fewer_keys_means_being_less_similar(
        slots in 1usize..=1024,
        slot_bits in prop::sample::select(vec![1u32, 2, 4, 8, 16, 32]),
        index_threshold in 0.05f64..=1.0,
        threshold in 0.05f64..=1.0,
    ) {
        let bands = Bands::for_threshold(slots, slot_bits, index_threshold);
        let greatest = |shared| bands.greatest_similarity(slot_bits, shared);
        prop_assert!((0..bands.bands).all(|shared| greatest(shared) <= greatest(shared + 1)));
        prop_assert_eq!(greatest(bands.bands), 1.0);
        prop_assert_eq!(greatest(bands.bands + 1), 1.0);
        match bands.occurrence(slot_bits, threshold) {
            // T is the smallest number of keys at which the bound reaches the threshold.
            Some(occurrence) => {
                prop_assert!(greatest(occurrence.needed) >= threshold);
                prop_assert!(greatest(occurrence.needed - 1) < threshold);
            }
            None => {
                prop_assert!(threshold < index_threshold);
                prop_assert!(greatest(0) >= threshold);
            }
        }
    }

    #[test]
    fn contained_sets_share_as_many_members_as_the_comparison_demands(
        members in 1usize..100_000,
        part in 1usize..100_000,
        nudge in -1i8..=1,
    ) {
        let share = part.min(members) as f64 / members as f64;
        let containment = match nudge {
            -1 => share.next_down(),
            1 => share.next_up().min(1.0),
            _ => share,
        };
        let occurrence = Occurrence::contained(members, containment).unwrap();
        let is_enough = |shared: usize| shared as f64 / members as f64 >= containment;
        prop_assert!(is_enough(occurrence.needed));
        prop_assert!(!is_enough(occurrence.needed - 1));
        prop_assert_eq!(occurrence.probes(), members - occurrence.needed + 1);
    }

    #[test]
    fn close_bit_strings_share_a_probed_key(
        length in 0usize..300,
        distance in 0i64..5,
        more_blocks in 1i64..4,
        closer in 0i64..5,
        bytes in prop::collection::vec(any::<u8>(), 38),
        places in prop::collection::vec(any::<prop::sample::Index>(), 5),
    ) {
        let blocks = HammingBlocks::new(distance, distance + more_blocks).unwrap();
        let stored = &bytes.view_bits::<Msb0>()[..length];
        let mut query = stored.to_bitvec();
        let asked = (distance - closer).max(0);
        for place in &places[..asked as usize] {
            if length > 0 {
                let place = place.index(length);
                let flipped = !query[place];
                query.set(place, flipped);
            }
        }
        let keys: HashSet<i64> = blocks.keys(stored).unwrap().into_iter().collect();
        let probe = blocks.probe(&query, asked).unwrap();
        prop_assert!(probe.iter().any(|key| keys.contains(key)));
        let intact = blocks.block_hashes(stored).zip(blocks.block_hashes(&query));
        let intact = intact.filter(|(a, b)| a == b).count();
        prop_assert!(intact >= blocks.occurrence(asked as usize).unwrap().needed);
        prop_assert!(blocks.least_distance(intact) <= asked as usize);
    }
}

#[test]
fn numbers_of_hamming_keys() {
    let bits = bits![u8, Msb0; 0; 64];
    let count = |distance, blocks| HammingBlocks::new(distance, blocks).unwrap().keys(bits);
    assert_eq!(count(3, 4).unwrap().len(), 4);
    assert_eq!(count(3, 6).unwrap().len(), 20);
    assert_eq!(count(0, 1).unwrap().len(), 1);
    assert_eq!(count(63, 64).unwrap().len(), 64);
    assert!(count(6, 20).is_err());
    assert!(count(32, 64).is_err());
    let probe = |asked| HammingBlocks::new(3, 6).unwrap().probe(bits, asked);
    assert_eq!(probe(0).unwrap().len(), 1);
    assert_eq!(probe(1).unwrap().len(), 4);
    assert_eq!(probe(2).unwrap().len(), 10);
    assert_eq!(probe(3).unwrap(), count(3, 6).unwrap());
    assert!(probe(4).is_err());
    assert!(probe(-1).is_err());
    for (distance, blocks) in [(3, 3), (-1, 4), (0, 0), (0, 65), (i64::MIN, i64::MAX)] {
        assert!(
            HammingBlocks::new(distance, blocks).is_err(),
            "{distance} in {blocks}"
        );
    }
}

#[test]
fn bit_strings_of_different_length_share_no_key() {
    let blocks = HammingBlocks::new(3, 6).unwrap();
    let zeros = bits![u8, Msb0; 0; 128];
    let keys: HashSet<i64> = (0..=128)
        .flat_map(|n| blocks.keys(&zeros[..n]).unwrap())
        .collect();
    assert_eq!(keys.len(), 129 * 20);
}
