//! Signatures of sets of texts or numbers, and of the lexemes of a tsvector.

use crate::minhash::datum::NewSignature;
use crate::options;
use crate::pg::arrays::texts;
use crate::pg::prelude::*;
use crate::pg::tsvector::TsVector;
use neardup::minhash::{Header, SignatureUnit, Sketch};
use neardup::shingle::{BLOCK, Key, MAX_K, sequence_hashes};
use pgrx::prelude::*;

/// Returns the signature of a set of texts. Ignores NULLs.
///
/// # Errors
/// `invalid_parameter_value` for slots outside 1 to 1024.
#[pg_extern(immutable, parallel_safe, strict, cost = 15000, name = "minhash")]
fn minhash_set_of_texts(
    elements: Array<'_, Text<'_>>,
    slots: default!(i32, 128),
    seed: default!(i64, 0),
) -> NewSignature {
    let key = Key::from_seed(seed);
    let hashes = texts(&elements).map(|element| key.element_hash(&element));
    let slots = options::slots(slots);
    NewSignature(signature_of_set(hashes, slots, &key, &mut check_interrupts).or_raise())
}

/// Returns the signature of a set of numbers. Ignores NULLs.
///
/// # Errors
/// `invalid_parameter_value` for slots outside 1 to 1024.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "minhash")]
fn minhash_set(
    elements: Array<'_, i64>,
    slots: default!(i32, 128),
    seed: default!(i64, 0),
) -> NewSignature {
    let key = Key::from_seed(seed);
    let hash = |element: i64| key.element_hash(&element.to_le_bytes());
    let hashes = elements.iter().flatten().map(hash);
    let slots = options::slots(slots);
    NewSignature(signature_of_set(hashes, slots, &key, &mut check_interrupts).or_raise())
}

/// Returns the stored signature of a set, given the hashes of its elements.
///
/// # Errors
/// `OutOfMemory`.
pub fn signature_of_set(
    hashes: impl Iterator<Item = u64>,
    slots: usize,
    key: &Key,
    check: &mut dyn FnMut(),
) -> Result<Vec<u8>> {
    let mut hashes = hashes.peekable();
    let mut sketch = Sketch::new(slots);
    let mut block = Vec::new();
    while hashes.peek().is_some() {
        check();
        block.clear();
        block.try_extend(hashes.by_ref().take(BLOCK))?;
        sketch.add(&block);
    }
    Ok(sketch.encode(Header::of_set(SignatureUnit::Set, 1, slots, key.id())))
}

/// Returns the signature of a document's lexemes, which reflect the stemming, stop words and dictionaries of its text
/// search configuration. The signature's set holds all sequences of `k` lexemes by position. Lexemes at one position
/// are ordered by name, and gaps are ignored.
///
/// # Errors
/// `invalid_parameter_value` for k outside 1 to 256, slots outside 1 to 1024, and with k > 1 for a
/// tsvector that lacks positions.
#[pg_extern(immutable, parallel_safe, strict, cost = 3000, name = "minhash")]
fn minhash_lexemes(
    doc: TsVector<'_>,
    k: default!(i32, 3),
    slots: default!(i32, 128),
    seed: default!(i64, 0),
) -> NewSignature {
    let k = options::within("k", k, 1, MAX_K as i32) as usize;
    let key = Key::from_seed(seed);
    let lexemes = if k == 1 {
        doc.lexemes()
    } else {
        doc.sequence()
    };
    let tokens = collected(lexemes.iter().map(|lexeme| key.token_hash(lexeme))).or_raise();
    let mut sketch = Sketch::new(options::slots(slots));
    sketch.add(&sequence_hashes(&tokens, k).or_raise());
    let header = Header::of_set(SignatureUnit::Lexeme, k, sketch.slots().len(), key.id());
    NewSignature(sketch.encode(header))
}
