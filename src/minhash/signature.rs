//! The type `minhash_signature`: input, output, casts, order and hash.
//!
//! Signatures are ordered by their stored bytes, and are equal if the bytes are. This serves DISTINCT, GROUP BY,
//! indexes and replication, and says nothing about similarity.
#![allow(clippy::disallowed_methods, reason = "at most 1024 slots")]

use crate::minhash::datum::{NewSignature, StoredSignature};
use crate::pg::error::OrRaise;
use crate::pg::varlena::rest_of_message;
use neardup::Error;
use neardup::minhash::Signature;
use pgrx::Internal;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_signature_in(text: &CStr) -> NewSignature {
    NewSignature(
        text.to_str()
            .map_err(|_| Error::corrupt("it has characters outside ASCII"))
            .and_then(Signature::parse_text)
            .or_raise_as(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION),
    )
}

#[pg_extern(immutable, parallel_safe, strict, cost = 100, name = "_out")]
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

#[pg_extern(immutable, parallel_safe, strict, name = "_minhash_from_bytea")]
fn minhash_signature_from_bytea(bytes: &[u8]) -> NewSignature {
    NewSignature::from_foreign(bytes)
}

pgrx::extension_sql!(
    r#"
CREATE TYPE minhash_signature (
    INPUT = minhash_signature_in,
    OUTPUT = _out,
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
    requires = ["minhash_signature", minhash_signature_from_bytea]
);
