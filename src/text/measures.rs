//! Exact measures of sets and of documents.

use crate::options;
use crate::pg::arrays::{Bigints, text_set, texts};
use crate::pg::memo::{Document, Memo, kept_bytes, memory};
use crate::pg::prelude::*;
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use pgrx::prelude::*;

/// Returns the Jaccard similarity of two sets, |a and b| / |a or b|, or 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, support = near_dup_support)]
pub fn jaccard(a: Bigints<'_>, b: Bigints<'_>) -> f64 {
    set::jaccard(&a.set(), &b.set(), &mut check_interrupts)
}

/// Returns the Jaccard similarity of two sets of texts, or 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict, cost = 40000, name = "jaccard")]
fn jaccard_of_texts(a: Array<'_, Text<'_>>, b: Array<'_, Text<'_>>) -> f64 {
    of_texts(a, b, |a, b| set::jaccard(a, b, &mut check_interrupts))
}

/// Returns the `measure` of two sets of texts.
fn of_texts(
    a: Array<'_, Text<'_>>,
    b: Array<'_, Text<'_>>,
    measure: impl FnOnce(&[&[u8]], &[&[u8]]) -> f64,
) -> f64 {
    let [a, b] = [collected(texts(&a)), collected(texts(&b))].map(OrRaise::or_raise);
    measure(&text_set(&a), &text_set(&b))
}

/// Returns the share of `a` that is in `b`, |a and b| / |a|, or 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, support = near_dup_support)]
pub fn containment(a: Bigints<'_>, b: Bigints<'_>) -> f64 {
    set::containment(&a.set(), &b.set(), &mut check_interrupts)
}

/// Returns the share of `a` that is in `b`, two sets of texts, or 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict, cost = 40000, name = "containment")]
fn containment_of_texts(a: Array<'_, Text<'_>>, b: Array<'_, Text<'_>>) -> f64 {
    of_texts(a, b, |a, b| set::containment(a, b, &mut check_interrupts))
}

/// Returns whether `containment(part, whole) >= threshold`. False for an empty part.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, support = near_dup_support)]
pub fn near_contained(part: Bigints<'_>, whole: Bigints<'_>, threshold: f64) -> bool {
    let threshold = options::threshold(threshold);
    is_contained(&part.set(), &whole.set(), threshold)
}

/// Returns whether `jaccard(a, b) >= threshold`. False for an empty set.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, support = near_dup_support, name = "near_dup")]
pub fn near_dup_of_sets(a: Bigints<'_>, b: Bigints<'_>, threshold: default!(f64, 0.8)) -> bool {
    let threshold = options::threshold(threshold);
    is_resembling(&a.set(), &b.set(), threshold)
}

/// Returns whether the Jaccard similarity of two sets is at least `threshold`, which is above 0.
pub fn is_resembling(a: &[i64], b: &[i64], threshold: f64) -> bool {
    set::jaccard_at_least(a, b, threshold, &mut check_interrupts).is_some()
}

/// Returns whether at least the share `threshold` of `part` is in `whole`.
pub fn is_contained(part: &[i64], whole: &[i64], threshold: f64) -> bool {
    set::containment_at_least(part, whole, threshold, &mut check_interrupts).is_some()
}

/// Returns the exact Jaccard similarity of two documents' shingle sets, or 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict, cost = 2000, support = near_dup_support)]
pub fn resemblance(
    a: Document<'_>,
    b: Document<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    call: Call,
) -> f64 {
    let [a, b] = shingle_sets([a, b], (k, unit, fold), call);
    set::jaccard(&a, &b, &mut check_interrupts)
}

/// Returns whether `resemblance(a, b, k, unit, fold) >= threshold`. False for an empty document.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1, and for an invalid k, unit or fold.
#[pg_extern(immutable, parallel_safe, strict, cost = 2000, name = "near_dup", support = near_dup_support)]
#[allow(clippy::too_many_arguments)]
pub fn near_dup_documents(
    a: Document<'_>,
    b: Document<'_>,
    threshold: default!(f64, 0.8),
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    call: Call,
) -> bool {
    let threshold = options::threshold(threshold);
    let [a, b] = shingle_sets([a, b], (k, unit, fold), call);
    is_resembling(&a, &b, threshold)
}

/// Returns the exact share of the shingles of `a` that are in `b`, or 0 if one of the documents is empty.
#[pg_extern(immutable, parallel_safe, strict, cost = 2000, name = "containment", support = near_dup_support)]
pub fn containment_of_documents(
    a: Document<'_>,
    b: Document<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    call: Call,
) -> f64 {
    let [a, b] = shingle_sets([a, b], (k, unit, fold), call);
    set::containment(&a, &b, &mut check_interrupts)
}

/// Returns whether `containment(part, whole, k, unit, fold) >= threshold`. False for an empty part.
///
/// # Errors
/// The errors of [`near_dup_documents`].
#[pg_extern(immutable, parallel_safe, strict, cost = 2000, name = "near_contained", support = near_dup_support)]
#[allow(clippy::too_many_arguments)]
pub fn near_contained_documents(
    part: Document<'_>,
    whole: Document<'_>,
    threshold: default!(f64, 0.8),
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    call: Call,
) -> bool {
    let threshold = options::threshold(threshold);
    let [part, whole] = shingle_sets([part, whole], (k, unit, fold), call);
    is_contained(&part, &whole, threshold)
}

/// Returns the shingle sets of two documents. Keeps the set of a document that comes twice in a row.
fn shingle_sets(
    docs: [Document<'_>; 2],
    (k, unit, fold): (i32, Text<'_>, Text<'_>),
    mut call: Call,
) -> [Vec<i64>; 2] {
    let shingling = options::shingling(k, &unit, &fold);
    let mut memos = memory::<[Memo<Shingling, Vec<i64>>; 2]>(&mut call).iter_mut();
    docs.map(|doc| {
        let memo = memos.next().expect("there are as many");
        memo.get(
            &doc,
            shingling,
            |doc, shingling| shingle_set(doc, shingling),
            |set, most_bytes| kept_bytes(set, most_bytes),
            |kept| copied(kept).or_raise(),
        )
    })
}

/// Returns the sorted hashes of a document's shingles, which all exact measures of documents compare.
pub fn shingle_set(doc: &[u8], shingling: &Shingling) -> Vec<i64> {
    shingle_hashes(doc, shingling, &Key::from_seed(0), &mut check_interrupts).or_raise()
}
