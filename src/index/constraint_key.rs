//! The type `near_dup_key`, which exclusion constraints compare: a value, and the bound within which no other value may
//! be. Keys are made by expressions and, like pg_trgm's `gtrgm`, never stored in a table, so their text form can be
//! short: a violation prints two of them.
//!
//! A key consists of the ball of everything within its bound, its label, and the label's length in one byte. If a key
//! has a label, such as the row's id, a violation prints only the label.

use crate::index::ball::{self, NewBall, Within, corrupt};
use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::bits::Bits;
use crate::pg::prelude::*;
use crate::pg::varlena::{Varlena, argument, new_varlena, result};
use crate::text::measures::is_resembling;
use neardup::memory::joined;
use neardup::minhash::near_duplicates;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// Maximum bytes of a label. Longer ones are truncated.
const LONGEST_LABEL: usize = 200;

const NAME: &str = "near_dup_key";
/// The name of the functions that make keys.
pub const MAKE: &CStr = c"near_dup_key";

/// A `near_dup_key` argument.
pub struct ConstraintKey<'a>(Varlena<'a>);

impl ConstraintKey<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type near_dup_key that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self(Varlena::from_raw(datum))
    }

    /// Returns the ball and the label.
    fn split(&self) -> (&[u8], &[u8]) {
        let parts = self.0.split_last().and_then(|(&length, rest)| {
            rest.split_at_checked(rest.len().checked_sub(length.into())?)
        });
        parts.unwrap_or_else(|| corrupt(NAME))
    }

    /// Returns the value and the bound.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are not a key.
    pub fn read(&self) -> Within<'_> {
        ball::read(self.split().0)
    }

    /// Returns the key's ball as a new datum.
    pub fn ball(&self) -> pg_sys::Datum {
        new_varlena(self.split().0)
    }
}

argument!(ConstraintKey, "near_dup_key");

/// A new `near_dup_key`, in its stored form.
pub struct NewConstraintKey(Vec<u8>);

result!(NewConstraintKey, "near_dup_key");

impl NewConstraintKey {
    /// Returns the key with a label in the database's encoding, truncated to [`LONGEST_LABEL`] bytes at a character
    /// boundary.
    fn new(ball: NewBall, label: Option<Varlena<'_>>) -> Self {
        let label = label.as_deref().unwrap_or_default();
        let length = label.len().min(i32::MAX as usize) as i32;
        // SAFETY: reads `length` bytes of text in the database's encoding.
        let kept =
            unsafe { pg_sys::pg_mbcliplen(label.as_ptr().cast(), length, LONGEST_LABEL as i32) };
        let label = &label[..kept as usize];
        Self(joined(&[&ball.0, label, &[label.len() as u8]]).or_raise())
    }
}

/// Returns the key for an exclusion constraint that rejects signatures with a similarity of at least `threshold`. A
/// violation prints the key as `label`.
///
/// Not STRICT, because rows without a label must be compared, too. Returns NULL if another argument is NULL.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, cost = 5)]
pub fn near_dup_key(
    sig: Option<StoredSignature<'_>>,
    threshold: Option<f64>,
    label: default!(Option<Varlena<'_>>, "NULL"),
) -> Option<NewConstraintKey> {
    let (sig, threshold) = (sig?, options::threshold(threshold?));
    sig.read();
    let ball = NewBall::of_signature(sig.bytes(), threshold);
    Some(NewConstraintKey::new(ball, label))
}

/// Returns the key for an exclusion constraint that rejects bit strings within `distance`. A violation prints the key
/// as `label`. Returns NULL if another argument is NULL.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, cost = 5, name = "near_dup_key")]
pub fn near_dup_key_of_bits(
    bits: Option<Bits<'_>>,
    distance: Option<i32>,
    label: default!(Option<Varlena<'_>>, "NULL"),
) -> Option<NewConstraintKey> {
    let (bits, distance) = (bits?, options::distance(distance?));
    let ball = NewBall::of_bits(bits.bytes(), bits.len(), distance);
    Some(NewConstraintKey::new(ball, label))
}

/// Returns the key for an exclusion constraint that rejects documents with a resemblance of at least `threshold`. A
/// violation prints the key as `label`. Returns NULL if another argument is NULL.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1, and for an invalid `k`, `unit` or `fold`.
#[pg_extern(immutable, parallel_safe, cost = 1000, name = "near_dup_key")]
pub fn near_dup_key_of_document(
    doc: Option<Text<'_>>,
    threshold: Option<f64>,
    k: default!(Option<i32>, 3),
    unit: default!(Option<Text<'_>>, "'word'"),
    fold: default!(Option<Text<'_>>, "'case'"),
    label: default!(Option<Varlena<'_>>, "NULL"),
) -> Option<NewConstraintKey> {
    let shingling = options::shingling(k?, &unit?, &fold?);
    let ball = NewBall::of_document(&doc?, options::threshold(threshold?), &shingling);
    Some(NewConstraintKey::new(ball, label))
}

/// Returns whether each key's value is within the other key's bound. Returns false for keys of different kinds.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_near")]
pub fn near_dup_key_near(a: ConstraintKey<'_>, b: ConstraintKey<'_>) -> bool {
    match (a.read(), b.read()) {
        (Within::Signature(x, x_threshold), Within::Signature(y, y_threshold)) => {
            near_duplicates(&x, &y, x_threshold.max(y_threshold)) == Some(true)
        }
        (Within::Bits(x, x_distance), Within::Bits(y, y_distance)) => {
            let within = x_distance.min(y_distance);
            x.len == y.len && neardup::hamming::distance(x.bytes, y.bytes) <= within
        }
        (Within::Document(x), Within::Document(y)) => {
            x.shingling == y.shingling
                && is_resembling(&x.set, &y.set, x.threshold.max(y.threshold))
        }
        _ => false,
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
fn near_dup_key_in(_text: &CStr) -> NewConstraintKey {
    let hint =
        "Such a value is made by near_dup_key(body, threshold), and is not stored in a table.";
    ball::reject_text(NAME, hint)
}

#[pg_extern(immutable, parallel_safe, strict, name = "_out")]
fn near_dup_key_out(key: ConstraintKey<'_>) -> CString {
    let label = match key.split().1 {
        b"" => key.read().text().into_bytes(),
        label => copied(label).or_raise(),
    };
    CString::new(label).unwrap_or_else(|_| corrupt("label"))
}

pgrx::extension_sql!(
    r#"
CREATE TYPE near_dup_key (
    INPUT = near_dup_key_in, OUTPUT = _out,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
"#,
    name = "constraint_key_type",
    requires = [near_dup_key_in, near_dup_key_out]
);

pgrx::extension_sql_file!(
    "../../sql/index/constraint_key.sql",
    name = "constraint_key",
    requires = [
        "signature",
        "constraint_key_type",
        near_dup_key_near,
        near_dup_ballsel,
        near_dup_balljoinsel
    ]
);
