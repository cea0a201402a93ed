//! The query types `minhash_ball` and `bit_ball`: everything within a bound of a center, as the
//! right operand of `<@`. Their text form is that of PostgreSQL's circle: `<center,bound>`.

use crate::minhash::datum::StoredSignature;
use crate::minhash::incomparable::never_near;
use crate::options;
use crate::pg::bits::Bits;
use crate::pg::error::{OrRaise, raise};
use crate::pg::varlena::{Varlena, argument, rest_of_message, result};
use bitvec::prelude::*;
use neardup::memory::{Grow, copied, filled, joined, with_room};
use neardup::minhash::{Signature, least_similarity, near_duplicates};
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};
use std::ffi::{CStr, CString};

/// A `minhash_ball` argument. Layout, little endian: `threshold f64 | signature`.
pub struct MinhashBall<'a>(Varlena<'a>);

const THRESHOLD_LEN: usize = size_of::<f64>();

/// The threshold of a ball that holds all signatures, comparable ones or not. Only the planner makes
/// such balls, of bounds that it does not know.
pub const EVERYTHING: f64 = 0.0;

impl MinhashBall<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type minhash_ball that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns center and threshold, which may be [`EVERYTHING`].
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are no ball.
    pub fn read(&self) -> (Signature<'_>, f64) {
        read_minhash_ball(&self.0)
    }
}

/// Returns center and threshold of a ball's bytes.
///
/// # Errors
/// ERROR `data_corrupted` if the bytes are no ball.
pub fn read_minhash_ball(bytes: &[u8]) -> (Signature<'_>, f64) {
    let Some((threshold, signature)) = bytes.split_first_chunk::<THRESHOLD_LEN>() else {
        corrupt("_minhash_ball");
    };
    let threshold = f64::from_le_bytes(*threshold);
    if threshold != EVERYTHING && !options::is_threshold(threshold) {
        corrupt("_minhash_ball");
    }
    (Signature::from_bytes(signature).or_raise(), threshold)
}

/// A `bit_ball` argument. Layout, little endian: `distance u32 | bits u32 | bytes of the bits`.
pub struct BitBall<'a>(Varlena<'a>);

const DISTANCE_LEN: usize = size_of::<u32>();
const COUNT_LEN: usize = size_of::<u32>();

impl BitBall<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type bit_ball that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns center and distance.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are no ball.
    pub fn read(&self) -> (&BitSlice<u8, Msb0>, u32) {
        read_bit_ball(&self.0).unwrap_or_else(|| corrupt("_bit_ball"))
    }

    /// Returns the bytes of the center's bits, after [`Self::read`] has found them to be there.
    pub fn bytes(&self) -> &[u8] {
        center_bytes(&self.0)
    }
}

/// Returns the bytes of the center's bits, after [`read_bit_ball`] has found them to be there.
pub fn center_bytes(ball: &[u8]) -> &[u8] {
    &ball[DISTANCE_LEN + COUNT_LEN..]
}

