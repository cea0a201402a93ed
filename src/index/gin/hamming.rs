//! The GIN operator class `hamming_ops`: `bit <@ bit_ball`.
//!
//! An index stores one key for each block of a bit string; keys depend on the length too, so that
//! strings of all lengths share a column.

use crate::index::ball::BitBall;
use crate::index::gin::support::{self, Query, Search};
use crate::index::keys::HammingKeys;
use crate::pg::bits::Bits;
use crate::pg::error::{OrRaise, raise};
use bitvec::prelude::*;
use neardup::bands::MAX_BLOCKS;
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;

const DEFAULT_DISTANCE: i32 = 3;

/// Stands for one block more than the distance.
const DEFAULT_BLOCKS: i32 = 0;

/// Rows seldom share the keys of long blocks anyway, and each false hit is a candidate where one
/// intact block is enough; 26 bits leave room for the number of 64 blocks.
const KEY_BITS: u32 = 26;

/// The options of an index, as PostgreSQL fills them in.
#[repr(C)]
#[derive(Clone, Copy)]
struct StoredOptions {
    varlena_header: i32,
    distance: i32,
    blocks: i32,
}

impl StoredOptions {
    fn keys(&self) -> neardup::Result<HammingKeys> {
        let blocks = (self.blocks != DEFAULT_BLOCKS).then_some(self.blocks);
        HammingKeys::new(self.distance, blocks)
    }
}

/// The keys that an index of this operator class stores.
#[derive(Clone, Copy)]
pub struct HammingIndex {
    pub keys: HammingKeys,
}

impl HammingIndex {
    /// Returns None if the options are out of range, which only a damaged catalog can bring about.
    fn new(stored: Option<StoredOptions>) -> Option<Self> {
        let stored = stored.unwrap_or(StoredOptions {
            varlena_header: 0,
            distance: DEFAULT_DISTANCE,
            blocks: DEFAULT_BLOCKS,
        });
        stored.keys().ok().map(|keys| Self { keys })
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
                "the options of an index with operator class hamming_ops are out of range",
                "Drop the index and create it anew.",
            )
        })
    }

    fn stored_keys(&self, bits: &BitSlice<u8, Msb0>) -> Vec<i32> {
        support::stored(&self.keys.of(bits), KEY_BITS)
    }

    fn search(&self, center: &BitSlice<u8, Msb0>, distance: u32) -> Search {
        Search::of(self.stored_keys(center), self.keys.occurrence(distance))
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
fn gin_hamming_extract_value(
    bits: Bits<'_>,
    nkeys: Internal,
    _null_flags: Internal,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    // SAFETY: GIN calls this with the arguments of extractValue.
    unsafe {
        let index = HammingIndex::from_call(fcinfo);
        support::return_keys(&index.stored_keys(bits.as_bitslice()), nkeys)
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
#[expect(clippy::too_many_arguments, reason = "GIN's interface")]
fn gin_hamming_extract_query(
    query: Query<Bits<'static>>,
    nkeys: Internal,
    _strategy: i16,
    _partial_match: Internal,
    extra: Internal,
    _null_flags: Internal,
    mode: Internal,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    // SAFETY: GIN calls this with the arguments of extractQuery; the right operand of the operator
    // class's only operator is a bit_ball.
    unsafe {
        let index = HammingIndex::from_call(fcinfo);
        let ball = BitBall::from_raw(query.datum);
        let (center, distance) = ball.read();
        index.search(center, distance).extract(nkeys, extra, mode)
    }
}

#[pg_extern(immutable, parallel_safe, strict)]
#[expect(clippy::too_many_arguments, reason = "GIN's interface")]
fn gin_hamming_consistent(
    check: Internal,
    _strategy: i16,
    _query: Query<Bits<'static>>,
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
fn gin_hamming_triconsistent(
    check: Internal,
    _strategy: i16,
    _query: Query<Bits<'static>>,
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
fn gin_hamming_options(mut relopts: Internal) {
    let most_blocks = MAX_BLOCKS as i32;
    // SAFETY: PostgreSQL calls this with a local_relopts; the offsets are those of `StoredOptions`,
    // the names and descriptions static.
    unsafe {
        let relopts = relopts
            .get_mut::<pg_sys::local_relopts>()
            .expect("an options function gets the options");
        pg_sys::init_local_reloptions(relopts, size_of::<StoredOptions>());
        pg_sys::add_local_int_reloption(
            relopts,
            c"distance".as_ptr(),
            c"greatest Hamming distance that the index finds by its keys".as_ptr(),
            DEFAULT_DISTANCE,
            0,
            most_blocks - 1,
            offset_of!(StoredOptions, distance) as i32,
        );
        pg_sys::add_local_int_reloption(
            relopts,
            c"blocks".as_ptr(),
            c"keys a row, more than distance; 0 for distance + 1".as_ptr(),
            DEFAULT_BLOCKS,
            0,
            most_blocks,
            offset_of!(StoredOptions, blocks) as i32,
        );
        pg_sys::register_reloptions_validator(relopts, Some(check_options));
    }
}

/// Refuses too few blocks when an index is created.
#[pg_guard]
unsafe extern "C-unwind" fn check_options(
    parsed: *mut c_void,
    _values: *mut pg_sys::relopt_value,
    _count: c_int,
) {
    // SAFETY: PostgreSQL passes what it has filled in.
    unsafe { parsed.cast::<StoredOptions>().read_unaligned() }
        .keys()
        .or_raise();
}

pgrx::extension_sql_file!(
    "../../../sql/index/gin/hamming.sql",
    name = "gin_hamming",
    requires = [
        "ball",
        gin_hamming_extract_value,
        gin_hamming_extract_query,
        gin_hamming_consistent,
        gin_hamming_triconsistent,
        gin_hamming_options
    ]
);
