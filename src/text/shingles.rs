//! Shingle sets of documents, with their samples, sketches and fingerprints.

use crate::options;
use crate::pg::arrays::{Bigints, MAX_ARRAY_BYTES, NewBigints, NewTexts, texts};
use crate::pg::memo::{Document, Remembered, remembered};
use crate::pg::prelude::*;
use neardup::set;
use neardup::shingle::{self, Key, MAX_K, MAX_WINDOW};
use pgrx::prelude::*;

/// Returns the distinct shingles of a document, in order of first appearance.
///
/// # Errors
/// `program_limit_exceeded` if they do not fit in 1 GB.
#[pg_extern(immutable, parallel_safe, strict, cost = 30000)]
fn shingles(
    doc: Document<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    call: Call,
) -> Remembered<NewTexts> {
    let shingling = options::shingling(k, &unit, &fold);
    remembered(call, &doc, shingling, |doc, shingling| {
        let distinct = shingle::shingles(doc, shingling, MAX_ARRAY_BYTES, &mut check_interrupts);
        Some(NewTexts(distinct.or_raise()))
    })
}

/// Returns the distinct 64-bit hashes of a document's shingles, sorted.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000)]
fn shingle_hashes(
    doc: Document<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    seed: default!(i64, 0),
    call: Call,
) -> Remembered<NewBigints> {
    let options = (options::shingling(k, &unit, &fold), Key::from_seed(seed));
    remembered(call, &doc, options, |doc, (shingling, key)| {
        let hashes = shingle::shingle_hashes(doc, shingling, key, &mut check_interrupts);
        Some(NewBigints(hashes.or_raise()))
    })
}

/// Returns the distinct hashes of shingles that were made elsewhere, sorted.
#[pg_extern(immutable, parallel_safe, strict, cost = 15000, name = "shingle_hashes")]
fn shingle_hashes_of_texts(shingles: Array<'_, Text<'_>>, seed: default!(i64, 0)) -> NewBigints {
    let key = Key::from_seed(seed);
    let hash = |shingle: Text<'_>| key.element_hash(&shingle) as i64;
    let mut hashes = collected(texts(&shingles).map(hash)).or_raise();
    set::sort_distinct(&mut hashes, &mut check_interrupts);
    NewBigints(hashes)
}

/// Returns the hashes that are 0 modulo `modulus`.
///
/// # Errors
/// `invalid_parameter_value` unless `modulus` is at least 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 2000)]
fn shingle_sample(hashes: Bigints<'_>, modulus: i32) -> NewBigints {
    let modulus = options::within("modulus", modulus, 1, i32::MAX);
    let sample = set::shingle_sample(&hashes.set(), modulus, &mut check_interrupts);
    NewBigints(sample.or_raise())
}

/// Returns the smallest hash of each residue class modulo `buckets`.
///
/// # Errors
/// `invalid_parameter_value` unless `buckets` is at least 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000)]
fn bucket_sketch(hashes: Bigints<'_>, buckets: i32) -> NewBigints {
    let buckets = options::within("buckets", buckets, 1, i32::MAX);
    let minima = set::bucket_sketch(&hashes.set(), buckets, &mut check_interrupts);
    NewBigints(minima.or_raise())
}

/// Returns the hashes of all runs of `size` consecutive hashes in the sorted set.
///
/// # Errors
/// `invalid_parameter_value` for `size` outside 1 to 256.
#[pg_extern(immutable, parallel_safe, strict, cost = 500)]
fn supershingles(hashes: Bigints<'_>, size: i32) -> NewBigints {
    let size = options::within("size", size, 1, MAX_K as i32);
    let hashes = hashes.set();
    NewBigints(set::supershingles(&hashes, size as usize, &mut check_interrupts).or_raise())
}

/// Returns the fingerprints of a document's passages. Documents with a common run of at least `window` + k - 1 units
/// share one.
///
/// # Errors
/// `invalid_parameter_value` for `window` outside 1 to 65536.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000)]
fn winnow(
    doc: Document<'_>,
    k: i32,
    window: i32,
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    seed: default!(i64, 0),
    call: Call,
) -> Remembered<NewBigints> {
    let window = options::within("window", window, 1, MAX_WINDOW as i32);
    let shingling = options::shingling(k, &unit, &fold);
    let options = (shingling, Key::from_seed(seed), window as usize);
    remembered(call, &doc, options, |doc, (shingling, key, window)| {
        let fingerprints = shingle::winnow(doc, shingling, key, *window, &mut check_interrupts);
        Some(NewBigints(fingerprints.or_raise()))
    })
}
