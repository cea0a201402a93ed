//! The query type `_ball`: a center, and the bound within which values are in the ball, as the right
//! operand of `<@` and, of sets, of `%>`, `<%` and `<%>`. It prints short, for plans print it: a digest of the
//! center, and the bound.
//!
//! Layout, little endian: the bound, the center, and the kind of the center in one byte.

use crate::index::document_ball::{Resembling, read_document};
use crate::minhash::datum::StoredSignature;
use crate::minhash::incomparable::never_near;
use crate::options;
use crate::pg::arrays::Bigints;
use crate::pg::bits::Bits;
use crate::pg::error::{OrRaise, check_interrupts, raise};
use crate::pg::text::Text;
use crate::pg::varlena::{Varlena, argument, result};
use crate::text::measures::{is_contained, is_resembling, shingle_set};
use bitvec::prelude::*;
use neardup::hash::split_mix;
use neardup::memory::{Grow, collected, joined, with_room};
use neardup::minhash::{Signature, estimate, least_similarity, near_duplicates};
use neardup::set::jaccard_at_least;
use neardup::shingle::{Key, Shingling};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// A `_ball` argument.
pub struct Ball<'a>(Varlena<'a>);

argument!(Ball, "_ball");

/// The center of a ball, and its bound.
pub enum Within<'a> {
    /// With the lowest similarity, which may be [`EVERYTHING`].
    Signature(Signature<'a>, f64),
    /// With the greatest distance.
    Bits(BitCenter<'a>, u32),
    /// With the lowest share of one set, or of both.
    Set(Vec<i64>, f64),
    /// With the lowest resemblance.
    Document(Resembling),
}

impl Within<'_> {
    /// Returns how near a value is to the center: the similarity, or the number of bits in which bit strings
    /// differ; None beyond the bound.
    ///
    /// # Safety
    /// The value is of the center's type.
    pub unsafe fn nearness(&self, value: pg_sys::Datum) -> Option<f64> {
        let jaccard = |center: &[i64], set: &[i64], least| {
            jaccard_at_least(set, center, least, &mut check_interrupts)
        };
        // SAFETY: vouched for by the caller.
        unsafe {
            match self {
                Self::Signature(center, threshold) => {
                    let similarity = estimate(&StoredSignature::from_raw(value).read(), center);
                    similarity.ok().filter(|similarity| similarity >= threshold)
                }
                Self::Bits(center, most) => {
                    let bits = Bits::from_raw(value);
                    (bits.len() == center.len)
                        .then(|| neardup::hamming::distance(bits.bytes(), center.bytes))
                        .filter(|distance| distance <= most)
                        .map(f64::from)
                }
                Self::Set(center, share) => {
                    jaccard(center, &Bigints::from_raw(value).set(), *share)
                }
                Self::Document(center) => {
                    let set = shingle_set(&Text::from_raw(value), &center.shingling);
                    jaccard(&center.set, &set, center.threshold)
                }
            }
        }
    }
}

impl Within<'_> {
    /// Returns the text of a ball: a digest of its center, which tells centers apart, and the bound.
    pub fn text(&self) -> String {
        match self {
            Self::Signature(center, threshold) => {
                let header = center.header;
                let content = match header.empty {
                    true => String::from("empty"),
                    false => digest(center.payload()),
                };
                format!("<{header}:{content},{threshold}>")
            }
            Self::Bits(center, distance) => {
                format!("<{} bits:{},{distance}>", center.len, digest(center.bytes))
            }
            Self::Set(set, share) => {
                format!("<{} elements:{},{share}>", set.len(), digest_of_set(set))
            }
            Self::Document(center) => {
                let Shingling { k, unit, fold } = center.shingling;
                let (count, content) = (center.set.len(), digest_of_set(&center.set));
                let threshold = center.threshold;
                format!("<{count} shingles of {unit}:{k}:{fold}:{content},{threshold}>")
            }
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", Key::from_seed(0).token_hash(bytes))
}

fn digest_of_set(set: &[i64]) -> String {
    let digest = set
        .iter()
        .fold(0, |digest, &element| split_mix(digest ^ element as u64));
    format!("{digest:016x}")
}

/// A bit string: its bytes, and the number of its bits.
#[derive(Clone, Copy)]
pub struct BitCenter<'a> {
    pub bytes: &'a [u8],
    pub len: usize,
}

impl<'a> BitCenter<'a> {
    pub fn bits(&self) -> &'a BitSlice<u8, Msb0> {
        &self.bytes.view_bits()[..self.len]
    }
}

const OF_SIGNATURE: u8 = 0;
const OF_BITS: u8 = 1;
const OF_SET: u8 = 2;
pub const OF_DOCUMENT: u8 = 3;

/// The threshold of a ball that holds all signatures, comparable ones or not. Only the planner makes
/// such balls, of bounds that it does not know.
pub const EVERYTHING: f64 = 0.0;

impl Ball<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type _ball that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns center and bound.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are no ball.
    pub fn read(&self) -> Within<'_> {
        read(&self.0)
    }
}

