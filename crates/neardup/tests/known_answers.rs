//! Tests that stored signatures stay valid: `known_answers.tsv` holds the results of scheme 1 for texts.
//!
//! Columns: text, unit, k, fold, slots, seed, answer. Text `words 1000` stands for the words w1 to w1000, `chars 1000`
//! for 1000 consecutive code points starting at U+4E00, and `empty` for the empty text. The answer is the text form of
//! the signature, or, for many slots, the SipHash-1-3 of its bytes with the key of seed 0. For unit `set`, the elements
//! are the text's words; for `number`, the numbers up to the one in `words 1000`; for `lexeme`, the lexemes are the
//! words.

use neardup::hash::Key;
use neardup::kernels::{active, available};
use neardup::minhash::{Header, Signature, SignatureUnit, Sketch};
use neardup::shingle::{Shingling, for_each_block, sequence_hashes};
use neardup::text::Fold;

const VECTORS: &str = include_str!("known_answers.tsv");

/// Answers with more slots are digests.
const MOST_SLOTS_IN_FULL: usize = 16;

fn text(column: &str) -> String {
    let numbered = |prefix: &str| column.strip_prefix(prefix)?.parse::<u32>().ok();
    if let Some(count) = numbered("words ") {
        let words: Vec<String> = (1..=count).map(|i| format!("w{i}")).collect();
        return words.join(" ");
    }
    if let Some(count) = numbered("chars ") {
        let chars = (0..count).map(|i| char::from_u32(0x4E00 + i % 20_000));
        return chars.map(|c| c.expect("a Han character")).collect();
    }
    match column {
        "empty" => String::new(),
        text => text.to_owned(),
    }
}

/// Returns the shingle hashes of a document, or the hashes of the elements of a set.
fn hashes(text: &str, unit: &str, k: usize, fold: &str, key: &Key) -> Vec<u64> {
    let words = || text.split_whitespace();
    match unit {
        "set" => words().map(|w| key.element_hash(w.as_bytes())).collect(),
        "number" => (1..=words().count() as i64)
            .map(|i| key.element_hash(&i.to_le_bytes()))
            .collect(),
        "lexeme" => {
            let tokens: Vec<u64> = words().map(|w| key.token_hash(w.as_bytes())).collect();
            sequence_hashes(&tokens, k).unwrap()
        }
        _ => {
            let (unit, fold) = (unit.parse().expect("a unit"), fold.parse().expect("a fold"));
            let shingling = Shingling::new(k as i64, unit, fold).expect("valid");
            let mut hashes = Vec::new();
            for_each_block(text.as_bytes(), &shingling, key, &mut |block| {
                hashes.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
            hashes
        }
    }
}

fn unit_code(unit: &str) -> SignatureUnit {
    match unit {
        "word" => SignatureUnit::Word,
        "char" => SignatureUnit::Char,
        "stop" => SignatureUnit::Stop,
        "set" | "number" => SignatureUnit::Set,
        _ => SignatureUnit::Lexeme,
    }
}

fn answer(columns: &[&str]) -> String {
    let &[document, unit, k, fold, slots, seed] = columns else {
        panic!("6 columns and an answer: {columns:?}");
    };
    let number = |column: &str| column.parse::<usize>().expect("a number");
    let key = Key::from_seed(seed.parse().expect("a seed"));
    let hashes = hashes(&text(document), unit, number(k), fold, &key);
    let header = Header {
        unit: unit_code(unit),
        k: number(k) as u16,
        slots: number(slots) as u16,
        slot_bits: 32,
        fold: fold.parse().unwrap_or(Fold::None),
        empty: false,
        seed_id: key.id(),
    };
    let mut sketch = Sketch::new(number(slots));
    sketch.add(&hashes);
    for kernels in available() {
        let mut slots = vec![u32::MAX; number(slots)];
        kernels.sketch(&mut slots, &hashes);
        assert_eq!(slots, sketch.slots(), "{} {}", kernels.name, active().name);
    }
    let bytes = sketch.encode(header);
    if number(slots) <= MOST_SLOTS_IN_FULL {
        Signature::from_foreign_bytes(&bytes)
            .expect("valid")
            .to_string()
    } else {
        format!("{:016x}", Key::from_seed(0).token_hash(&bytes))
    }
}

#[test]
fn signatures_are_what_they_were() {
    let mut count = 0;
    for line in VECTORS.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (expected, question) = columns.split_last().expect("columns");
        assert_eq!(answer(question), *expected, "{question:?}");
        count += 1;
    }
    assert!(count >= 386, "{count} vectors");
}
