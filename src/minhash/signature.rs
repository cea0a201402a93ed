//! The type `minhash_signature`: input, output, casts, order and hash.
//!
//! Order and equality are those of the stored bytes: they serve DISTINCT, GROUP BY, indexes and
//! replication, and say nothing about similarity.
#![allow(clippy::disallowed_methods, reason = "at most 1024 slots")]

use crate::minhash::datum::{NewSignature, StoredSignature};
use crate::pg::error::OrRaise;
use crate::pg::varlena::rest_of_message;
use neardup::memory::GrowText;
use neardup::minhash::Signature;
use neardup::shingle::Key;
use pgrx::Internal;
use pgrx::prelude::*;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ffi::{CStr, CString};

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_in(text: &CStr) -> NewSignature {
    NewSignature(
        lossy(text)
            .and_then(|text| Signature::parse_text(&text))
            .or_raise_as(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION),
    )
}

/// Returns the text with U+FFFD for bytes that are not UTF-8.
fn lossy(text: &CStr) -> neardup::Result<Cow<'_, str>> {
    if let Ok(text) = text.to_str() {
        return Ok(Cow::Borrowed(text));
    }
    let mut valid = String::new();
    for chunk in text.to_bytes().utf8_chunks() {
        valid.try_push_str(chunk.valid())?;
        if !chunk.invalid().is_empty() {
            valid.try_push(char::REPLACEMENT_CHARACTER)?;
        }
    }
    Ok(Cow::Owned(valid))
}

#[pg_extern(immutable, parallel_safe, strict, cost = 100)]
fn minhash_signature_out(signature: StoredSignature<'_>) -> CString {
    CString::new(signature.read().to_string()).expect("the text form has no NUL")
}

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_recv(mut message: Internal) -> NewSignature {
    // SAFETY: PostgreSQL calls a receive function with the message's StringInfo.
    let bytes = unsafe { rest_of_message(&mut message) };
    NewSignature::from_foreign(bytes)
}

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_send(signature: StoredSignature<'_>) -> Vec<u8> {
    signature.read();
    signature.bytes().to_vec()
}

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_from_bytea(bytes: &[u8]) -> NewSignature {
    NewSignature::from_foreign(bytes)
}

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_to_bytea(signature: StoredSignature<'_>) -> Vec<u8> {
    minhash_signature_send(signature)
}

fn order(a: &StoredSignature<'_>, b: &StoredSignature<'_>) -> Ordering {
    a.bytes().cmp(b.bytes())
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_cmp(a: StoredSignature<'_>, b: StoredSignature<'_>) -> i32 {
    order(&a, &b) as i32
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_eq(a: StoredSignature<'_>, b: StoredSignature<'_>) -> bool {
    order(&a, &b).is_eq()
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_ne(a: StoredSignature<'_>, b: StoredSignature<'_>) -> bool {
    order(&a, &b).is_ne()
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_lt(a: StoredSignature<'_>, b: StoredSignature<'_>) -> bool {
    order(&a, &b).is_lt()
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_le(a: StoredSignature<'_>, b: StoredSignature<'_>) -> bool {
    order(&a, &b).is_le()
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_gt(a: StoredSignature<'_>, b: StoredSignature<'_>) -> bool {
    order(&a, &b).is_gt()
}

#[pg_extern(immutable, parallel_safe, strict, cost = 5)]
fn minhash_signature_ge(a: StoredSignature<'_>, b: StoredSignature<'_>) -> bool {
    order(&a, &b).is_ge()
}

/// Returns the low half of the extended hash with salt 0, as PostgreSQL wants it.
#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_hash(signature: StoredSignature<'_>) -> i32 {
    minhash_signature_hash_extended(signature, 0) as i32
}

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_hash_extended(signature: StoredSignature<'_>, salt: i64) -> i64 {
    Key::from_seed(salt).token_hash(signature.bytes()) as i64
}

pgrx::extension_sql!(
    r#"
CREATE TYPE minhash_signature (
    INPUT = minhash_signature_in,
    OUTPUT = minhash_signature_out,
    RECEIVE = minhash_signature_recv,
    SEND = minhash_signature_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = external
);
"#,
    name = "minhash_signature",
    requires = [
        minhash_signature_in,
        minhash_signature_out,
        minhash_signature_recv,
        minhash_signature_send
    ]
);

pgrx::extension_sql_file!(
    "../../sql/minhash/signature.sql",
    name = "signature",
    requires = [
        "minhash_signature",
        minhash_signature_from_bytea,
        minhash_signature_to_bytea,
        minhash_signature_cmp,
        minhash_signature_eq,
        minhash_signature_ne,
        minhash_signature_lt,
        minhash_signature_le,
        minhash_signature_gt,
        minhash_signature_ge,
        minhash_signature_hash,
        minhash_signature_hash_extended
    ]
);
