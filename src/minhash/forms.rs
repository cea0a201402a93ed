//! Signatures from signatures and from slots: unions, packing, slots as arrays and as bits.

use crate::minhash::datum::{NewSignature, StoredSignature};
use crate::pg::arrays::NewBigints;
use crate::pg::bits::NewVarbit;
use crate::pg::error::{OrRaise, raise};
use crate::pg::text::Text;
use neardup::memory::collected;
use neardup::minhash::combine;
use pgrx::prelude::*;

/// Returns the signature of the union of the two sets, bit for bit: also the operator `||`.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters or packed.
#[pg_extern(immutable, parallel_safe, strict, cost = 50, name = "minhash_union")]
fn minhash_union_of_two(a: StoredSignature<'_>, b: StoredSignature<'_>) -> NewSignature {
    NewSignature(combine::union(&a.read(), &b.read()).or_raise())
}

/// Returns the signature with only the low bits of each slot.
///
/// # Errors
/// `invalid_parameter_value` unless bits is 1, 2, 4, 8, 16 or 32 and at most what m has.
#[pg_extern(immutable, parallel_safe, strict, cost = 50)]
fn minhash_pack(m: StoredSignature<'_>, bits: i32) -> NewSignature {
    NewSignature(combine::pack(&m.read(), i64::from(bits)).or_raise())
}

/// Returns the slots, each as an unsigned number of its width.
#[pg_extern(immutable, parallel_safe, strict, cost = 100)]
fn minhash_slots(m: StoredSignature<'_>) -> NewBigints {
    NewBigints(collected(m.read().slots().map(i64::from)).or_raise())
}

/// Returns the slots as a bit string, each with its highest bit first.
#[pg_extern(immutable, parallel_safe, strict, cost = 150)]
fn minhash_bits(m: StoredSignature<'_>) -> NewVarbit {
    let signature = m.read();
    let bits = usize::from(signature.header.slots) * usize::from(signature.header.slot_bits);
    NewVarbit::new(&combine::bits(&signature), bits)
}

/// Returns a signature of slots that were computed elsewhere: smallest 32-bit hashes, 4294967295 in
/// all of them for an empty document. Only signatures of one source are comparable; name in it the
/// tool, its parameters and its seed.
///
/// # Errors
/// `null_value_not_allowed` for NULL slots; `invalid_parameter_value` for slots outside 0 to 4294967295, and none or more than
/// 1024 of them.
#[pg_extern(immutable, parallel_safe, strict, cost = 300)]
fn minhash_import(slots: Array<'_, i64>, source: default!(Text<'_>, "''")) -> NewSignature {
    if slots.contains_nulls() {
        raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "slots must not be NULL",
            "Valid slots are 0 to 4294967295.",
        );
    }
    let slots = collected(slots.iter().flatten()).or_raise();
    NewSignature(combine::import(&slots, &source).or_raise())
}

pgrx::extension_sql_file!(
    "../../sql/minhash/forms.sql",
    name = "minhash_forms",
    requires = [
        "signature",
        minhash_union_of_two,
        minhash_pack,
        minhash_slots,
        minhash_bits,
        minhash_import
    ]
);
