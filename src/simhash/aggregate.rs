//! The aggregate `simhash_agg` over weighted terms.
//!
//! A state lives in the aggregate's memory context, where PostgreSQL counts it against work_mem. The sums are integers,
//! so that neither the order of rows nor parallel workers change a bit of the result.
#![allow(clippy::disallowed_methods, reason = "at most MAX_BITS sums")]

use crate::pg::aggregate::{self, internal};
use crate::pg::bits::NewBits;
use crate::pg::prelude::*;
use crate::simhash::functions::width;
use neardup::shingle::Key;
use neardup::simhash::{Sums, fixed_point};
use pgrx::Internal;
use pgrx::prelude::*;

/// The state of the aggregate between rows.
struct SumState {
    seed: i64,
    sums: Sums<&'static mut [i64]>,
}

impl SumState {
    /// Returns a state without terms, in the memory context of the aggregate that `call` belongs to.
    fn new<'a>(call: &Call, numbers: usize, seed: i64) -> &'a mut Self {
        // SAFETY: the state needs no drop; the numbers live as long as it.
        unsafe {
            aggregate::new_state(call, "Use the aggregate simhash_agg.", |context| Self {
                seed,
                sums: Sums::over(aggregate::array(context, numbers, 0)),
            })
        }
    }

    fn check_parameters(&self, numbers: usize, seed: i64) {
        if self.sums.numbers().len() != numbers || self.seed != seed {
            invalid(
                "bits and seed changed within one aggregate",
                "Pass the same bits and seed with every term.",
            );
        }
    }
}

/// The default number of bits and the default seed, as in `simhash`.
const BITS: i32 = 64;
const SEED: i64 = 0;

/// Implements `_agg_add(state, term, weight [, bits [, seed]])`: adds one term, or nothing if an argument is NULL.
#[pg_extern(sql = false)]
fn simhash_agg_add(call: Call) -> Internal {
    let state = aggregate::state::<SumState>(call.optional_argument(0).into());
    let (Some(term), Some(weight), Some(bits), Some(seed)) = (
        call.optional::<Text<'_>>(1),
        call.optional(2),
        call.trailing_argument(3, BITS),
        call.trailing_argument(4, SEED),
    ) else {
        return internal(state);
    };
    let numbers = Sums::numbers_needed(width(bits));
    let state = state.unwrap_or_else(|| SumState::new(&call, numbers, seed));
    state.check_parameters(numbers, seed);
    let hash = Key::from_seed(seed).element_hash(&term);
    let weight = fixed_point(weight).or_raise();
    state.sums.add(hash, weight).or_raise();
    internal(Some(state))
}

/// Adds `other`, the state of another process or of other rows, to `state`.
#[pg_extern(immutable, parallel_safe)]
fn simhash_agg_combine(state: Internal, other: Internal, call: Call) -> Internal {
    let state = aggregate::state::<SumState>(state);
    let Some(other) = aggregate::state::<SumState>(other) else {
        return internal(state);
    };
    let numbers = other.sums.numbers().len();
    let state = state.unwrap_or_else(|| SumState::new(&call, numbers, other.seed));
    state.check_parameters(numbers, other.seed);
    state.sums.merge(&other.sums).or_raise();
    internal(Some(state))
}

#[pg_extern(immutable, parallel_safe, strict)]
fn simhash_agg_serialize(state: Internal) -> Vec<u8> {
    let state = aggregate::state::<SumState>(state).expect("the function is strict");
    [&state.seed.to_le_bytes()[..], &state.sums.to_bytes()].concat()
}

/// Restores a state from its serialized form.
///
/// # Errors
/// `data_corrupted` if the bytes are not a state.
#[pg_extern(immutable, parallel_safe, strict)]
fn simhash_agg_deserialize(bytes: &[u8], _unused: Internal, call: Call) -> Internal {
    let (seed, sums) = bytes
        .split_first_chunk()
        .and_then(|(seed, sums)| Some((i64::from_le_bytes(*seed), Sums::from_bytes(sums).ok()?)))
        .unwrap_or_else(|| corrupted("invalid state of simhash_agg"));
    let state = SumState::new(&call, sums.numbers().len(), seed);
    state.sums.merge(&sums).or_raise();
    internal(Some(state))
}

/// Returns the SimHash, or NULL if no term has a weight other than 0.
#[pg_extern(immutable, parallel_safe)]
fn simhash_agg_result(state: Internal) -> Option<NewBits> {
    let sums = &aggregate::state::<SumState>(state)?.sums;
    sums.signature().map(NewBits::new)
}

pgrx::extension_sql_file!(
    "../../sql/simhash/aggregate.sql",
    name = "simhash_aggregate",
    requires = [
        simhash_agg_add,
        simhash_agg_combine,
        simhash_agg_serialize,
        simhash_agg_deserialize,
        simhash_agg_result
    ]
);
