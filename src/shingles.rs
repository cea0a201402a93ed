//! Shingle sets, and exact measures on them.

use crate::datum::Text;
use crate::error::check_interrupts;
use crate::options;
use neardup::set;
use neardup::shingle::{self, Key};
use pgrx::prelude::*;

/// The distinct shingles of a document, in order of first appearance.
#[pg_extern(immutable, parallel_safe, strict)]
fn shingles(
    doc: Text<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
) -> Vec<String> {
    let shingling = options::shingling(k, &unit, &fold);
    shingle::shingles(&doc, &shingling, &mut check_interrupts)
}

/// The distinct 64-bit hashes of a document's shingles, sorted.
#[pg_extern(immutable, parallel_safe, strict)]
fn shingle_hashes(
    doc: Text<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    seed: default!(i64, 0),
) -> Vec<i64> {
    let shingling = options::shingling(k, &unit, &fold);
    let key = Key::from_seed(seed);
    shingle::shingle_hashes(&doc, &shingling, &key, &mut check_interrupts)
}

/// Jaccard similarity of two sets: |a and b| / |a or b|; 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict)]
fn jaccard(a: Array<'_, i64>, b: Array<'_, i64>) -> f64 {
    set::jaccard(&hash_set(a), &hash_set(b), &mut check_interrupts)
}

/// Share of a that is in b: |a and b| / |a|; 0 if one of them is empty.
#[pg_extern(immutable, parallel_safe, strict)]
fn containment(a: Array<'_, i64>, b: Array<'_, i64>) -> f64 {
    set::containment(&hash_set(a), &hash_set(b), &mut check_interrupts)
}

fn hash_set(elements: Array<'_, i64>) -> Vec<i64> {
    let mut set: Vec<i64> = elements.iter().flatten().collect();
    set::sort_distinct(&mut set, &mut check_interrupts);
    set
}

/// The exact Jaccard similarity of two documents' shingle sets.
#[pg_extern(immutable, parallel_safe, strict)]
fn resemblance(
    a: Text<'_>,
    b: Text<'_>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
) -> f64 {
    let shingling = options::shingling(k, &unit, &fold);
    let key = Key::from_seed(0);
    let hashes =
        |doc: &Text<'_>| shingle::shingle_hashes(doc, &shingling, &key, &mut check_interrupts);
    set::jaccard(&hashes(&a), &hashes(&b), &mut check_interrupts)
}

pgrx::extension_sql_file!(
    "../sql/shingles.sql",
    name = "shingles",
    requires = [shingles, shingle_hashes, jaccard, containment, resemblance]
);
