//! The query type `set_share`: a set, and the share of it, of others, or of both together that they have
//! to share, as the right operand of `%>`, `<%` and `<%>`. Its text form is `<{elements},threshold>`.

use crate::index::ball::{bad_binary, corrupt};
use crate::options;
use crate::pg::arrays::Bigints;
use crate::pg::error::{OrRaise, check_interrupts, raise};
use crate::pg::varlena::{Varlena, argument, rest_of_message, result};
use crate::text::measures::{is_contained, is_resembling};
use neardup::memory::{Grow, GrowText, collected, copied, with_room};
use neardup::set::sort_distinct;
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};
use std::ffi::{CStr, CString};
use std::fmt::Write;

/// A `set_share` argument. Layout, little endian: `share f64 | elements i64...`, ascending.
pub struct SetShare<'a>(Varlena<'a>);

argument!(SetShare, "_set_share");

impl SetShare<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type set_share that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::detoast(datum) })
    }

    /// Returns the set and the share.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are no such value.
    pub fn read(&self) -> (Vec<i64>, f64) {
        let Some((elements, share)) = parse(&self.0) else {
            corrupt("_set_share");
        };
        let elements = elements.iter().map(|element| i64::from_le_bytes(*element));
        (collected(elements).or_raise(), share)
    }
}

fn parse(bytes: &[u8]) -> Option<(&[[u8; 8]], f64)> {
    let (share, elements) = bytes.split_first_chunk()?;
    let share = f64::from_le_bytes(*share);
    let (elements, rest) = elements.as_chunks();
    let number = |element: &[u8; 8]| i64::from_le_bytes(*element);
    let is_valid = options::is_threshold(share)
        && rest.is_empty()
        && elements.is_sorted_by(|a, b| number(a) < number(b));
    is_valid.then_some((elements, share))
}

/// A new `set_share`, in its stored form.
pub struct NewSetShare(Vec<u8>);

result!(NewSetShare, "_set_share");

impl NewSetShare {
    fn new(set: &[i64], share: f64) -> Self {
        let mut bytes = with_room(size_of::<f64>() + size_of_val(set)).or_raise();
        bytes.try_extend(share.to_le_bytes()).or_raise();
        let elements = set.iter().flat_map(|element| element.to_le_bytes());
        bytes.try_extend(elements).or_raise();
        Self(bytes)
    }
}

/// Returns a set, and the share of it, of another, or of both together that they have to share.
///
/// # Errors
/// `invalid_parameter_value` for a threshold outside 0 < t <= 1.
#[pg_extern(immutable, parallel_safe, strict, cost = 100, name = "_set_share")]
fn set_share(elements: Bigints<'_>, threshold: f64) -> NewSetShare {
    NewSetShare::new(&elements.set(), options::threshold(threshold))
}

/// Returns whether the array contains the share of the set.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_contains")]
pub fn set_contains(whole: Bigints<'_>, part: SetShare<'_>) -> bool {
    let (part, share) = part.read();
    is_contained(&part, &whole.set(), share)
}

/// Returns whether the set contains the share of the array's elements.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_within")]
pub fn set_contained(part: Bigints<'_>, whole: SetShare<'_>) -> bool {
    let (whole, share) = whole.read();
    is_contained(&part.set(), &whole, share)
}

/// Returns whether the Jaccard similarity of the two sets reaches the share.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_resembles")]
pub fn set_resembles(a: Bigints<'_>, b: SetShare<'_>) -> bool {
    let (b, share) = b.read();
    is_resembling(&a.set(), &b, share)
}

/// Returns `set_resembles` with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_resembles")]
pub fn set_share_resembles(b: SetShare<'_>, a: Bigints<'_>) -> bool {
    set_resembles(a, b)
}

/// Returns `set_contains` with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_within")]
pub fn set_share_contained(part: SetShare<'_>, whole: Bigints<'_>) -> bool {
    set_contains(whole, part)
}

/// Returns `set_contained` with its arguments exchanged.
#[pg_extern(immutable, parallel_safe, strict, cost = 500, name = "_contains")]
pub fn set_share_contains(whole: SetShare<'_>, part: Bigints<'_>) -> bool {
    set_contained(part, whole)
}

#[pg_extern(immutable, parallel_safe, strict, name = "_set_share_in")]
fn set_share_in(text: &CStr) -> NewSetShare {
    let text = text.to_string_lossy();
    let Some((set, share)) = parse_text(&text) else {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type _set_share",
            "The text form is <{elements},threshold>, as in <{3,5,8},0.8>, with 0 < threshold <= 1.",
        );
    };
    NewSetShare::new(&set, share)
}

fn parse_text(text: &str) -> Option<(Vec<i64>, f64)> {
    let (set, share) = text
        .trim()
        .strip_prefix('<')?
        .strip_suffix('>')?
        .rsplit_once(',')?;
    let share = share.trim().parse().ok()?;
    let elements = set.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut set = Vec::new();
    if !elements.trim().is_empty() {
        for element in elements.split(',') {
            set.try_push(element.trim().parse().ok()?).or_raise();
        }
    }
    sort_distinct(&mut set, &mut check_interrupts);
    options::is_threshold(share).then_some((set, share))
}

#[pg_extern(immutable, parallel_safe, strict, name = "_out")]
fn set_share_out(value: SetShare<'_>) -> CString {
    let (set, share) = value.read();
    let mut text = String::new();
    text.try_push_str("<{").or_raise();
    let mut element_text = String::new();
    for (place, element) in set.iter().enumerate() {
        element_text.clear();
        let comma = if place > 0 { "," } else { "" };
        write!(element_text, "{comma}{element}").expect("a string takes it");
        text.try_push_str(&element_text).or_raise();
    }
    text.try_push_str(&format!("}},{share}>\0")).or_raise();
    CString::from_vec_with_nul(text.into_bytes()).expect("the text form has no NUL")
}

#[pg_extern(immutable, parallel_safe, strict, name = "_set_share_recv")]
fn set_share_recv(mut message: Internal) -> NewSetShare {
    // SAFETY: PostgreSQL calls a receive function with the message's StringInfo.
    let bytes = unsafe { rest_of_message(&mut message) };
    if parse(bytes).is_none() {
        bad_binary("_set_share");
    }
    NewSetShare(copied(bytes).or_raise())
}

#[pg_extern(immutable, parallel_safe, strict, name = "_send")]
fn set_share_send(value: SetShare<'_>) -> Vec<u8> {
    value.read();
    copied(&value.0).or_raise()
}

pgrx::extension_sql!(
    r#"
CREATE TYPE _set_share (
    INPUT = _set_share_in, OUTPUT = _out,
    RECEIVE = _set_share_recv, SEND = _send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended
);
"#,
    name = "set_share_type",
    requires = [set_share_in, set_share_out, set_share_recv, set_share_send]
);

pgrx::extension_sql_file!(
    "../../sql/index/set_share.sql",
    name = "set_share",
    requires = [
        "set_share_type",
        set_share,
        near_dup_ballsel,
        near_dup_balljoinsel,
        set_contains,
        set_contained,
        set_share_contained,
        set_share_contains,
        set_resembles,
        set_share_resembles
    ]
);
