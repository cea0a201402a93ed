//! The GIN operator class `minhash_ops`: `minhash_signature <@ minhash_ball`.
//!
//! An index for threshold t stores the keys of the pigeonhole bands of t. Which bands a value has
//! depends on its own parameters, so that signatures of all kinds share a column: two comparable
//! ones have the same bands, and keys of others may meet by chance, which the recheck sorts out.

use crate::index::ball::{EVERYTHING, MinhashBall};
use crate::index::gin::support::{self, Query, Search};
use crate::index::keys::MinhashKeys;
use crate::minhash::datum::StoredSignature;
use crate::pg::error::raise;
use neardup::minhash::Signature;
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};
use std::mem::offset_of;

const DEFAULT_THRESHOLD: f64 = 0.8;
const DEFAULT_KEY_BITS: i32 = 16;
const KEY_BITS: std::ops::RangeInclusive<i32> = 8..=24;

/// The options of an index, as PostgreSQL fills them in.
#[repr(C)]
#[derive(Clone, Copy)]
struct StoredOptions {
    varlena_header: i32,
    key_bits: i32,
    threshold: f64,
}

/// The keys that an index of this operator class stores.
#[derive(Clone, Copy)]
pub struct MinhashIndex {
    pub keys: MinhashKeys,
    key_bits: u32,
}

impl MinhashIndex {
    /// Returns None if the options are out of range, which only a damaged catalog can bring about.
    fn new(stored: Option<StoredOptions>) -> Option<Self> {
        let (threshold, key_bits) = stored
            .map_or((DEFAULT_THRESHOLD, DEFAULT_KEY_BITS), |stored| {
                (stored.threshold, stored.key_bits)
            });
        Some(Self {
            keys: MinhashKeys::new(threshold)?,
            key_bits: KEY_BITS.contains(&key_bits).then_some(key_bits as u32)?,
        })
    }

    /// # Safety
    /// `options` are NULL or parsed options of an index of this operator class.
    pub unsafe fn from_options(options: *mut pg_sys::bytea) -> Option<Self> {
        // SAFETY: vouched for by the caller.
        Self::new(unsafe { support::options(options) })
    }

    /// # Safety
    /// `fcinfo` is that of a call of one of this operator class's functions.
    unsafe fn from_call(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: vouched for by the caller.
        let stored = unsafe { support::options_of_call(fcinfo) };
        Self::new(stored).unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                "the options of an index with operator class minhash_ops are out of range",
                "Drop the index and create it anew.",
            )
        })
    }

    fn stored_keys(&self, signature: &Signature<'_>) -> Vec<i32> {
        support::stored(&self.keys.of(signature), self.key_bits)
    }

    fn search(&self, center: &Signature<'_>, threshold: f64) -> Search {
        if center.header.empty && threshold != EVERYTHING {
            return Search::Nothing;
        }
        let occurrence = self.keys.occurrence(&center.header, threshold);
        Search::of(self.stored_keys(center), occurrence)
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
fn gin_minhash_extract_value(
    signature: StoredSignature<'_>,
    nkeys: Internal,
    _null_flags: Internal,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    // SAFETY: GIN calls this with the arguments of extractValue.
    unsafe {
        let index = MinhashIndex::from_call(fcinfo);
        support::return_keys(&index.stored_keys(&signature.read()), nkeys)
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
#[expect(clippy::too_many_arguments, reason = "GIN's interface")]
fn gin_minhash_extract_query(
    query: Query<StoredSignature<'static>>,
    nkeys: Internal,
    _strategy: i16,
    _partial_match: Internal,
    extra: Internal,
    _null_flags: Internal,
    mode: Internal,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    // SAFETY: GIN calls this with the arguments of extractQuery; the right operand of the operator
    // class's only operator is a minhash_ball.
    unsafe {
        let index = MinhashIndex::from_call(fcinfo);
        let ball = MinhashBall::from_raw(query.datum);
        let (center, threshold) = ball.read();
        index.search(&center, threshold).extract(nkeys, extra, mode)
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
#[expect(clippy::too_many_arguments, reason = "GIN's interface")]
fn gin_minhash_consistent(
    check: Internal,
    _strategy: i16,
    _query: Query<StoredSignature<'static>>,
    nkeys: i32,
    extra: Internal,
    recheck: Internal,
    _keys: Internal,
    _null_flags: Internal,
) -> bool {
    // SAFETY: GIN calls this with the arguments of consistent.
    unsafe {
        support::set(recheck, true);
        support::possible(check, nkeys, extra)
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
fn gin_minhash_triconsistent(
    check: Internal,
    _strategy: i16,
    _query: Query<StoredSignature<'static>>,
    nkeys: i32,
    extra: Internal,
    _keys: Internal,
    _null_flags: Internal,
) -> i8 {
    // SAFETY: GIN calls this with the arguments of triConsistent.
    if unsafe { support::possible(check, nkeys, extra) } {
        pg_sys::GIN_MAYBE as i8
    } else {
        pg_sys::GIN_FALSE as i8
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
fn gin_minhash_options(mut relopts: Internal) {
    // SAFETY: PostgreSQL calls this with a local_relopts; the offsets are those of `StoredOptions`,
    // the names and descriptions static.
    unsafe {
        let relopts = relopts
            .get_mut::<pg_sys::local_relopts>()
            .expect("an options function gets the options");
        pg_sys::init_local_reloptions(relopts, size_of::<StoredOptions>());
        pg_sys::add_local_real_reloption(
            relopts,
            c"threshold".as_ptr(),
            c"lowest similarity that the index finds by its keys".as_ptr(),
            DEFAULT_THRESHOLD,
            f64::MIN_POSITIVE,
            1.0,
            offset_of!(StoredOptions, threshold) as i32,
        );
        pg_sys::add_local_int_reloption(
            relopts,
            c"key_bits".as_ptr(),
            c"bits of a band's hash in a key".as_ptr(),
            DEFAULT_KEY_BITS,
            *KEY_BITS.start(),
            *KEY_BITS.end(),
            offset_of!(StoredOptions, key_bits) as i32,
        );
    }
}

pgrx::extension_sql_file!(
    "../../../sql/index/gin/minhash.sql",
    name = "gin_minhash",
    requires = [
        "ball",
        gin_minhash_extract_value,
        gin_minhash_extract_query,
        gin_minhash_consistent,
        gin_minhash_triconsistent,
        gin_minhash_options
    ]
);
