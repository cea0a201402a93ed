//! MinHash signatures of documents, and the similarity that they estimate.

use crate::datum::{NewSignature, StoredSignature, Text};
use crate::error::{OrRaise, check_interrupts};
use crate::options;
use neardup::minhash::{Header, Sketch, estimate_stored};
use neardup::shingle::{Key, for_each_block};
use pgrx::JsonB;
use pgrx::prelude::*;
use serde::Serialize;

/// The MinHash signature of a document: O(n + slots log slots) for n shingles.
///
/// # Errors
/// `invalid_parameter_value` for k outside 1 to 256, an unknown unit or fold, slots outside 1 to
/// 1024.
#[pg_extern(immutable, parallel_safe, strict, cost = 500)]
fn minhash(
    doc: Text<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    slots: default!(i32, 128),
    seed: default!(i64, 0),
) -> NewSignature {
    let shingling = options::shingling(k, &unit, &fold);
    let mut sketch = Sketch::new(options::slots(slots));
    let key = Key::from_seed(seed);
    for_each_block(&doc, &shingling, &key, &mut |hashes| {
        check_interrupts();
        sketch.add(hashes);
    });
    let header = Header::of_document(&shingling, sketch.slots().len(), key.id());
    NewSignature(sketch.encode(header))
}

/// The estimated Jaccard similarity of two documents, 0 to 1; 0 if one of them is empty.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters.
#[inline]
pub fn minhash_sim(a: StoredSignature<'_>, b: StoredSignature<'_>) -> f64 {
    estimate_stored(a.bytes(), b.bytes()).or_raise()
}

/// 1 - `minhash_sim`.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, support = minhash_sim_support)]
pub fn minhash_distance(a: StoredSignature<'_>, b: StoredSignature<'_>) -> f64 {
    1.0 - minhash_sim(a, b)
}

/// What `minhash_describe` says of a signature.
#[derive(Serialize)]
struct Description {
    version: u8,
    unit: String,
    k: u16,
    fold: String,
    slots: u16,
    slot_bits: u8,
    seed_id: String,
    empty: bool,
    bytes: usize,
}

/// The parameters behind a signature, as JSON.
#[pg_extern(immutable, parallel_safe, strict, cost = 500)]
fn minhash_describe(m: StoredSignature<'_>) -> JsonB {
    let header = m.read().header;
    let description = Description {
        version: neardup::minhash::signature::VERSION,
        unit: header.unit.to_string(),
        k: header.k,
        fold: header.fold.to_string(),
        slots: header.slots,
        slot_bits: header.slot_bits,
        seed_id: format!("{:016x}", header.seed_id),
        empty: header.empty,
        bytes: m.bytes().len(),
    };
    JsonB(serde_json::to_value(description).expect("a description is plain data"))
}

pgrx::extension_sql_file!(
    "../sql/minhash.sql",
    name = "minhash",
    requires = [
        "signature",
        minhash,
        minhash_sim_support,
        minhash_distance,
        minhash_describe
    ]
);
