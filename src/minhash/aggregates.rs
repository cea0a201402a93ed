//! The aggregates `minhash_agg` over elements and `minhash_union` over signatures.
//!
//! A state lives in the aggregate's memory context, where PostgreSQL counts it against work_mem. It has the slots, and
//! up to [`PENDING`] hashes of elements that are added together, since adding them one by one costs more.
#![allow(clippy::disallowed_methods, reason = "at most 1024 slots")]

use crate::minhash::datum::{NewSignature, StoredSignature};
use crate::options;
use crate::pg::aggregate::{self, internal};
use crate::pg::prelude::*;
use neardup::minhash::{Header, Signature, SignatureUnit, Sketch, UNFILLED, combine};
use neardup::shingle::Key;
use pgrx::Internal;
use pgrx::prelude::*;

/// Number of elements that are added together. It is small because every group holds up to this many, and large enough
/// that the elements share the rounds that fill the last slots.
const PENDING: usize = 512;

/// Initial room for elements: most groups of a GROUP BY are small.
const FIRST_PENDING: usize = 16;

/// The state of an aggregate between rows.
struct UnionState {
    /// The header of the result, except for its `empty` field.
    header: Header,
    /// The seed of the elements' hashes; 0 for a union of signatures.
    seed: i64,
    sketch: Sketch<&'static mut [u32]>,
    pending: &'static mut [u64],
    pending_count: usize,
}

impl UnionState {
    /// Returns a state without elements, in the memory context of the aggregate that `call` belongs to.
    fn new<'a>(call: &Call, header: Header, seed: i64) -> &'a mut Self {
        let hint = "Use the aggregates minhash_agg and minhash_union.";
        // SAFETY: the state needs no drop; the arrays live as long as it.
        unsafe {
            aggregate::new_state(call, hint, |context| Self {
                header,
                seed,
                sketch: Sketch(aggregate::array(context, header.slots.into(), UNFILLED)),
                pending: aggregate::array(context, FIRST_PENDING, 0),
                pending_count: 0,
            })
        }
    }

    fn push(&mut self, hash: u64) {
        if self.pending_count == self.pending.len() {
            self.make_room();
        }
        self.pending[self.pending_count] = hash;
        self.pending_count += 1;
    }

    fn make_room(&mut self) {
        let len = self.pending.len();
        if len < PENDING {
            // SAFETY: the context of the state, which is that of the arrays.
            unsafe {
                let before = self.pending.as_mut_ptr().cast();
                let context = pg_sys::GetMemoryChunkContext(before);
                let wider = aggregate::array(context, 2 * len, 0);
                wider[..len].copy_from_slice(self.pending);
                self.pending = wider;
                pg_sys::pfree(before);
            }
        } else {
            self.sketch.add(self.pending);
            self.pending_count = 0;
        }
    }

    /// Returns the sketch with the pending elements added. Leaves the state unchanged: an aggregate that is used as a
    /// window function continues after its result has been read.
    fn finished(&self) -> Sketch {
        let mut sketch = Sketch(self.sketch.slots().to_vec());
        sketch.add(&self.pending[..self.pending_count]);
        sketch
    }

    fn encode(&self) -> Vec<u8> {
        self.finished().encode(self.header)
    }
}

/// The default number of slots and the default seed, as in `minhash`.
const SLOTS: i32 = 128;
const SEED: i64 = 0;

/// Adds an element, and returns the state. `hash` returns the element's hash under a key, and is None for NULL, which
/// is ignored. Slots and seed are the arguments after the element, if the function is declared with them.
fn add_element(call: &Call, hash: Option<impl FnOnce(&Key) -> u64>) -> Internal {
    let state = aggregate::state::<UnionState>(call.optional_argument(0).into());
    let slots = call.trailing_argument(2, SLOTS);
    let seed = call.trailing_argument(3, SEED);
    let (Some(hash), Some(slots), Some(seed)) = (hash, slots, seed) else {
        return internal(state);
    };
    let key = Key::from_seed(seed);
    let state = state.unwrap_or_else(|| {
        let header = Header::of_set(SignatureUnit::Set, 1, options::slots(slots), key.id());
        UnionState::new(call, header, seed)
    });
    if i32::from(state.header.slots) != slots || state.seed != seed {
        invalid(
            "slots and seed changed within one aggregate",
            "Pass the same slots and seed with every element.",
        );
    }
    state.push(hash(&key));
    internal(Some(state))
}

