//! The types `near_dup_key` and `hamming_key`: a value with the bound within which no other may be,
//! as exclusion constraints compare it. Like pg_trgm's gtrgm they are made by expressions and never
//! stored in a table, so that they can print short: a violation prints two of them.
//!
//! A key is the ball of everything within its bound, then its label, then the label's length in one
//! byte. The label, an expression over the row such as its id, is all that a violation prints.

use crate::index::ball::{center_bytes, corrupt, read_bit_ball, read_minhash_ball};
use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::bits::Bits;
use crate::pg::catalog::{CFunction, is_function};
use crate::pg::error::{OrRaise, raise};
use crate::pg::nodes;
use crate::pg::varlena::{Varlena, argument, new_varlena, result};
use bitvec::prelude::*;
use neardup::memory::{copied, joined};
use neardup::minhash::{Signature, near_duplicates};
use neardup::shingle::Key;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::{CStr, CString};

/// The bytes of a label at most: more are cut off.
const LONGEST_LABEL: usize = 200;

/// Returns the ball and the label of a key.
fn split<'a>(key: &'a [u8], name: &str) -> (&'a [u8], &'a [u8]) {
    key.split_last()
        .and_then(|(&length, rest)| {
            rest.split_at_checked(rest.len().checked_sub(usize::from(length))?)
        })
        .unwrap_or_else(|| corrupt(name))
}

/// A `near_dup_key` argument.
pub struct NearDupKey<'a>(Varlena<'a>);

impl NearDupKey<'_> {
    const NAME: &'static str = "near_dup_key";

    /// # Safety
    /// `datum` is a non-null datum of type near_dup_key that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns signature and threshold.
    pub fn read(&self) -> (Signature<'_>, f64) {
        read_minhash_ball(split(&self.0, Self::NAME).0)
    }
}

/// A `hamming_key` argument.
pub struct HammingKey<'a>(Varlena<'a>);

impl HammingKey<'_> {
    const NAME: &'static str = "hamming_key";

    /// # Safety
    /// `datum` is a non-null datum of type hamming_key that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns bits and distance.
    pub fn read(&self) -> (&BitSlice<u8, Msb0>, u32) {
        let ball = split(&self.0, Self::NAME).0;
        read_bit_ball(ball).unwrap_or_else(|| corrupt(Self::NAME))
    }

    /// Returns the bytes of the bits, after [`Self::read`] has found them to be there.
    fn bytes(&self) -> &[u8] {
        center_bytes(split(&self.0, Self::NAME).0)
    }
}

/// Returns a new datum of the ball that a key of either type holds.
///
/// # Safety
/// `key` is a non-null datum of type near_dup_key or hamming_key.
pub unsafe fn ball_of_key(key: pg_sys::Datum) -> pg_sys::Datum {
    // SAFETY: vouched for by the caller.
    let key = unsafe { Varlena::detoast(key) };
    new_varlena(split(&key, NearDupKey::NAME).0)
}

/// A label, in the database's encoding.
pub struct Label<'a>(Varlena<'a>);

impl Label<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type text that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns as many whole characters as a key has room for.
    fn clipped(&self) -> &[u8] {
        let length = self.0.len().min(i32::MAX as usize) as i32;
        let start = self.0.as_ptr().cast();
        // SAFETY: reads that many bytes of text in the database's encoding.
        let kept = unsafe { pg_sys::pg_mbcliplen(start, length, LONGEST_LABEL as i32) };
        &self.0[..kept as usize]
    }
}

argument!(Label, "text");
argument!(NearDupKey, "near_dup_key");
argument!(HammingKey, "hamming_key");

/// A new `near_dup_key`, in its stored form.
pub struct NewNearDupKey(Vec<u8>);

/// A new `hamming_key`, in its stored form.
pub struct NewHammingKey(Vec<u8>);

result!(NewNearDupKey, "near_dup_key");
result!(NewHammingKey, "hamming_key");

impl NewNearDupKey {
    fn new(sig: &StoredSignature<'_>, threshold: f64, label: &[u8]) -> Self {
        sig.read();
        let threshold = options::threshold(threshold).to_le_bytes();
        Self(joined(&[&threshold, sig.bytes(), label, &[label.len() as u8]]).or_raise())
    }
}

impl NewHammingKey {
    fn new(bits: &Bits<'_>, distance: i32, label: &[u8]) -> Self {
        let numbers = [options::distance(distance), bits.len() as u32].map(u32::to_le_bytes);
        let parts = [
            numbers.as_flattened(),
            bits.bytes(),
            label,
            &[label.len() as u8],
        ];
        Self(joined(&parts).or_raise())
    }
}

/// Returns the key by which an exclusion constraint keeps out what is at or above `threshold`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
pub fn near_dup_key(sig: StoredSignature<'_>, threshold: f64) -> NewNearDupKey {
    NewNearDupKey::new(&sig, threshold, b"")
}

