//! The functions that make balls, and those behind their operators. A ball of documents contains the center's set of
//! shingle hashes, so rows are compared exactly, and the center is cut into shingles only once.

use crate::index::ball::{Ball, EVERYTHING, NewBall, Within};
use crate::minhash::datum::StoredSignature;
use crate::minhash::incomparable::never_near;
use crate::options;
use crate::pg::arrays::Bigints;
use crate::pg::bits::Bits;
use crate::pg::memo::{Document, Remembered, remembered};
use crate::pg::prelude::*;
use crate::text::measures::{is_contained, is_resembling, shingle_set};
use neardup::minhash::{least_similarity, near_duplicates};
use pgrx::prelude::*;

/// Returns the ball of all signatures whose `minhash_sim` with `m` is at least `threshold`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_ball")]
fn minhash_ball(m: StoredSignature<'_>, threshold: f64) -> NewBall {
    m.read();
    NewBall::of_signature(m.bytes(), options::threshold(threshold))
}

/// Returns the ball of all signatures whose `minhash_sim` with `m` is at least `bound` or, if `is_distance`, whose
/// `minhash_distance` from `m` is at most `bound`. If every similarity is within `bound`, the ball contains all
/// signatures, comparable or not. If none is, returns NULL, which contains no signature.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_ball")]
fn minhash_ball_of_any(m: StoredSignature<'_>, bound: f64, is_distance: bool) -> Option<NewBall> {
    m.read();
    let threshold = match is_distance {
        true => (bound >= 0.0 || bound.is_nan())
            .then(|| least_similarity(bound).unwrap_or(EVERYTHING))?,
        // SQL sorts NaN above all other numbers.
        false => (bound <= 1.0).then_some(bound.max(EVERYTHING))?,
    };
    Some(NewBall::of_signature(m.bytes(), threshold))
}

/// Returns the ball of all bit strings of the center's length that differ from it in at most `distance` bits.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, name = "_ball")]
fn bit_ball(center: Bits<'_>, distance: i32) -> NewBall {
    NewBall::of_bits(center.bytes(), center.len(), options::distance(distance))
}

/// Returns [`bit_ball`], or NULL for a negative `bound`. The last argument only distinguishes the two signatures.
#[pg_extern(immutable, parallel_safe, strict, name = "_ball")]
fn bit_ball_of_any(center: Bits<'_>, bound: i32, _is_distance: bool) -> Option<NewBall> {
    let distance = bound.try_into().ok()?;
    Some(NewBall::of_bits(center.bytes(), center.len(), distance))
}

/// Returns the ball of a set and a threshold. The operator decides whether the threshold is for the share of the center
/// in other sets, for the share of other sets in the center, or for the Jaccard similarity.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 100, name = "_ball")]
fn set_ball(elements: Bigints<'_>, threshold: f64) -> NewBall {
    NewBall::of_set(&elements.set(), options::threshold(threshold))
}

/// Returns whether the signature is in the ball. Returns false if the signature is empty or was made with other
/// parameters, unless the ball's threshold is [`EVERYTHING`], and for a ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_within")]
pub fn minhash_in_ball(m: StoredSignature<'_>, ball: Ball<'_>) -> bool {
    let Within::Signature(center, threshold) = ball.read() else {
        return false;
    };
    threshold == EVERYTHING
        || near_duplicates(&m.read(), &center, threshold)
            .unwrap_or_else(|| never_near(&m.read().header, &center.header))
}

/// Returns whether the bit string is in the ball. Returns false if its length differs from the center's, and for a ball
/// of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_within")]
pub fn bit_in_ball(b: Bits<'_>, ball: Ball<'_>) -> bool {
    let Within::Bits(center, distance) = ball.read() else {
        return false;
    };
    b.len() == center.len && neardup::hamming::distance(b.bytes(), center.bytes) <= distance
}

/// Returns whether the array contains the ball's share of the center. Returns false for a ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_contains")]
pub fn set_contains(whole: Bigints<'_>, part: Ball<'_>) -> bool {
    matches!(part.read(), Within::Set(part, share) if is_contained(&part, &whole.set(), share))
}

/// Returns whether the center contains the ball's share of the array. Returns false for a ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_within")]
pub fn set_contained(part: Bigints<'_>, whole: Ball<'_>) -> bool {
    matches!(whole.read(), Within::Set(whole, share) if is_contained(&part.set(), &whole, share))
}

/// Returns whether the Jaccard similarity of the array and the center is at least the ball's share. Returns false for a
/// ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_near")]
pub fn set_resembles(a: Bigints<'_>, b: Ball<'_>) -> bool {
    matches!(b.read(), Within::Set(b, share) if is_resembling(&a.set(), &b, share))
}

/// Returns the ball of a document and a threshold. The operator decides whether the threshold is for the resemblance,
/// for the share of the center in other documents, or for the share of other documents in the center.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1, and for an invalid `k`, `unit` or `fold`.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_ball")]
fn document_ball(
    center: Document<'_>,
    threshold: f64,
    k: i32,
    unit: Text<'_>,
    fold: Text<'_>,
    call: Call,
) -> Remembered<NewBall> {
    let shingling = options::shingling(k, &unit, &fold);
    let options = (shingling, options::threshold(threshold));
    remembered(call, &center, options, |doc, (shingling, threshold)| {
        Some(NewBall::of_document(doc, *threshold, shingling))
    })
}

/// Returns whether the document is in the ball. Returns false if the document is empty, and for a ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_within")]
pub fn document_in_ball(doc: Text<'_>, ball: Ball<'_>) -> bool {
    compare(&doc, &ball, is_resembling)
}

/// Returns whether the document contains the ball's share of the center. Returns false for a ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_contains")]
pub fn document_contains(whole: Text<'_>, part: Ball<'_>) -> bool {
    compare(&whole, &part, |whole, part, share| {
        is_contained(part, whole, share)
    })
}

/// Returns whether the center contains the ball's share of the document. Returns false for a ball of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_part")]
pub fn document_contained(part: Text<'_>, whole: Ball<'_>) -> bool {
    compare(&part, &whole, is_contained)
}

/// Returns whether `is_near` accepts the shingle sets of `doc` and of the ball's center, with the ball's threshold.
/// Returns false for a ball of another kind.
fn compare(doc: &[u8], ball: &Ball<'_>, is_near: fn(&[i64], &[i64], f64) -> bool) -> bool {
    let Within::Document(center) = ball.read() else {
        return false;
    };
    let set = shingle_set(doc, &center.shingling);
    is_near(&set, &center.set, center.threshold)
}

pgrx::extension_sql_file!(
    "../../sql/index/ball.sql",
    name = "ball",
    requires = [
        "signature",
        "ball_type",
        near_dup_ballsel,
        near_dup_balljoinsel,
        minhash_in_ball,
        bit_in_ball,
        set_contains,
        set_contained,
        set_resembles,
        document_in_ball,
        document_contains,
        document_contained
    ]
);