/// Implements `_agg_add(state, element text [, slots [, seed]])`.
#[pg_extern(sql = false)]
fn minhash_agg_add_text(call: Call) -> Internal {
    let element = call.optional::<Text<'_>>(1);
    let hash = element.map(|element| move |key: &Key| key.element_hash(&element));
    add_element(&call, hash)
}

/// Implements `_agg_add(state, element bigint [, slots [, seed]])`.
#[pg_extern(sql = false)]
fn minhash_agg_add_bigint(call: Call) -> Internal {
    let bytes = call.optional(1).map(i64::to_le_bytes);
    let hash = bytes.map(|bytes| move |key: &Key| key.element_hash(&bytes));
    add_element(&call, hash)
}

/// Merges the signature `m` into the state. Ignores NULLs.
#[pg_extern(immutable, parallel_safe, name = "_agg_add")]
fn minhash_union_add(state: Internal, m: Option<StoredSignature<'_>>, call: Call) -> Internal {
    let state = aggregate::state::<UnionState>(state);
    let Some(m) = m else {
        return internal(state);
    };
    let signature = m.read();
    let state = state.unwrap_or_else(|| {
        combine::check_full_width(&signature).or_raise();
        UnionState::new(&call, signature.header, 0)
    });
    state.header.check_comparable(&signature.header).or_raise();
    state.sketch.merge(&signature.slots().collect::<Vec<_>>());
    internal(Some(state))
}

/// Merges `other`, the state of another process or of other rows, into `state`.
#[pg_extern(immutable, parallel_safe)]
fn minhash_agg_combine(state: Internal, other: Internal, call: Call) -> Internal {
    let state = aggregate::state::<UnionState>(state);
    let Some(other) = aggregate::state::<UnionState>(other) else {
        return internal(state);
    };
    let state = state.unwrap_or_else(|| UnionState::new(&call, other.header, other.seed));
    state.header.check_comparable(&other.header).or_raise();
    state.sketch.merge(other.finished().slots());
    internal(Some(state))
}

/// Number of bytes of the seed in a serialized state, before the signature.
const SEED_LEN: usize = size_of::<i64>();

#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_agg_serialize(state: Internal) -> Vec<u8> {
    let state = aggregate::state::<UnionState>(state).expect("the function is strict");
    [&state.seed.to_le_bytes()[..], &state.encode()].concat()
}

/// Restores a state from its serialized form.
///
/// # Errors
/// `data_corrupted` if the bytes are not a state.
#[pg_extern(immutable, parallel_safe, strict)]
fn minhash_agg_deserialize(bytes: &[u8], _unused: Internal, call: Call) -> Internal {
    let (seed, bytes) = bytes
        .split_first_chunk::<SEED_LEN>()
        .unwrap_or_else(|| corrupted("invalid state of a minhash aggregate"));
    let signature = Signature::from_foreign_bytes(bytes).or_raise();
    combine::check_full_width(&signature).or_raise();
    let state = UnionState::new(&call, signature.header, i64::from_le_bytes(*seed));
    state.sketch.merge(&signature.slots().collect::<Vec<_>>());
    internal(Some(state))
}

/// Returns the signature, or NULL if nothing was added.
#[pg_extern(immutable, parallel_safe)]
fn minhash_agg_result(state: Internal) -> Option<NewSignature> {
    aggregate::state::<UnionState>(state).map(|state| NewSignature(state.encode()))
}

pgrx::extension_sql_file!(
    "../../sql/minhash/aggregates.sql",
    name = "minhash_aggregates",
    requires = [
        "signature",
        minhash_agg_add_text,
        minhash_agg_add_bigint,
        minhash_union_add,
        minhash_agg_combine,
        minhash_agg_serialize,
        minhash_agg_deserialize,
        minhash_agg_result
    ]
);