/// Returns center and bound of a ball's bytes.
///
/// # Errors
/// ERROR `data_corrupted` if the bytes are no ball.
pub fn read(bytes: &[u8]) -> Within<'_> {
    let read = bytes.split_last().and_then(|(kind, bytes)| match *kind {
        OF_SIGNATURE => read_signature(bytes),
        OF_BITS => read_bits(bytes),
        OF_SET => read_set(bytes),
        OF_DOCUMENT => read_document(bytes),
        _ => None,
    });
    read.unwrap_or_else(|| corrupt("_ball"))
}

fn read_signature(bytes: &[u8]) -> Option<Within<'_>> {
    let (threshold, signature) = bytes.split_first_chunk()?;
    let threshold = f64::from_le_bytes(*threshold);
    let is_valid = threshold == EVERYTHING || options::is_threshold(threshold);
    is_valid.then(|| Within::Signature(Signature::from_bytes(signature).or_raise(), threshold))
}

fn read_bits(bytes: &[u8]) -> Option<Within<'_>> {
    let (distance, rest) = bytes.split_first_chunk()?;
    let (len, bytes) = rest.split_first_chunk()?;
    let [distance, len] = [distance, len].map(|number| u32::from_le_bytes(*number));
    let len = len as usize;
    let padding = bytes.view_bits::<Msb0>().get(len..)?;
    let is_valid = distance <= i32::MAX as u32 && padding.len() < 8 && padding.not_any();
    is_valid.then_some(Within::Bits(BitCenter { bytes, len }, distance))
}

fn read_set(bytes: &[u8]) -> Option<Within<'_>> {
    let (share, elements) = bytes.split_first_chunk()?;
    let share = f64::from_le_bytes(*share);
    let elements = read_elements(elements)?;
    options::is_threshold(share).then_some(Within::Set(elements, share))
}

/// Returns the elements of a set; None unless they are whole, and ascend.
pub fn read_elements(bytes: &[u8]) -> Option<Vec<i64>> {
    let (elements, rest) = bytes.as_chunks();
    let elements = elements.iter().map(|element| i64::from_le_bytes(*element));
    let is_valid = rest.is_empty() && elements.clone().is_sorted_by(|a, b| a < b);
    is_valid.then(|| collected(elements).or_raise())
}

/// # Errors
/// ERROR `data_corrupted`: the stored bytes are no value of the type `name`.
pub fn corrupt(name: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        &format!("invalid {name}"),
        "The stored value was not written by pg_neardup.",
    )
}

/// A new `_ball`, in its stored form.
pub struct NewBall(pub Vec<u8>);

result!(NewBall, "_ball");

impl NewBall {
    pub fn of_signature(center: &[u8], threshold: f64) -> Self {
        Self(joined(&[&threshold.to_le_bytes(), center, &[OF_SIGNATURE]]).or_raise())
    }

    pub fn of_bits(center: &[u8], bits: usize, distance: u32) -> Self {
        let numbers = [distance.to_le_bytes(), (bits as u32).to_le_bytes()];
        Self(joined(&[numbers.as_flattened(), center, &[OF_BITS]]).or_raise())
    }

    pub fn of_set(set: &[i64], share: f64) -> Self {
        Self::with_elements(&share.to_le_bytes(), set, OF_SET)
    }

    /// Returns a ball of a head, the elements of a set, and the kind of the center.
    pub fn with_elements(head: &[u8], set: &[i64], kind: u8) -> Self {
        let mut bytes = with_room(head.len() + size_of_val(set) + 1).or_raise();
        bytes.try_extend_from_slice(head).or_raise();
        let elements = set.iter().flat_map(|element| element.to_le_bytes());
        bytes.try_extend(elements).or_raise();
        bytes.try_push(kind).or_raise();
        Self(bytes)
    }
}

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

#[pg_extern(immutable, parallel_safe, strict)]
fn _ball_in(_text: &CStr) -> NewBall {
    refuse_text("_ball", "Such a value is made by _ball(center, bound).")
}

/// # Errors
/// ERROR `feature_not_supported`: values of the type `name` are made, not written.
pub fn refuse_text(name: &str, hint: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        &format!("cannot accept a value of type {name}"),
        hint,
    )
}

#[pg_extern(immutable, parallel_safe, strict, name = "_out")]
fn ball_out(ball: Ball<'_>) -> CString {
    CString::new(ball.read().text()).expect("the text form has no NUL")
}

pgrx::extension_sql!(
    r#"
CREATE TYPE _ball (
    INPUT = _ball_in, OUTPUT = _out,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended
);
"#,
    name = "ball_type",
    requires = [_ball_in, ball_out]
);

pgrx::extension_sql_file!(
    "../../sql/index/ball.sql",
    name = "ball",
    requires = [
        "signature",
        "ball_type",
        minhash_ball,
        minhash_ball_of_any,
        bit_ball,
        bit_ball_of_any,
        set_ball,
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
        set_ball_resembles
    ]
);
