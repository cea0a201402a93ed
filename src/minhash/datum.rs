//! Signatures as arguments and results.
#![allow(clippy::disallowed_methods, reason = "at most 1024 slots")]

use crate::pg::prelude::*;
use crate::pg::varlena::{Varlena, argument, result};
use neardup::minhash::{Header, Signature, SignatureUnit};
use neardup::shingle::Shingling;
use neardup::text::Unit;

/// A `minhash_signature` argument. Header and length are checked whenever it is read.
pub struct StoredSignature<'a>(Varlena<'a>);

impl StoredSignature<'_> {
    /// Reads a datum of type `minhash_signature`.
    ///
    /// # Safety
    /// `datum` is a non-null datum of type minhash_signature that outlives the value.
    #[inline]
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Varlena::from_raw(datum) })
    }

    /// Reads the signature.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are not a signature.
    pub fn read(&self) -> Signature<'_> {
        Signature::from_bytes(&self.0).or_raise()
    }

    /// Returns the bytes, for bytewise comparison.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A new value of type `minhash_signature`, in its stored form.
pub struct NewSignature(pub Vec<u8>);

impl NewSignature {
    /// Makes a value from untrusted bytes.
    ///
    /// # Errors
    /// ERROR `invalid_binary_representation` if they are not a signature.
    pub fn from_foreign(bytes: &[u8]) -> Self {
        Signature::from_foreign_bytes(bytes)
            .or_raise_as(PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION);
        Self(bytes.to_vec())
    }
}

argument!(StoredSignature, "minhash_signature");

result!(NewSignature, "minhash_signature");

/// Returns k, unit and fold of a signature's document, or None if the signature was not made from text.
pub fn shingling(header: &Header) -> Option<Shingling> {
    let mut units = [Unit::Word, Unit::Char, Unit::Stop].into_iter();
    let unit = units.find(|unit| SignatureUnit::from(*unit) == header.unit)?;
    Some(Shingling::new(i64::from(header.k), unit, header.fold).or_raise())
}
