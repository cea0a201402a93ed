//! MinHash signatures of documents, and the similarity that they estimate.

use crate::options;
use crate::pg::datum::{NewSignature, StoredSignature, Text};
use crate::pg::error::check_interrupts;
use neardup::minhash::{Header, Sketch};
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
    "../../sql/minhash/document.sql",
    name = "minhash",
    requires = ["signature", minhash, minhash_describe]
);