/// Returns [`near_dup_key`], which a violation prints as `label`.
///
/// Not STRICT: a row without a label has to be compared, too.
#[pg_extern(immutable, parallel_safe, cost = 5, name = "near_dup_key")]
pub fn near_dup_key_labeled(
    sig: Option<StoredSignature<'_>>,
    threshold: Option<f64>,
    label: Option<Label<'_>>,
) -> Option<NewNearDupKey> {
    let label = label.as_ref().map_or(&b""[..], Label::clipped);
    Some(NewNearDupKey::new(&sig?, threshold?, label))
}

/// Returns the key by which an exclusion constraint keeps out what is within `distance`.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
pub fn hamming_key(bits: Bits<'_>, distance: i32) -> NewHammingKey {
    NewHammingKey::new(&bits, distance, b"")
}

/// Returns [`hamming_key`], which a violation prints as `label`.
#[pg_extern(immutable, parallel_safe, cost = 5, name = "hamming_key")]
pub fn hamming_key_labeled(
    bits: Option<Bits<'_>>,
    distance: Option<i32>,
    label: Option<Label<'_>>,
) -> Option<NewHammingKey> {
    let label = label.as_ref().map_or(&b""[..], Label::clipped);
    Some(NewHammingKey::new(&bits?, distance?, label))
}

/// Returns whether each of two signatures is within the other's threshold.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_near")]
fn near_dup_key_near(a: NearDupKey<'_>, b: NearDupKey<'_>) -> bool {
    let ((a, a_threshold), (b, b_threshold)) = (a.read(), b.read());
    near_duplicates(&a, &b, a_threshold.max(b_threshold)) == Some(true)
}

/// Returns whether each of two bit strings is within the other's distance.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, name = "_near")]
fn hamming_key_near(a: HammingKey<'_>, b: HammingKey<'_>) -> bool {
    let ((a_bits, a_distance), (b_bits, b_distance)) = (a.read(), b.read());
    a_bits.len() == b_bits.len()
        && neardup::hamming::distance(a.bytes(), b.bytes()) <= a_distance.min(b_distance)
}

#[pg_extern(immutable, parallel_safe, strict)]
fn near_dup_key_in(_text: &CStr) -> NewNearDupKey {
    refuse_input(NearDupKey::NAME, "near_dup_key(sig, threshold)")
}

#[pg_extern(immutable, parallel_safe, strict)]
fn hamming_key_in(_text: &CStr) -> NewHammingKey {
    refuse_input(HammingKey::NAME, "hamming_key(bits, distance)")
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
    printed(split(&key.0, NearDupKey::NAME).1, || {
        let (signature, threshold) = key.read();
        let header = signature.header;
        let content = if header.empty {
            String::from("empty")
        } else {
            digest(signature.payload())
        };
        format!("<{header}:{content},{threshold}>")
    })
}

#[pg_extern(immutable, parallel_safe, strict)]
fn hamming_key_out(key: HammingKey<'_>) -> CString {
    printed(split(&key.0, HammingKey::NAME).1, || {
        let (bits, distance) = key.read();
        format!("<{} bits:{},{distance}>", bits.len(), digest(key.bytes()))
    })
}

/// Returns what tells values apart in a message.
fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", Key::from_seed(0).token_hash(bytes))
}

/// Returns the label, or without one a description.
fn printed(label: &[u8], description: impl FnOnce() -> String) -> CString {
    let bytes = match label {
        b"" => description().into_bytes(),
        label => copied(label).or_raise(),
    };
    CString::new(bytes).unwrap_or_else(|_| corrupt("label"))
}

/// The C functions that make keys of one kind: without a label, and with one.
pub type MakeKey = [CFunction; 2];

pub const MAKE_NEAR_DUP_KEY: MakeKey = [near_dup_key_wrapper, near_dup_key_labeled_wrapper];
pub const MAKE_HAMMING_KEY: MakeKey = [hamming_key_wrapper, hamming_key_labeled_wrapper];

/// Returns value and bound of a call that makes a key.
///
/// # Safety
/// A list of expressions, or NULL.
pub unsafe fn value_and_bound(args: *mut pg_sys::List) -> Option<[*mut pg_sys::Node; 2]> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let labeled = || nodes::elements(args).map(|[value, bound, _label]| [value, bound]);
        nodes::elements(args).or_else(labeled)
    }
}

/// Returns the bound of an expression that makes a key, if it is constant; None for any other
/// expression.
///
/// # Safety
/// The expression is one of a plan or of an index, with constants folded.
pub unsafe fn constant_bound(
    expression: *mut pg_sys::Node,
    make: MakeKey,
) -> Option<pg_sys::Datum> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let (function, args) = nodes::call(expression)?;
        let [_, bound] = value_and_bound(args)?;
        make.into_iter()
            .any(|own| is_function(function, own))
            .then(|| nodes::constant(bound))
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
        near_dup_key_labeled,
        hamming_key,
        hamming_key_labeled,
        near_dup_key_near,
        hamming_key_near,
        near_dup_ballsel,
        near_dup_balljoinsel
    ]
);
