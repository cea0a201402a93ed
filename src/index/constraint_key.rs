//! The types `near_dup_key` and `hamming_key`: a value with the bound within which no other may be,
//! as exclusion constraints compare it. Like pg_trgm's gtrgm they are made by expressions and never
//! stored in a table, so that they can print short: a violation prints two of them.

use crate::index::ball::{BitBall, MinhashBall};
use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::bits::Bits;
use crate::pg::catalog::{CFunction, is_function};
use crate::pg::error::{OrRaise, raise};
use crate::pg::nodes;
use crate::pg::varlena::{argument, result};
use bitvec::prelude::*;
use neardup::memory::joined;
use neardup::minhash::{Signature, near_duplicates};
use neardup::shingle::Key;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::{CStr, CString};

/// A `near_dup_key` argument, laid out as the ball of everything within its threshold.
pub struct NearDupKey<'a>(MinhashBall<'a>);

impl NearDupKey<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type near_dup_key that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { MinhashBall::from_raw(datum) })
    }

    /// Returns signature and threshold.
    pub fn read(&self) -> (Signature<'_>, f64) {
        self.0.read()
    }
}

/// A `hamming_key` argument, laid out as the ball of everything within its distance.
pub struct HammingKey<'a>(BitBall<'a>);

impl HammingKey<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type hamming_key that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { BitBall::from_raw(datum) })
    }

    /// Returns bits and distance.
    pub fn read(&self) -> (&BitSlice<u8, Msb0>, u32) {
        self.0.read()
    }
}

argument!(NearDupKey, "near_dup_key");
argument!(HammingKey, "hamming_key");

/// A new `near_dup_key`, in its stored form.
pub struct NewNearDupKey(Vec<u8>);

/// A new `hamming_key`, in its stored form.
pub struct NewHammingKey(Vec<u8>);

result!(NewNearDupKey, "near_dup_key");
result!(NewHammingKey, "hamming_key");

/// Returns the key by which an exclusion constraint keeps out what is at or above `threshold`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
pub fn near_dup_key(sig: StoredSignature<'_>, threshold: f64) -> NewNearDupKey {
    sig.read();
    let threshold = options::threshold(threshold).to_le_bytes();
    NewNearDupKey(joined(&[&threshold, sig.bytes()]).or_raise())
}

/// Returns the key by which an exclusion constraint keeps out what is within `distance`.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
pub fn hamming_key(bits: Bits<'_>, distance: i32) -> NewHammingKey {
    let numbers = [options::distance(distance), bits.len() as u32].map(u32::to_le_bytes);
    NewHammingKey(joined(&[numbers.as_flattened(), bits.bytes()]).or_raise())
}

/// Returns whether each of two signatures is within the other's threshold.
#[pg_extern(immutable, parallel_safe, strict, cost = 10)]
fn near_dup_key_near(a: NearDupKey<'_>, b: NearDupKey<'_>) -> bool {
    let ((a, a_threshold), (b, b_threshold)) = (a.read(), b.read());
    near_duplicates(&a, &b, a_threshold.max(b_threshold))
}

/// Returns whether each of two bit strings is within the other's distance.
#[pg_extern(immutable, parallel_safe, strict, cost = 10)]
fn hamming_key_near(a: HammingKey<'_>, b: HammingKey<'_>) -> bool {
    let ((a_bits, a_distance), (b_bits, b_distance)) = (a.read(), b.read());
    a_bits.len() == b_bits.len()
        && neardup::hamming::distance(a.0.bytes(), b.0.bytes()) <= a_distance.min(b_distance)
}

#[pg_extern(immutable, parallel_safe, strict)]
fn near_dup_key_in(_text: &CStr) -> NewNearDupKey {
    refuse_input("near_dup_key", "near_dup_key(sig, threshold)")
}

#[pg_extern(immutable, parallel_safe, strict)]
fn hamming_key_in(_text: &CStr) -> NewHammingKey {
    refuse_input("hamming_key", "hamming_key(bits, distance)")
}

fn refuse_input(name: &str, call: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        &format!("cannot accept a value of type {name}"),
        &format!("Such a value is made by {call}, and is not stored in a table."),
    )
}

#[pg_extern(immutable, parallel_safe, strict)]
fn near_dup_key_out(key: NearDupKey<'_>) -> CString {
    let (signature, threshold) = key.read();
    let header = signature.header;
    let content = if header.empty {
        String::from("empty")
    } else {
        digest(signature.payload())
    };
    printed(format!("<{header}:{content},{threshold}>"))
}

#[pg_extern(immutable, parallel_safe, strict)]
fn hamming_key_out(key: HammingKey<'_>) -> CString {
    let (bits, distance) = key.read();
    printed(format!(
        "<{} bits:{},{distance}>",
        bits.len(),
        digest(key.0.bytes())
    ))
}

/// Returns what tells values apart in a message.
fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", Key::from_seed(0).token_hash(bytes))
}

fn printed(text: String) -> CString {
    CString::new(text).expect("the text has no NUL")
}

/// Returns the constant second argument of an expression that calls a C function, which takes two;
/// None for any other expression.
///
/// # Safety
/// The expression is one of a plan or of an index, with constants folded.
pub unsafe fn constant_argument(
    expression: *mut pg_sys::Node,
    function: CFunction,
) -> Option<pg_sys::Datum> {
    // SAFETY: the tag tells the type of a node.
    unsafe {
        if (*expression).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let call = &*expression.cast::<pg_sys::FuncExpr>();
        let [_, argument] = nodes::elements(call.args)?;
        is_function(call.funcid, function)
            .then(|| nodes::constant(argument))
            .flatten()
    }
}

pgrx::extension_sql!(
    r#"
CREATE TYPE near_dup_key (
    INPUT = near_dup_key_in, OUTPUT = near_dup_key_out,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
CREATE TYPE hamming_key (
    INPUT = hamming_key_in, OUTPUT = hamming_key_out,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
"#,
    name = "constraint_key_types",
    requires = [
        near_dup_key_in,
        near_dup_key_out,
        hamming_key_in,
        hamming_key_out
    ]
);

pgrx::extension_sql_file!(
    "../../sql/index/constraint_key.sql",
    name = "constraint_key",
    requires = [
        "signature",
        "constraint_key_types",
        near_dup_key,
        hamming_key,
        near_dup_key_near,
        hamming_key_near,
        near_dup_ballsel,
        near_dup_balljoinsel
    ]
);
