//! Balls: the functions that make them, and behind their operators. A ball of documents holds the center's set of
//! shingle hashes, so that a row is decided by the truth and the center is cut into shingles once.

use crate::index::ball::{Ball, EVERYTHING, NewBall, Within};
use crate::minhash::datum::StoredSignature;
use crate::minhash::incomparable::never_near;
use crate::options;
use crate::pg::arrays::Bigints;
use crate::pg::bits::Bits;
use crate::pg::call::Call;
use crate::pg::memo::{Document, Remembered, remembered};
use crate::pg::text::Text;
use crate::text::measures::{is_contained, is_resembling, shingle_set};
use neardup::minhash::{least_similarity, near_duplicates};
use pgrx::prelude::*;

/// Returns every signature whose `minhash_sim` to the center is at least `threshold`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_ball")]
fn minhash_ball(m: StoredSignature<'_>, threshold: f64) -> NewBall {
    m.read();
    NewBall::of_signature(m.bytes(), options::threshold(threshold))
}

/// Returns every signature whose `minhash_sim` to the center is at least `bound`, or whose
/// `minhash_distance` from it is at most `bound`, or more: all where all have such a similarity; NULL,
/// which no signature is in, where none has.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_ball")]
fn minhash_ball_of_any(m: StoredSignature<'_>, bound: f64, is_distance: bool) -> Option<NewBall> {
    m.read();
    let threshold = match is_distance {
        true => (bound >= 0.0 || bound.is_nan())
            .then(|| least_similarity(bound).unwrap_or(EVERYTHING))?,
        // As numbers are compared in SQL, NaN is above all others.
        false => (bound <= 1.0).then_some(bound.max(EVERYTHING))?,
    };
    Some(NewBall::of_signature(m.bytes(), threshold))
}

/// Returns every bit string of the center's length that differs from it in at most `distance` bits.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, name = "_ball")]
fn bit_ball(center: Bits<'_>, distance: i32) -> NewBall {
    NewBall::of_bits(center.bytes(), center.len(), options::distance(distance))
}

/// Returns [`bit_ball`], or NULL for a negative distance. The last argument tells the two apart.
#[pg_extern(immutable, parallel_safe, strict, name = "_ball")]
fn bit_ball_of_any(center: Bits<'_>, bound: i32, _is_distance: bool) -> Option<NewBall> {
    let distance = bound.try_into().ok()?;
    Some(NewBall::of_bits(center.bytes(), center.len(), distance))
}

/// Returns a set, and the share of it, of another, or of both together that they have to share.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 100, name = "_ball")]
fn set_ball(elements: Bigints<'_>, threshold: f64) -> NewBall {
    NewBall::of_set(&elements.set(), options::threshold(threshold))
}

/// Returns whether the signature is in the ball; not if it is empty or was made with other
/// parameters, nor in one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_within")]
pub fn minhash_in_ball(m: StoredSignature<'_>, ball: Ball<'_>) -> bool {
    let Within::Signature(center, threshold) = ball.read() else {
        return false;
    };
    threshold == EVERYTHING
        || near_duplicates(&m.read(), &center, threshold)
            .unwrap_or_else(|| never_near(&m.read().header, &center.header))
}

/// Does [`minhash_in_ball`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_contains")]
pub fn minhash_ball_contains(ball: Ball<'_>, m: StoredSignature<'_>) -> bool {
    minhash_in_ball(m, ball)
}

/// Returns whether the bit string is in the ball; not if its length differs from the center's, nor in
/// one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_within")]
pub fn bit_in_ball(b: Bits<'_>, ball: Ball<'_>) -> bool {
    let Within::Bits(center, distance) = ball.read() else {
        return false;
    };
    b.len() == center.len && neardup::hamming::distance(b.bytes(), center.bytes) <= distance
}

/// Does [`bit_in_ball`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_contains")]
pub fn bit_ball_contains(ball: Ball<'_>, b: Bits<'_>) -> bool {
    bit_in_ball(b, ball)
}

/// Returns whether the array contains the share of the center; not of one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_contains")]
pub fn set_contains(whole: Bigints<'_>, part: Ball<'_>) -> bool {
    matches!(part.read(), Within::Set(part, share) if is_contained(&part, &whole.set(), share))
}

/// Returns whether the center contains the share of the array's elements; not one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_within")]
pub fn set_contained(part: Bigints<'_>, whole: Ball<'_>) -> bool {
    matches!(whole.read(), Within::Set(whole, share) if is_contained(&part.set(), &whole, share))
}

/// Returns whether the Jaccard similarity of the array and the center reaches the share; not of one of
/// another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_near")]
pub fn set_resembles(a: Bigints<'_>, b: Ball<'_>) -> bool {
    matches!(b.read(), Within::Set(b, share) if is_resembling(&a.set(), &b, share))
}

/// Does [`set_contains`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_within")]
pub fn set_ball_contained(part: Ball<'_>, whole: Bigints<'_>) -> bool {
    set_contains(whole, part)
}

/// Does [`set_contained`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_contains")]
pub fn set_ball_contains(whole: Ball<'_>, part: Bigints<'_>) -> bool {
    set_contained(part, whole)
}

/// Does [`set_resembles`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_near")]
pub fn set_ball_resembles(b: Ball<'_>, a: Bigints<'_>) -> bool {
    set_resembles(a, b)
}

/// Returns a document, and the resemblance that others have with it, or the share that one has of the other.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1, and for bad shingles.
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
    let threshold = options::threshold(threshold);
    remembered(
        call,
        &center,
        (shingling, threshold),
        |doc, (shingling, threshold)| Some(NewBall::of_document(doc, *threshold, shingling)),
    )
}

/// Returns whether the document is in the ball; not if it is empty, nor in one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_within")]
pub fn document_in_ball(doc: Text<'_>, ball: Ball<'_>) -> bool {
    let Within::Document(center) = ball.read() else {
        return false;
    };
    let set = shingle_set(&doc, &center.shingling);
    is_resembling(&set, &center.set, center.threshold)
}

/// Does [`document_in_ball`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_contains")]
pub fn document_ball_contains(ball: Ball<'_>, doc: Text<'_>) -> bool {
    document_in_ball(doc, ball)
}

/// Returns whether the document contains the share of the center; not of one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_contains")]
pub fn document_contains(whole: Text<'_>, part: Ball<'_>) -> bool {
    let Within::Document(part) = part.read() else {
        return false;
    };
    let whole = shingle_set(&whole, &part.shingling);
    is_contained(&part.set, &whole, part.threshold)
}

/// Does [`document_contains`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_within")]
pub fn document_ball_contained(part: Ball<'_>, whole: Text<'_>) -> bool {
    document_contains(whole, part)
}

/// Returns whether the center contains the share of the document; not one of another kind.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_part")]
pub fn document_contained(part: Text<'_>, whole: Ball<'_>) -> bool {
    let Within::Document(whole) = whole.read() else {
        return false;
    };
    let part = shingle_set(&part, &whole.shingling);
    is_contained(&part, &whole.set, whole.threshold)
}

/// Does [`document_contained`] with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000, name = "_whole")]
pub fn document_ball_has(whole: Ball<'_>, part: Text<'_>) -> bool {
    document_contained(part, whole)
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
        minhash_ball_contains,
        bit_in_ball,
        bit_ball_contains,
        set_contains,
        set_contained,
        set_ball_contained,
        set_ball_contains,
        set_resembles,
        set_ball_resembles,
        document_in_ball,
        document_ball_contains,
        document_contains,
        document_ball_contained,
        document_contained,
        document_ball_has
    ]
);
