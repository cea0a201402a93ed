//! Signatures made from other signatures (unions, packing) or from slots (import), and the parameters and slots of
//! signatures.

use crate::minhash::datum::{NewSignature, StoredSignature};
use crate::pg::arrays::NewBigints;
use crate::pg::bits::NewVarbit;
use crate::pg::prelude::*;
use crate::pg::srf::Record;
use neardup::minhash::combine;
use pgrx::JsonB;
use pgrx::prelude::*;
use serde::Serialize;

/// Returns the signature of the union of two sets, bit for bit the same as one made from the union. Also the operator
/// `||`.
///
/// # Errors
/// `invalid_parameter_value` for signatures made with different parameters or packed.
#[pg_extern(immutable, parallel_safe, strict, cost = 50, name = "minhash_union")]
fn minhash_union_of_two(a: StoredSignature<'_>, b: StoredSignature<'_>) -> NewSignature {
    NewSignature(combine::union(&a.read(), &b.read()).or_raise())
}

/// Returns the signature `m` with only the low `bits` bits of each slot.
///
/// # Errors
/// `invalid_parameter_value` unless `bits` is 1, 2, 4, 8, 16 or 32, and no more than `m` has.
#[pg_extern(immutable, parallel_safe, strict, cost = 50)]
fn minhash_pack(m: StoredSignature<'_>, bits: i32) -> NewSignature {
    NewSignature(combine::pack(&m.read(), i64::from(bits)).or_raise())
}

/// The parameters of a signature.
#[derive(Serialize)]
struct FormParameters {
    version: u8,
    unit: String,
    k: u16,
    fold: String,
    slots: u16,
    slot_bits: u8,
    seed_id: String,
    empty: bool,
    bytes: usize,
}

type Description = Record<(JsonB, NewBigints, NewVarbit)>;

pgrx::impl_sql_translatable!(Description, "record");

/// Returns the parameters of a signature as JSON, its slots as unsigned numbers, and its slots as a bit string, each
/// with its highest bit first.
#[pg_extern(sql = r#"
CREATE FUNCTION minhash_describe(m minhash_signature, OUT parameters jsonb, OUT slots bigint[], OUT bits varbit)
IMMUTABLE STRICT PARALLEL SAFE COST 500 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn minhash_describe(m: StoredSignature<'_>) -> Description {
    let signature = m.read();
    let header = &signature.header;
    let parameters = FormParameters {
        version: neardup::minhash::signature::VERSION,
        unit: header.unit.to_string(),
        k: header.k,
        fold: header.fold.to_string(),
        slots: header.slots,
        slot_bits: header.slot_bits,
        seed_id: format!("{:016x}", header.seed_id),
        empty: header.empty,
        bytes: m.bytes().len(),
    };
    let parameters = serde_json::to_value(parameters).expect("parameters are plain data");
    let slots = collected(signature.slots().map(i64::from)).or_raise();
    let width = usize::from(header.slots) * usize::from(header.slot_bits);
    let bits = NewVarbit::new(&combine::bits(&signature), width);
    Record((JsonB(parameters), NewBigints(slots), bits))
}

/// Returns a signature made from slots that were computed elsewhere: the smallest 32-bit hashes, or 4294967295 in all
/// slots for an empty document. Only signatures with the same `source` are comparable; it should name the tool, its
/// parameters and its seed.
///
/// # Errors
/// `null_value_not_allowed` for NULL slots; `invalid_parameter_value` for slots outside 0 to 4294967295, for none, and
/// for more than 1024.
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
    requires = ["signature", minhash_union_of_two]
);