/// Returns center and distance of a ball's bytes; None if they are no ball.
pub fn read_bit_ball(bytes: &[u8]) -> Option<(&BitSlice<u8, Msb0>, u32)> {
    let (distance, rest) = bytes.split_first_chunk::<DISTANCE_LEN>()?;
    let (count, bytes) = rest.split_first_chunk::<COUNT_LEN>()?;
    let distance = u32::from_le_bytes(*distance);
    let count = u32::from_le_bytes(*count) as usize;
    let bits = bytes.view_bits::<Msb0>();
    let (center, padding) = (bits.get(..count)?, bits.get(count..)?);
    let valid = distance <= i32::MAX as u32 && padding.len() < 8 && padding.not_any();
    valid.then_some((center, distance))
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

argument!(MinhashBall, "_minhash_ball");
argument!(BitBall, "_bit_ball");

/// A new `minhash_ball`, in its stored form.
pub struct NewMinhashBall(Vec<u8>);

/// A new `bit_ball`, in its stored form.
pub struct NewBitBall(Vec<u8>);

result!(NewMinhashBall, "_minhash_ball");
result!(NewBitBall, "_bit_ball");

impl NewMinhashBall {
    fn new(center: &[u8], threshold: f64) -> Self {
        Self(joined(&[&threshold.to_le_bytes(), center]).or_raise())
    }
}

impl NewBitBall {
    fn new(center: &[u8], bits: usize, distance: u32) -> Self {
        let numbers = [distance.to_le_bytes(), (bits as u32).to_le_bytes()];
        Self(joined(&[numbers.as_flattened(), center]).or_raise())
    }
}

/// Returns every signature whose `minhash_sim` to the center is at least `threshold`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_minhash_ball")]
fn minhash_ball(m: StoredSignature<'_>, threshold: f64) -> NewMinhashBall {
    m.read();
    NewMinhashBall::new(m.bytes(), options::threshold(threshold))
}

/// Returns every signature whose `minhash_sim` to the center is at least `similarity`, or more: all
/// for one of at most 0; NULL, which no signature is in, for one above 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_ball_at_least")]
fn minhash_ball_at_least(m: StoredSignature<'_>, similarity: f64) -> Option<NewMinhashBall> {
    m.read();
    // As numbers are compared in SQL, NaN is above all others.
    let threshold = (similarity <= 1.0).then_some(similarity.max(EVERYTHING))?;
    Some(NewMinhashBall::new(m.bytes(), threshold))
}

/// Returns every signature whose `minhash_distance` from the center is at most `distance`, or more:
/// all for one of at least 1; NULL for one below 0.
#[pg_extern(immutable, parallel_safe, strict, cost = 20, name = "_ball_within")]
fn minhash_ball_within(m: StoredSignature<'_>, distance: f64) -> Option<NewMinhashBall> {
    m.read();
    if distance < 0.0 {
        return None;
    }
    let threshold = least_similarity(distance).unwrap_or(EVERYTHING);
    Some(NewMinhashBall::new(m.bytes(), threshold))
}

/// Returns `bit_ball`, or NULL for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, name = "_ball_within")]
fn bit_ball_within(center: Bits<'_>, distance: i32) -> Option<NewBitBall> {
    let distance = distance.try_into().ok()?;
    Some(NewBitBall::new(center.bytes(), center.len(), distance))
}

/// Returns every bit string of the center's length that differs from it in at most `distance` bits.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, name = "_bit_ball")]
fn bit_ball(center: Bits<'_>, distance: i32) -> NewBitBall {
    NewBitBall::new(center.bytes(), center.len(), options::distance(distance))
}

/// Returns whether the signature is in the ball; not if it is empty or was made with other
/// parameters.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_within")]
pub fn minhash_in_ball(m: StoredSignature<'_>, ball: MinhashBall<'_>) -> bool {
    let (center, threshold) = ball.read();
    threshold == EVERYTHING
        || near_duplicates(&m.read(), &center, threshold)
            .unwrap_or_else(|| never_near(&m.read().header, &center.header))
}

/// Does `minhash_in_ball` with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_contains")]
pub fn minhash_ball_contains(ball: MinhashBall<'_>, m: StoredSignature<'_>) -> bool {
    minhash_in_ball(m, ball)
}

/// Returns whether the bit string is in the ball; not if its length differs from the center's.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_within")]
pub fn bit_in_ball(b: Bits<'_>, ball: BitBall<'_>) -> bool {
    let (center, distance) = ball.read();
    b.len() == center.len() && neardup::hamming::distance(b.bytes(), ball.bytes()) <= distance
}

/// Does `bit_in_ball` with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_contains")]
pub fn bit_ball_contains(ball: BitBall<'_>, b: Bits<'_>) -> bool {
    bit_in_ball(b, ball)
}

/// Returns the two fields of `<center,bound>`.
fn text_fields(text: &str) -> Option<(&str, &str)> {
    text.trim()
        .strip_prefix('<')?
        .strip_suffix('>')?
        .rsplit_once(',')
}

fn bad_text(name: &str, hint: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
        &format!("invalid input syntax for type {name}"),
        hint,
    )
}

/// # Errors
/// ERROR `invalid_binary_representation`: the received bytes are no value of the type `name`.
pub fn bad_binary(name: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
        &format!("invalid binary form of type {name}"),
        "",
    )
}

#[pg_extern(immutable, parallel_safe, strict, name = "_minhash_ball_in")]
fn minhash_ball_in(text: &CStr) -> NewMinhashBall {
    let text = text.to_string_lossy();
    let Some((center, threshold)) = text_fields(&text)
        .and_then(|(center, threshold)| Some((center, threshold.trim().parse::<f64>().ok()?)))
        .filter(|(_, threshold)| options::is_threshold(*threshold))
    else {
        bad_text(
            "_minhash_ball",
            "The text form is <signature,threshold> with 0 < threshold <= 1.",
        );
    };
    let center = Signature::parse_text(center)
        .or_raise_as(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION);
    NewMinhashBall::new(&center, threshold)
}

