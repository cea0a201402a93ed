//! Balls of documents: every document that resembles a center. They hold the center's set of shingle
//! hashes, so that a row is decided by the truth and the center is cut into shingles once.

use crate::index::ball::{Ball, NewBall, Within};
use crate::options;
use crate::pg::memo::{Document, Remembered, remembered};
use crate::pg::text::Text;
use crate::text::measures::{is_resembling, shingle_set};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Returns every document whose resemblance to the center is at least `threshold`.
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
    fcinfo: pg_sys::FunctionCallInfo,
) -> Remembered<NewBall> {
    let shingling = options::shingling(k, &unit, &fold);
    let threshold = options::threshold(threshold);
    // SAFETY: the call is running.
    unsafe {
        remembered(
            fcinfo,
            &center,
            (shingling, threshold),
            |doc, (shingling, threshold)| Some(NewBall::of_document(doc, *threshold, shingling)),
        )
    }
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

pgrx::extension_sql_file!(
    "../../sql/index/document_ball.sql",
    name = "document_ball",
    requires = ["ball", document_in_ball, document_ball_contains]
);
