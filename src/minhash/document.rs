//! MinHash signatures of documents.

use crate::minhash::datum::NewSignature;
use crate::options;
use crate::pg::memo::{Document, Remembered, memory, remembered};
use crate::pg::prelude::*;
use neardup::minhash::{Header, Sketch};
use neardup::shingle::{Key, for_each_block};
use pgrx::prelude::*;
use std::collections::HashSet;

/// Returns the MinHash signature of a document: O(n + slots log slots) for n shingles.
///
/// # Errors
/// `invalid_parameter_value` for k outside 1 to 256, an unknown unit or fold, slots outside 1 to
/// 1024.
#[pg_extern(immutable, parallel_safe, strict, cost = 500)]
fn minhash(
    doc: Document<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    slots: default!(i32, 128),
    seed: default!(i64, 0),
    call: Call,
) -> Remembered<NewSignature> {
    let signing = options::signing(k, &unit, &fold, slots, seed);
    remembered(call, &doc, signing, |doc, signing| {
        let signature = signing.sign(doc, &mut check_interrupts);
        Some(NewSignature(signature.or_raise()))
    })
}

/// Returns the signature of a document without the shingles in `boilerplate`, comparable with the signatures of
/// [`minhash`]. A document that is all boilerplate counts as empty.
///
/// # Errors
/// The errors of [`minhash`].
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "minhash")]
#[allow(clippy::too_many_arguments)]
fn minhash_excluding(
    doc: Text<'_>,
    boilerplate: Array<'_, i64>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    slots: default!(i32, 128),
    seed: default!(i64, 0),
    call: Call,
) -> NewSignature {
    let shingling = options::shingling(k, &unit, &fold);
    let mut sketch = Sketch::new(options::slots(slots));
    let key = Key::from_seed(seed);
    with_set(&boilerplate, call, |excluded| {
        let mut kept = Vec::new();
        for_each_block(&doc, &shingling, &key, &mut |hashes| {
            check_interrupts();
            kept.clear();
            let others = hashes.iter().filter(|hash| !excluded.contains(*hash));
            kept.try_extend(others.copied())?;
            sketch.add(&kept);
            Ok(())
        })
        .or_raise();
    });
    let header = Header::of_document(&shingling, sketch.slots().len(), key.id());
    NewSignature(sketch.encode(header))
}

/// The hashes that the last call excluded.
#[derive(Default)]
struct Excluded {
    elements: Vec<i64>,
    set: HashSet<u64>,
}

/// Calls `then` with the set of `elements`. Keeps the set for the next call, which usually has the same elements.
#[allow(clippy::disallowed_methods, reason = "reserved in advance")]
fn with_set(elements: &Array<'_, i64>, mut call: Call, then: impl FnOnce(&HashSet<u64>)) {
    let present: Vec<i64>;
    let elements = match elements.as_slice() {
        Ok(elements) => elements,
        Err(_) => {
            present = collected(elements.iter().flatten()).or_raise();
            &present
        }
    };
    let last = memory::<Excluded>(&mut call);
    if last.elements != elements {
        // Cleared together, so that both agree even after an error.
        last.set.clear();
        last.elements.clear();
        last.set.try_reserve(elements.len()).or_raise();
        last.elements.try_reserve_exact(elements.len()).or_raise();
        last.set.extend(elements.iter().map(|&hash| hash as u64));
        last.elements.extend_from_slice(elements);
    }
    then(&last.set);
}