#[pg_extern(immutable, parallel_safe, strict, name = "_out")]
fn minhash_ball_out(ball: MinhashBall<'_>) -> CString {
    let (center, threshold) = ball.read();
    CString::new(format!("<{center},{threshold}>")).expect("the text form has no NUL")
}

#[pg_extern(immutable, parallel_safe, strict, name = "_minhash_ball_recv")]
fn minhash_ball_recv(mut message: Internal) -> NewMinhashBall {
    // SAFETY: PostgreSQL calls a receive function with the message's StringInfo.
    let bytes = unsafe { rest_of_message(&mut message) };
    match bytes.split_first_chunk::<THRESHOLD_LEN>() {
        Some((threshold, center)) if options::is_threshold(f64::from_le_bytes(*threshold)) => {
            Signature::from_foreign_bytes(center)
                .or_raise_as(PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION);
            NewMinhashBall(copied(bytes).or_raise())
        }
        _ => bad_binary("_minhash_ball"),
    }
}

#[pg_extern(immutable, parallel_safe, strict, name = "_send")]
fn minhash_ball_send(ball: MinhashBall<'_>) -> Vec<u8> {
    ball.read();
    copied(&ball.0).or_raise()
}

#[pg_extern(immutable, parallel_safe, strict, name = "_bit_ball_in")]
fn bit_ball_in(text: &CStr) -> NewBitBall {
    let text = text.to_string_lossy();
    let bit = |digit| match digit {
        '0' => Some(false),
        '1' => Some(true),
        _ => None,
    };
    let parsed = text_fields(&text).and_then(|(center, distance)| {
        let mut bytes = filled(0u8, center.trim().len().div_ceil(8)).or_raise();
        let bits = bytes.view_bits_mut::<Msb0>();
        let mut count = 0;
        for digit in center.trim().chars() {
            bits.set(count, bit(digit)?);
            count += 1;
        }
        let distance = distance.trim().parse::<i32>().ok()?;
        Some((bytes, count, u32::try_from(distance).ok()?))
    });
    let Some((center, bits, distance)) = parsed else {
        bad_text(
            "_bit_ball",
            "The text form is <bits,distance>, as in <0110,2>, with a distance from 0.",
        );
    };
    NewBitBall::new(&center, bits, distance)
}

#[pg_extern(immutable, parallel_safe, strict, name = "_out")]
fn bit_ball_out(ball: BitBall<'_>) -> CString {
    let (center, distance) = ball.read();
    let distance = format!(",{distance}>\0");
    let mut text = with_room(1 + center.len() + distance.len()).or_raise();
    let digits = center.iter().map(|bit| if *bit { b'1' } else { b'0' });
    let bytes = [b'<'].into_iter().chain(digits).chain(distance.bytes());
    text.try_extend(bytes).or_raise();
    CString::from_vec_with_nul(text).expect("the text form has no NUL")
}

#[pg_extern(immutable, parallel_safe, strict, name = "_bit_ball_recv")]
fn bit_ball_recv(mut message: Internal) -> NewBitBall {
    // SAFETY: PostgreSQL calls a receive function with the message's StringInfo.
    let bytes = unsafe { rest_of_message(&mut message) };
    if read_bit_ball(bytes).is_none() {
        bad_binary("_bit_ball");
    }
    NewBitBall(copied(bytes).or_raise())
}

#[pg_extern(immutable, parallel_safe, strict, name = "_send")]
fn bit_ball_send(ball: BitBall<'_>) -> Vec<u8> {
    ball.read();
    copied(&ball.0).or_raise()
}

pgrx::extension_sql!(
    r#"
CREATE TYPE _minhash_ball (
    INPUT = _minhash_ball_in, OUTPUT = _out,
    RECEIVE = _minhash_ball_recv, SEND = _send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
CREATE TYPE _bit_ball (
    INPUT = _bit_ball_in, OUTPUT = _out,
    RECEIVE = _bit_ball_recv, SEND = _send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
"#,
    name = "ball_types",
    requires = [
        minhash_ball_in,
        minhash_ball_out,
        minhash_ball_recv,
        minhash_ball_send,
        bit_ball_in,
        bit_ball_out,
        bit_ball_recv,
        bit_ball_send
    ]
);

pgrx::extension_sql_file!(
    "../../sql/index/ball.sql",
    name = "ball",
    requires = [
        "signature",
        "ball_types",
        minhash_ball,
        minhash_ball_at_least,
        minhash_ball_within,
        bit_ball,
        bit_ball_within,
        near_dup_ballsel,
        near_dup_balljoinsel,
        minhash_in_ball,
        minhash_ball_contains,
        bit_in_ball,
        bit_ball_contains
    ]
);
