//! What a guard compares: MinHash signatures, or bit strings.

use crate::guard::options::Options;
use crate::index::gin::hamming::HammingIndex;
use crate::index::gin::minhash::MinhashIndex;
use crate::minhash::datum::StoredSignature;
use crate::pg::bits::Bits;
use crate::pg::catalog::type_named;
use crate::pg::catalog::{function_beside, operator_beside};
use crate::pg::error::OrRaise;
use neardup::bands::{Bands, HammingBlocks, band_hashes};
use neardup::minhash::equal_slots_needed;
use pgrx::{IntoDatum, pg_sys};

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Minhash { threshold: f64 },
    Bits { distance: i32 },
}

/// The functions and types that belong to a kind, in the schema of the extension.
pub struct Functions {
    make_ball: pg_sys::Oid,
    pub ball_type: pg_sys::Oid,
    pub value_type: pg_sys::Oid,
    measure: pg_sys::Oid,
}

impl Kind {
    /// None if values of that type cannot be guarded.
    pub fn of_type(
        column_type: pg_sys::Oid,
        guard: pg_sys::Oid,
        options: &Options,
    ) -> Option<Self> {
        // SAFETY: plain catalog lookups.
        let (base, schema) = unsafe {
            (
                pg_sys::getBaseType(column_type),
                pg_sys::get_func_namespace(guard),
            )
        };
        if base == type_named(schema, c"minhash_signature") {
            return Some(Self::Minhash {
                threshold: options.threshold(),
            });
        }
        (base == pg_sys::BITOID).then(|| Self::Bits {
            distance: options.distance(),
        })
    }

    /// The functions beside `guard`.
    pub fn functions(&self, guard: pg_sys::Oid) -> Functions {
        // SAFETY: plain catalog lookup.
        let schema = unsafe { pg_sys::get_func_namespace(guard) };
        let (value_type, bound_type, ball, ball_type, measure) = match self {
            Self::Minhash { .. } => (
                type_named(schema, c"minhash_signature"),
                pg_sys::FLOAT8OID,
                c"minhash_ball",
                c"minhash_ball",
                c"minhash_distance",
            ),
            Self::Bits { .. } => (
                pg_sys::BITOID,
                pg_sys::INT4OID,
                c"bit_ball",
                c"bit_ball",
                c"bit_hamming",
            ),
        };
        let function = |name, types: &[pg_sys::Oid]| {
            function_beside(guard, name, types).expect("the extension has its functions")
        };
        Functions {
            make_ball: function(ball, &[value_type, bound_type]),
            ball_type: type_named(schema, ball_type),
            value_type,
            measure: function(measure, &[value_type, value_type]),
        }
    }

    /// The operator `value <@ ball`.
    pub fn operator(&self, guard: pg_sys::Oid, functions: &Functions) -> pg_sys::Oid {
        operator_beside(guard, c"<@", [functions.value_type, functions.ball_type])
            .expect("the extension has its operators")
    }

    /// Everything that a value may not be near to.
    ///
    /// # Safety
    /// `value` is of the kind's type.
    pub unsafe fn ball(&self, functions: &Functions, value: pg_sys::Datum) -> pg_sys::Datum {
        let bound = match self {
            Self::Minhash { threshold } => threshold.into_datum(),
            Self::Bits { distance } => distance.into_datum(),
        };
        let bound = bound.expect("a number is not NULL");
        // SAFETY: the arguments are of the function's types.
        unsafe {
            pg_sys::OidFunctionCall2Coll(functions.make_ball, pg_sys::InvalidOid, value, bound)
        }
    }

    /// How far two values are apart: 1 - similarity, or differing bits.
    ///
    /// # Safety
    /// Both values are of the kind's type and comparable.
    pub unsafe fn distance(
        &self,
        functions: &Functions,
        a: pg_sys::Datum,
        b: pg_sys::Datum,
    ) -> f64 {
        // SAFETY: vouched for by the caller.
        let measured =
            unsafe { pg_sys::OidFunctionCall2Coll(functions.measure, pg_sys::InvalidOid, a, b) };
        match self {
            Self::Minhash { .. } => f64::from_bits(measured.value() as u64),
            Self::Bits { .. } => f64::from(measured.value() as i32),
        }
    }

    /// Keys of which two values that near each other share one, sorted and distinct. None for a
    /// value that is near to nothing.
    ///
    /// # Safety
    /// `value` is of the kind's type.
    pub unsafe fn lock_keys(&self, value: pg_sys::Datum) -> Option<Vec<u64>> {
        let mut keys: Vec<u64> = match self {
            Self::Minhash { threshold } => {
                // SAFETY: vouched for by the caller.
                let stored = unsafe { StoredSignature::from_raw(value) };
                let signature = stored.read();
                if signature.header.empty {
                    return None;
                }
                let slots = usize::from(signature.header.slots);
                let bits = u32::from(signature.header.slot_bits);
                let bands = slots - equal_slots_needed(slots, bits, *threshold) + 1;
                band_hashes(&signature, &Bands { slots, bands }).collect()
            }
            Self::Bits { distance } => {
                // SAFETY: as above.
                let bits = unsafe { Bits::from_raw(value) };
                let distance = i64::from(*distance);
                let blocks = HammingBlocks::new(distance, distance + 1).or_raise();
                blocks.block_hashes(bits.as_bitslice()).collect()
            }
        };
        keys.sort_unstable();
        keys.dedup();
        Some(keys)
    }

    /// Whether an index with these options finds everything within the bound by its keys.
    ///
    /// # Safety
    /// `options` are those of an index of the kind's operator class, or NULL.
    pub unsafe fn is_served(&self, options: *mut pg_sys::bytea) -> bool {
        // SAFETY: vouched for by the caller.
        unsafe {
            match self {
                Self::Minhash { threshold } => MinhashIndex::from_options(options)
                    .is_some_and(|index| index.serves(None, *threshold)),
                Self::Bits { distance } => HammingIndex::from_options(options)
                    .is_some_and(|index| index.serves(*distance as u32)),
            }
        }
    }

    /// The end of a CREATE INDEX that serves it.
    pub fn operator_class(&self) -> String {
        match self {
            Self::Minhash { threshold } => format!("minhash_ops (threshold = {threshold})"),
            Self::Bits { distance } => format!("hamming_ops (distance = {distance})"),
        }
    }
}
