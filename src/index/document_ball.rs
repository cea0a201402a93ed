//! Balls of documents: every document that resembles a center. They hold the center's set of shingle
//! hashes, so that a row is decided by the truth and the center is cut into shingles once.

use crate::index::ball::{Ball, NewBall, OF_DOCUMENT, Within, read_elements};
use crate::options;
use crate::pg::memo::{Document, Remembered, remembered};
use crate::pg::text::Text;
use crate::text::measures::{is_resembling, shingle_set};
use neardup::shingle::Shingling;
use neardup::text::{Fold, Unit};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The documents of a ball: those whose resemblance to a document with this set reaches the threshold.
pub struct Resembling {
    pub threshold: f64,
    pub shingling: Shingling,
    pub set: Vec<i64>,
}

/// Returns the center and bound of a ball's bytes, little endian:
/// `threshold f64 | k u16 | unit u8 | fold u8 | 4 bytes of 0 | hashes i64...`, ascending.
pub fn read_document(bytes: &[u8]) -> Option<Within<'_>> {
    let (threshold, rest) = bytes.split_first_chunk()?;
    let (&[k0, k1, unit, fold, 0, 0, 0, 0], hashes) = rest.split_first_chunk()? else {
        return None;
    };
    let k = i64::from(u16::from_le_bytes([k0, k1]));
    let unit = Unit::from_repr(unit)?;
    let fold = Fold::from_repr(fold)?;
    let threshold = f64::from_le_bytes(*threshold);
    let shingling = Shingling::new(k, unit, fold).ok()?;
    let set = read_elements(hashes)?;
    options::is_threshold(threshold).then_some(Within::Document(Resembling {
        threshold,
        shingling,
        set,
    }))
}

impl NewBall {
    pub fn of_document(doc: &[u8], threshold: f64, shingling: &Shingling) -> Self {
        let set = shingle_set(doc, shingling);
        let [k0, k1] = (shingling.k as u16).to_le_bytes();
        let [unit, fold] = [shingling.unit as u8, shingling.fold as u8];
        let head = [threshold.to_le_bytes(), [k0, k1, unit, fold, 0, 0, 0, 0]];
        Self::with_elements(head.as_flattened(), &set, OF_DOCUMENT)
    }
}

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
    requires = [
        "ball",
        document_ball,
        document_in_ball,
        document_ball_contains
    ]
);
